"""A plan with its cells and where its keys came from: what the commands and the Python interface start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from speechmeter.core.errors import Origin, PlanError
from speechmeter.core.quality import FIRST_VERSION, IMPORT, NORMALISERS, QUALITY, read_scores, score_for
from speechmeter.core.types import Case
from speechmeter.plan.build import build_plan
from speechmeter.plan.expand import Cells, expand
from speechmeter.plan.foreign import fairseq_benchmark, speechbrain_profile
from speechmeter.plan.foreign.draft import Translation
from speechmeter.plan.live import unused_meters
from speechmeter.plan.schema import Plan
from speechmeter.plan.shorthand import spelt_out
from speechmeter.plan.source import Override, Source, apply, from_python, parse_plan, read_text


@dataclass(frozen=True, kw_only=True)
class Study:
    """A validated plan, its cells, and where each key was given. `notes` name the parts of its files that go unused."""

    plan: Plan
    cells: Cells
    source: Source
    notes: tuple[str, ...] = ()

    def origin(self, case: Case, key: str) -> Origin | None:
        """Where a case's model, audio or axis was asked for."""
        if key == "models":
            names = [entry.name for entry in self.plan.models]
            return self.source.origin(("models", names.index(case.subject.name)))
        if key in case.axes:
            values = self.plan.axes.get(key, ())
            if case.axes[key] in values:
                return self.source.origin((key, values.index(case.axes[key])))
        return self.source.origin((key,))

    def plan_text(self) -> str:
        """The resolved plan as YAML, as stored in the run; the notes are comments above it."""
        comments = "".join(f"# {note}\n" for note in self.notes)
        return comments + yaml.safe_dump(self.plan.to_plain(), sort_keys=False, allow_unicode=True)


def study_from_file(path: Path, overrides: Sequence[Override] = (), *, trust: bool = False) -> Study:
    """The study of a plan file, ours or a foreign one, with flags laid over it."""
    try:
        found = read_plan(path, overrides)
        return _study(apply(found.source, found.overrides), trust=trust, name=path.stem, notes=found.notes)
    except OSError as error:  # a name that is too long for a file, a folder that may not be looked into
        raise PlanError(
            f"a file named in the plan cannot be checked: {error.strerror}", where=str(path), fix="check its paths"
        ) from error


def study_of_run(plan: Path, overrides: Sequence[Override] = (), *, trust: bool = False) -> Study:
    """The study of the plan that a run keeps, with flags laid over it.

    A run of before there were versions names a normaliser, or none, without one: it meant the first.
    """
    kept = parse_plan(read_text(plan), plan.name).data
    asked = kept.get(QUALITY) or {}
    if isinstance(asked, Mapping) and asked.get(IMPORT) is None and QUALITY in (kept.get("meters") or ()):
        name = asked.get("normaliser") or "basic"
        meant = {**asked, "normaliser": f"{name}{FIRST_VERSION}" if name in NORMALISERS else name}
        overrides = [Override(path=(QUALITY,), value=meant), *overrides]
    return study_from_file(plan, overrides, trust=trust)


def study_from_flags(overrides: Sequence[Override]) -> Study:
    """The study that flags alone describe; code named by a flag is trusted."""
    return _study(apply(Source(data={}), overrides), trust=True)


def study_from_python(keys: Mapping[str, Any]) -> Study:
    """The study of a plan given as a dict; whoever writes Python may name code."""
    return _study(from_python(keys), trust=True)


def tour(overrides: Sequence[Override] = ()) -> Study:
    """The built-in tour: no network, no GPU, minutes."""
    text = (files("speechmeter.plan") / "tour.yaml").read_text()
    return _study(apply(parse_plan(text, "tour"), overrides), trust=True)


def _study(source: Source, *, trust: bool, name: str | None = None, notes: tuple[str, ...] = ()) -> Study:
    if name and "name" not in source.data:
        source = Source(data={**source.data, "name": name}, origins=source.origins, base=source.base)
    plan = build_plan(source, trust=trust)
    cells = expand(plan)
    unused = (*_unused_scores(plan, cells.cases), *(unused_meters(plan) if "meters" in source.data else ()))
    return Study(plan=plan, cells=cells, source=spelt_out(source), notes=(*notes, *unused))


_NAMED = 3
"""Rows of scores that are named where no case is theirs."""
_OURS = frozenset({"models", "cascades"})


def read_plan(path: Path, overrides: Sequence[Override] = ()) -> Translation:
    """The keys of a plan file, in our words. Raises PlanError for what is neither ours nor understood."""
    text = read_text(path)
    try:  # the outermost keys; none of a text that is broken, for its reader to refuse. Tags are not followed.
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        node = None
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    keys = frozenset(key.value for key, _ in pairs if isinstance(key, yaml.ScalarNode))
    if not keys & _OURS:
        if keys & speechbrain_profile.KEYS:
            return speechbrain_profile.translate(text, path, overrides)
        if keys & fairseq_benchmark.KEYS:
            return fairseq_benchmark.translate(text, path, overrides)
    source = parse_plan(text, str(path), base=path.parent)
    return Translation(source=source, overrides=tuple(overrides))


def _unused_scores(plan: Plan, cases: Sequence[Case]) -> tuple[str, ...]:
    """A line for the rows of the plan's file that are about none of its cells; nothing where all are used."""
    path = plan.quality.import_ if plan.quality is not None else None
    if path is None:
        return ()
    rows = read_scores(Path(path))
    used = {
        id(row)
        for case in cases
        if (row := score_for(rows, case.subject.name, {**case.axes, "workload": case.workload.name})) is not None
    }
    unused = [row for row in rows if id(row) not in used]
    if not unused:
        return ()
    rows_named = (
        ", ".join([row.model, *(f"{name} {value}" for name, value in row.axes.items())]) for row in unused[:_NAMED]
    )
    named = "; ".join(rows_named) + ("; …" if len(unused) > _NAMED else "")
    return (f"{path}: {len(unused)} of {len(rows)} rows match no case of the plan: {named}",)
