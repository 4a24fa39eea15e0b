"""Several subjects in a chain, each fed the output of the one before it: recogniser → translator → synthesiser.

Stages carry the role in front: `asr.features`, `asr.model`, `mt.model`. Between two subjects is a stage of its own,
`asr→mt`, which turns an output into the next one's batch; it is outside the clock and has a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.axes import LIVE_AXES, OFFLINE, Axes, Axis, Option, axis_names
from speechmeter.core.batches import text_through
from speechmeter.core.errors import SubjectError
from speechmeter.core.outputs import is_ids
from speechmeter.core.protocol import RepeatsProtocol
from speechmeter.core.protocols import TEXT, Installed, LiveSubject, Prepared
from speechmeter.core.types import Batch, Case, Spec, Speech, Stage
from speechmeter.subjects.common import RATE
from speechmeter.subjects.live.relay import Think, relayed

BETWEEN = "→"
_SHORTEST_S = 0.1


class CascadeSubject:
    """`cascades:` of a plan: a name and a list of stages, each a model as in `models:`."""

    summary = "a chain of other models: `cascades:` in a plan"
    axes: tuple[Axis, ...] = ()
    options = (
        Option(
            name="stages",
            kind=list,
            help="list of at least two models, each with the keys name and load (see the documentation of cascades)",
        ),
    )
    runs_code = False
    takes: tuple[str, ...] = ()

    def installed(self) -> Installed:
        """Always installed; its stages answer for themselves."""
        return Installed(version="built in")

    def check(self, case: Case) -> None:
        """Every stage needs a name of its own, and must be sound."""
        names = [str(stage.get("name", "")) for stage in case.subject.options.get("stages", ())]
        if len(names) < 2:
            raise SubjectError("a cascade needs at least two stages", fix="list them under `stages`")
        for name in names:
            if names.count(name) > 1 or not name or "." in name or BETWEEN in name:
                raise SubjectError(
                    f"the stage name {name!r} is empty, is used twice, or contains a dot or an arrow",
                    fix="give every stage a name of its own",
                )
        for index, inner in enumerate(stage_cases(case)):
            try:
                plugins.subject(inner.subject.plugin).check(inner)
                if index == 0:  # the others are fed by the stage before them
                    plugins.check_input(inner)
            except SubjectError as error:
                raise SubjectError(
                    f"stage {inner.subject.name}: {error.reason}", key=error.key, fix=error.fix
                ) from error

    def unavailable(self, case: Case) -> str | None:
        """Why the first stage that is not available is not, with its name."""
        for inner in stage_cases(case):
            subject = plugins.subject(inner.subject.plugin)
            reason = subject.installed().missing or subject.unavailable(inner)
            if reason is not None:
                return f"stage {inner.subject.name}: {reason}"
        return None

    def not_live(self, case: Case) -> str | None:
        """Live where it is spoken to and speaks: the first and the last model must be able to be live."""
        inner = stage_cases(case)
        for one in (inner[0], inner[-1]):
            subject = plugins.subject(one.subject.plugin)
            if not isinstance(subject, LiveSubject):
                raise SubjectError(
                    f"stage {one.subject.name}: {one.subject.plugin} cannot be measured live",
                    key="pace",
                    fix="use a live recogniser first and a live synthesiser last, or `pace: offline`",
                )
            if (reason := subject.not_live(one)) is not None:
                return f"stage {one.subject.name}: {reason}"
        last = plugins.subject(inner[-1].subject.plugin)
        if TEXT not in last.takes:
            raise SubjectError(
                f"stage {inner[-1].subject.name}: {inner[-1].subject.plugin} does not turn text into speech",
                key="pace",
                fix="use a synthesiser as the last stage, such as piper",
            )
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load every stage; all of them stay loaded, as in use."""
        if case.live is not None and case.axes.pace != OFFLINE:
            return _live(case, device)
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
        axes = Axes({**case.axes, **{key: value for key, value in extra.items() if key in own}})
        cases.append(replace(case, subject=subject, workload=fed, axes=axes))
    return cases


def _live(case: Case, device: str) -> Prepared:
    """Recogniser and synthesiser as conversations, models of text between them as calls."""
    cases = stage_cases(case)
    cases[1:-1] = [_offline(one) for one in cases[1:-1]]
    cases[-1] = replace(cases[-1], workload=Spec(plugin=TEXT, name=TEXT))
    prepared = [plugins.subject(one.subject.plugin).prepare(one, device) for one in cases]
    first, last = prepared[0].live, prepared[-1].live
    if first is None or last is None:
        raise SubjectError("the first or the last stage cannot run live", fix="use `pace: offline`")
    names = [one.subject.name for one in cases]
    return Prepared(
        live=relayed(first, [_thinking(one) for one in prepared[1:-1]], last),
        close=_each([one.close for one in prepared]),
        notes=tuple(f"{name}: {note}" for name, one in zip(names, prepared, strict=True) for note in one.notes),
        data_dependent=True,
    )


