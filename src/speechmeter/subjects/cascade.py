"""Several subjects in a chain, each fed what the one before it put out: recogniser → translator → synthesiser.

Stages carry the role in front: `asr.features`, `asr.model`, `mt.model`. Between two subjects stands glue, `asr→mt`,
which turns an output into the next one's batch; it is outside the clock and has a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.axes import Axes, Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import Installed, Prepared
from speechmeter.core.types import Batch, Case, Spec, Stage
from speechmeter.subjects.glue import next_batch

BETWEEN = "→"


class CascadeSubject:
    """`cascades:` of a plan: a name and a list of stages, each a model as in `models:`."""

    summary = "a chain of other models: `cascades:` in a plan"
    axes: tuple[Axis, ...] = ()
    options = (Option(name="stages", kind=list, help="at least two models, each with a name and `load`"),)
    runs_code = False
    takes: tuple[str, ...] = ()

    def installed(self) -> Installed:
        """Always here; its stages answer for themselves."""
        return Installed(version="built in")

    def check(self, case: Case) -> None:
        """Names must be told apart, and every stage must be sound."""
        names = [str(stage.get("name", "")) for stage in case.subject.options.get("stages", ())]
        if len(names) < 2:
            raise SubjectError("a cascade has at least two stages", fix="list them under `stages:`")
        for name in names:
            if names.count(name) > 1 or not name or "." in name or BETWEEN in name:
                raise SubjectError(f"a stage of a cascade needs a plain name of its own, not {name!r}", fix="rename it")
        for place, inner in enumerate(stage_cases(case)):
            try:
                plugins.subject(inner.subject.plugin).check(inner)
                if place == 0:  # the others are fed what the one before puts out
                    plugins.check_input(inner)
            except SubjectError as error:
                raise SubjectError(f"stage {inner.subject.name}: {error.reason}", fix=error.fix) from error

    def unavailable(self, case: Case) -> str | None:
        """The first stage that cannot be had, by name."""
        for inner in stage_cases(case):
            subject = plugins.subject(inner.subject.plugin)
            reason = subject.installed().missing or subject.unavailable(inner)
            if reason is not None:
                return f"stage {inner.subject.name}: {reason}"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load every stage; all of them stay loaded, as in use."""
        inner = stage_cases(case)
        prepared = [plugins.subject(one.subject.plugin).prepare(one, device) for one in inner]
        return joined([one.subject.name for one in inner], prepared)


def stage_cases(case: Case) -> list[Case]:
    """The case of each stage: its model, and the axes of the whole with those that the stage sets itself."""
    cases: list[Case] = []
    for index, entry in enumerate(case.subject.options.get("stages", ())):
        plugin, _, source = str(entry["load"]).partition(":")
        extra = {key: value for key, value in entry.items() if key not in ("name", "load")}
        own = {axis.name for axis in plugins.subject(plugin).axes}
        subject = Spec(
            plugin=plugin,
            name=str(entry["name"]),
            source=source,
            options={key: value for key, value in extra.items() if key not in own},
        )
        fed = case.workload if index == 0 else Spec(plugin="cascade", name=cases[-1].subject.name)
        axes = {**case.axes, **{key: value for key, value in extra.items() if key in own}}
        cases.append(replace(case, subject=subject, workload=fed, axes=Axes(axes)))
    return cases


def joined(roles: Sequence[str], prepared: Sequence[Prepared]) -> Prepared:
    """The chains one after another, with glue between them."""
    stages: list[Stage] = []
    fed = _Fed()
    for place, (role, part) in enumerate(zip(roles, prepared, strict=True)):
        links = [_renamed(stage, role, part.modules) for stage in part.stages]
        stages += links if place else [replace(links[0], fn=fed.remembering(links[0].fn)), *links[1:]]
        if place + 1 < len(roles):
            stages.append(Stage(name=f"{role}{BETWEEN}{roles[place + 1]}", fn=fed.glue(role), clocked=False))
    return Prepared(
        stages=tuple(stages),
        modules={name: m for role, part in zip(roles, prepared, strict=True) for name, m in _named(role, part.modules)},
        sync=_each([part.sync for part in prepared]),
        close=_each([part.close for part in prepared]),
        notes=tuple(f"{role}: {note}" for role, part in zip(roles, prepared, strict=True) for note in part.notes),
        data_dependent=any(part.data_dependent for part in prepared),
    )


class _Fed:
    """The batch that a call began with: glue may have to cut it (segments of speech) and keeps its names."""

    def __init__(self) -> None:
        self._first: Batch | None = None

    def remembering(self, first: Callable[[Batch], Any]) -> Callable[[Batch], Any]:
        def remember(batch: Batch) -> Any:
            self._first = batch
            return first(batch)

        return remember

    def glue(self, role: str) -> Callable[[Any], Batch]:
        def between(output: Any) -> Batch:
            assert self._first is not None
            return next_batch(output, self._first, role)

        return between


def _renamed(stage: Stage, role: str, modules: Mapping[str, Any]) -> Stage:
    """The stage under its role; one that names no modules works with none."""
    held = {name: module for name, module in _named(role, modules) if any(module is m for m in stage.modules.values())}
    return replace(stage, name=f"{role}.{stage.name}", modules=held)


def _named(role: str, modules: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(role if len(modules) == 1 else f"{role}.{name}", module) for name, module in modules.items()]


def _each(calls: Sequence[Callable[[], None]]) -> Callable[[], None]:
    def run() -> None:
        for call in calls:
            call()

    return run
