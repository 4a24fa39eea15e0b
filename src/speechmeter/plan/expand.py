"""From a Plan to its cases: the product of all axes, each subject with those axes that it has."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.axes import CORE_AXES, OFFLINE, Axes, axis_names
from speechmeter.core.machine import available_cores
from speechmeter.core.protocol import LiveProtocol, Protocol, RepeatsProtocol, ScheduleProtocol, SteadyProtocol
from speechmeter.core.quality import QUALITY, Quality, default_scores, normaliser_id
from speechmeter.core.types import CONTENT_HASHES, Case, Skip, Spec
from speechmeter.plan.arrivals import arriving
from speechmeter.plan.build import SPECIAL_AUDIO, axes_of
from speechmeter.plan.finding import fits_memory, search_protocol
from speechmeter.plan.live import live_levels, live_meters, live_protocol
from speechmeter.plan.schema import ModelEntry, Plan, QualityEntry

_CONTENTS = ("manifest", "file", "ids", "lines")
"""Options of workloads that name what is fed: a hash of it is part of the case."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Everything a plan asks for: the cases to measure and the cells it leaves out."""

    cases: tuple[Case, ...]
    skipped: tuple[Skip, ...]


def expand(plan: Plan) -> Cells:
    """All cells of a plan, models outermost, seconds and batch innermost."""
    cases: list[Case] = []
    skipped: list[Skip] = []
    for case in _all_cases(plan):
        if plan.triangle and outside_triangle(plan, case):
            skipped.append(Skip(case=case, reason="excluded by `triangle`, which skips long audio with a large batch"))
        else:
            cases.append(case)
    return Cells(cases=tuple(cases), skipped=tuple(skipped))


def outside_triangle(plan: Plan, case: Case) -> bool:
    """The recipe's rule on indices: skip (d, b) when both are above 0 and d + b ≥ (durations + batches) / 2."""
    seconds, batch = plan.axes.get("seconds", ()), plan.axes.get("batch", ())
    if case.axes.get("seconds") not in seconds or case.axes.get("batch") not in batch:
        return False  # also of a model with axes of its own
    d, b = seconds.index(case.axes.seconds), batch.index(case.axes.batch)
    return d > 0 and b > 0 and d + b >= (len(seconds) + len(batch)) / 2


def _all_cases(plan: Plan) -> Iterator[Case]:
    protocol = search_protocol(plan) if fits_memory(plan) else _protocol(plan)
    live = live_protocol(plan, _quality(plan)) if plan.is_live else None
    for entry in plan.models:
        # one input after the other at each size, so that the same on noise and on real audio are neighbours in time
        by_input = [_cases_of(plan, entry, workload, protocol, live) for workload in _workload_specs(plan)]
        for those in itertools.zip_longest(*by_input):
            yield from (case for case in those if case is not None)


def _cases_of(
    plan: Plan, entry: ModelEntry, workload: Spec, protocol: Protocol, live: LiveProtocol | None
) -> Iterator[Case]:
    own = axes_of(entry)
    plugin, _, source = entry.load.partition(":")
    subject = Spec(plugin=plugin, name=entry.name, source=source, options=entry.model_extra or {})
    names = [*axis_names(CORE_AXES), *axis_names(own), *_workload_axes(workload)]
    left_out = {(axis.name, axis.default) for axis in own if axis.late}
    swept = {**plan.axes, **entry.axes}
    for values in itertools.product(*(swept[name] for name in names)):
        axes = {name: value for name, value in zip(names, values, strict=True) if (name, value) not in left_out}
        axes["cores"] = axes["cores"] or len(available_cores())  # what was measured must not depend on who reads it
        axes["threads"] = axes["threads"] or axes["cores"]
        if OFFLINE in swept.get("pace", (OFFLINE,)):
            yield Case(subject=subject, workload=workload, axes=Axes(axes), meters=plan.meters, protocol=protocol)
        if live is not None and "pace" in swept:
            for level in live_levels(swept):
                every = Axes({**axes, **level})
                how = arriving(live, plan, level)
                yield Case(subject=subject, workload=workload, axes=every, meters=live_meters(plan), protocol=how)


def _workload_axes(workload: Spec) -> list[str]:
    """The workload's axes; files of a folder and random cuts are as long as they are."""
    names = axis_names(plugins.workload(workload.plugin).axes)
    own_lengths = "count" in workload.options or (workload.source and Path(workload.source).is_dir())
    return [name for name in names if name != "seconds" or not own_lengths]


def _workload_specs(plan: Plan) -> list[Spec]:
    options = dict(plan.workload.model_extra or {})
    named = next((options[key] for key in _CONTENTS if key in options), None)
    if named is not None:
        path = Path(str(named))
        options |= content_hashes(path)
        return [Spec(plugin=plan.workload.name, name=path.name, source=str(path), options=options)]
    if plan.workload.name != "audio":
        return [Spec(plugin=plan.workload.name, name=plan.workload.name, options=options)]
    return [
        Spec(
            plugin="audio",
            name=Path(source).name,
            source=source,
            options=options if source in SPECIAL_AUDIO else {**options, **content_hashes(Path(source))},
        )
        for source in plan.audio or ("noise",)
    ]


def content_hashes(path: Path) -> dict[str, str]:
    """A hash of a file's content; for a folder, of the names and sizes of the files in and below it."""
    if path.is_file():
        digest = hashlib.sha256()
        with path.open("rb") as opened:
            while piece := opened.read(1 << 20):  # a list of a million lines is no reason to hold it
                digest.update(piece)
        return {CONTENT_HASHES[0]: digest.hexdigest()[:16]}
    if path.is_dir():
        files = sorted((file.relative_to(path).as_posix(), file.stat().st_size) for file in _files_below(path))
        return {CONTENT_HASHES[1]: hashlib.sha256(repr(files).encode()).hexdigest()[:16]}
    return {}


def _files_below(folder: Path) -> Iterator[Path]:
    """The files that a folder of sound may be read from: hidden folders are passed over."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (file for name in names if (file := Path(parent, name)).is_file())


def _protocol(plan: Plan) -> Protocol:
    """How samples are taken; part of a case's identity."""
    shared: dict[str, Any] = {
        "seed": plan.seed, "power_log": plan.power_log, "filter": plan.filter, "quality": _quality(plan)
    }  # fmt: skip
    if plan.schedule is not None:
        return ScheduleProtocol(**shared, **plan.schedule.model_dump())
    if plan.repeats is not None:
        return RepeatsProtocol(**shared, discard=plan.discard, samples=plan.repeats)
    return SteadyProtocol(
        **shared, warmup=plan.warmup, samples=plan.samples, min_samples=plan.min_samples, budget_s=plan.budget_s
    )


def _quality(plan: Plan) -> Quality | None:
    """How outputs are scored, every default written out; nothing for a plan that does not ask for it."""
    if QUALITY not in plan.meters:
        return None
    asked = plan.quality or QualityEntry()
    if asked.import_ is not None:
        return Quality(import_=asked.import_, extra=content_hashes(Path(asked.import_)))
    scores = asked.scores or default_scores(plan.workload.name)
    return Quality(normaliser=normaliser_id(asked.normaliser), scores=scores)