def _offline(case: Case) -> Case:
    """The case of a model that is called with a whole text."""
    live = axis_names(LIVE_AXES)
    axes = Axes({name: value for name, value in case.axes.items() if name not in live})
    return replace(case, axes=axes, protocol=RepeatsProtocol(discard=0, samples=1, seed=case.protocol.seed))


def _thinking(prepared: Prepared) -> Think:
    def think(text: str) -> str:
        batch = Batch(data=(text,), items=1, ids=("live",), lengths=(len(text.split()),))
        return text_through(prepared.stages, prepared.sync, batch)

    return think


def _each(calls: Sequence[Callable[[], None]]) -> Callable[[], None]:
    def run() -> None:
        for call in calls:
            call()

    return run


def joined(roles: Sequence[str], prepared: Sequence[Prepared]) -> Prepared:
    """The chains one after another, each fed the output of the one before it."""
    first: list[Batch] = []  # what a call began with: later stages use its names, and segments are cut from its sound

    def remembering(fn: Callable[[Batch], Any]) -> Callable[[Batch], Any]:
        def remember(batch: Batch) -> Any:
            first[:] = [batch]
            return fn(batch)

        return remember

    def between(role: str) -> Callable[[Any], Batch]:
        return lambda output: next_batch(output, first[0], role)

    def named(role: str, modules: Mapping[str, Any]) -> dict[str, Any]:
        return {(role if len(modules) == 1 else f"{role}.{name}"): module for name, module in modules.items()}

    parts = list(zip(roles, prepared, strict=True))
    stages: list[Stage] = []
    for index, (role, part) in enumerate(parts):
        modules = named(role, part.modules)
        for number, stage in enumerate(part.stages):
            own = {name: module for name, module in modules.items() if any(module is m for m in stage.modules.values())}
            fn = stage.fn if index or number else remembering(stage.fn)
            stages.append(replace(stage, name=f"{role}.{stage.name}", modules=own, fn=fn))
        if index + 1 < len(roles):
            stages.append(Stage(name=f"{role}{BETWEEN}{roles[index + 1]}", fn=between(role), clocked=False))
    return Prepared(
        stages=tuple(stages),
        modules={name: module for role, part in parts for name, module in named(role, part.modules).items()},
        sync=_each([part.sync for part in prepared]),
        close=_each([part.close for part in prepared]),
        notes=tuple(f"{role}: {note}" for role, part in parts for note in part.notes),
        data_dependent=any(part.data_dependent for part in prepared),
    )


def next_batch(output: Any, fed: Batch, role: str) -> Batch:
    """The next model's batch: text, token ids, sound, or segments cut from the sound of `fed`, the chain's first batch.

    Raises TypeError when no model takes the output.
    """
    items = output if isinstance(output, list | tuple) else [output]
    names = fed.ids if len(fed.ids) == len(items) else tuple(str(index) for index in range(len(items)))
    if items and all(isinstance(item, str) for item in items):
        lengths = tuple(len(item.split()) for item in items)
        return Batch(data=tuple(items), items=len(items), ids=names, lengths=lengths)
    if items and all(isinstance(item, Speech) for item in items):
        return _sound([_at_rate(item) for item in items], names)
    if items and all(is_ids(item) for item in items):
        rows = tuple(tuple(item) for item in items)
        return Batch(data=rows, items=len(items), ids=names, lengths=tuple(map(len, rows)))
    if items and all(_is_segments(item) for item in items):
        return _segments(items, fed)
    raise TypeError(
        f"the output of {role} is {type(output).__name__}; the next model needs text, token ids, segments or sound"
    )


def _is_segments(item: Any) -> bool:
    """(start, end) in seconds; an item without speech has none."""
    return isinstance(item, list | tuple) and all(isinstance(part, tuple) and len(part) == 2 for part in item)


def _segments(items: Sequence[Sequence[tuple[float, float]]], fed: Batch) -> Batch:
    """Each segment of speech becomes an item; an item without any keeps its first 0.1 s."""
    voices, names = [], []
    for row, stretches in enumerate(items):
        for part, (start, end) in enumerate(stretches or [(0.0, _SHORTEST_S)]):
            cut = fed.data[row, round(start * RATE) : min(round(end * RATE), fed.lengths[row])]
            voices.append(cut if len(cut) else fed.data[row, : round(_SHORTEST_S * RATE)])
            names.append(f"{fed.ids[row]}-{part}" if fed.ids else f"{row}-{part}")
    return _sound(voices, tuple(names))


def _sound(voices: Sequence[Any], names: tuple[str, ...]) -> Batch:
    import numpy as np

    lengths = tuple(max(1, len(voice)) for voice in voices)
    data: Any = np.zeros((len(voices), max(lengths)), dtype=np.float32)
    for row, voice in enumerate(voices):
        data[row, : len(voice)] = voice
    return Batch(
        data=data,
        items=len(voices),
        ids=names,
        lengths=lengths,
        audio_s=sum(lengths) / RATE,
        padded_s=data.size / RATE,
    )


def _at_rate(sound: Speech) -> Any:
    import numpy as np
    import soxr

    samples = np.asarray(sound.samples, dtype=np.float32)
    return samples if sound.rate == RATE else soxr.resample(samples, sound.rate, RATE)
