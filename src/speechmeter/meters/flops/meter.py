"""The FLOPs meter: counts every stage, on shapes alone where the model allows it. Imports torch when it measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any

from speechmeter.core import metrics
from speechmeter.core.batches import other_content
from speechmeter.core.errors import NeedsValuesError
from speechmeter.core.machine import kib_field
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import ORDINARY, Meter, Phase, Session, Way
from speechmeter.core.scope import MODULE, OPERATOR, STAGE, Scope
from speechmeter.core.stages import made_by, step
from speechmeter.core.types import Batch, Case, Measurement, Stage
from speechmeter.meters import torch_missing

if TYPE_CHECKING:
    from speechmeter.meters.flops.count import Count, Tally

_DEEPEST_MODULE = 5
"""Levels of modules that get a row: `model.wav2vec2.encoder.layers.0` is the fifth."""
_NOT_TORCH = "torch computed nothing{in_it}: code that runs outside torch, and results from a cache, cannot be counted"
_UNKNOWN = "no formula is known for this operator"
_UNSEEN = (
    "torch operators ran in a thread that cannot be followed ({operators}): start the thread inside the call, or use a "
    "ThreadPoolExecutor"
)

COUNTED_ON, BECAUSE, CHECKED, ANOTHER = "counted on", "because", "checked", "another input"
"""Notes of the total: how the count was taken, why not otherwise, how it was checked, and what another call took."""
SHAPES_ALONE, REAL_RUN = "shapes alone", "a real run"
_LONG_S = 5.0
_CHECKED = (metrics.FLOPS.id, metrics.FLOPS_BACKWARD.id)

_FLOP_PER_S, _BYTES_PER_S = 3e10, 3e9
"""What one core of an ordinary processor does."""
_CHEAP_S = 10.0
_CHEAP_BYTES = 4 * 2**30
_WORK = (metrics.FLOPS, metrics.FLOPS_BACKWARD, metrics.BYTES_MOVED)


@contextmanager
def _on_shapes() -> Iterator[None]:
    if find_spec("torch") is None:
        yield
        return
    from speechmeter.meters.flops.shapes_only import shapes_only

    with shapes_only():
        yield


def is_cheap(found: Sequence[Measurement]) -> bool:
    """Whether what was counted on shapes can be counted on a real run too: a few seconds, and memory that is there.

    What operators read and write is more than what weights and activations hold at any moment.
    """
    work = {metric: sum(m.values) for metric in _WORK for m in found if (m.metric, m.scope) == (metric.id, "total")}
    moved = work.pop(metrics.BYTES_MOVED, 0.0)
    seconds = sum(work.values()) / _FLOP_PER_S + moved / _BYTES_PER_S
    free = kib_field("/proc/meminfo", "MemAvailable") or 2 * _CHEAP_BYTES
    return bool(work) and seconds <= _CHEAP_S and moved <= min(_CHEAP_BYTES, free / 2)


SHAPES_THEN_REAL = (Way(around=_on_shapes, warm=False, check_next=is_cheap), *ORDINARY)
"""Shapes alone first; an ordinary run where the model refuses, and as a check where it costs little."""


class FlopsMeter(Meter):
    """Matrix arithmetic, element operations and bytes: total, by stage, module and operator."""

    name = "flops"
    metrics = (metrics.FLOPS, metrics.FLOPS_BACKWARD, metrics.ELEMENT_OPS, metrics.BYTES_MOVED)
    ways = SHAPES_THEN_REAL
    phase = Phase.COUNT

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, whose operators it counts."""
        return torch_missing()

    def measure(self, session: Session) -> list[Measurement]:
        """One count of every batch, after a call that is not counted: values are per call, in the batches' order."""
        how = _how(session)
        started = perf_counter()
        counts = [_count_stages(session, batch) for batch in session.batches]
        stages = [counted for counted, _ in counts]
        made = made_by(session.stages, [outputs for _, outputs in counts])
        unseen = dict.fromkeys(operator for row in stages for count in row for operator in count.unseen)
        if unseen:
            return [Measurement.absent(metrics.FLOPS, _UNSEEN.format(operators=", ".join(unseen))), *made]
        how |= _with_another_input(session, stages[0], started)
        return [
            *_compared(_totals(session.stages, stages, how), session.earlier),
            *_stage_rows(session.stages, stages),
            *_module_and_operator_rows([_clocked(session.stages, row) for row in stages]),
            *made,
        ]


def count_rows(counted: Count) -> list[Measurement]:
    """What the meter would record for one call that was counted elsewhere."""
    stage = Stage(name="call", fn=lambda state: state)
    return [*_totals((stage,), [[counted]], {COUNTED_ON: REAL_RUN}), *_module_and_operator_rows([[counted]])]


def _how(session: Session) -> dict[str, Any]:
    """How the count is taken, for the notes. On shapes alone it also makes the first call, which is not counted."""
    from speechmeter.meters.flops.shapes_only import active

    mode = active()
    if mode is None:
        return {COUNTED_ON: REAL_RUN, **({BECAUSE: session.refused} if session.refused else {})}
    if session.prepared.data_dependent:
        raise NeedsValuesError("the length of the model's output depends on the content of the audio")
    mode.building = False
    mode.pinned = any(stage.pinned_tokens is not None for stage in session.stages)
    _count_stages(session, session.batches[0])  # as everywhere: what a model keeps from its first call is done once
    return {COUNTED_ON: SHAPES_ALONE}


def _compared(totals: list[Measurement], earlier: Sequence[Measurement]) -> list[Measurement]:
    """The totals of a real run, with a note on how the count on shapes alone compares, where there is one."""
    before = {m.metric: m for m in earlier if m.scope == "total"}
    if metrics.FLOPS.id not in before:
        return totals
    differing = [m for m in totals if m.metric in _CHECKED and m.values != before.get(m.metric, m).values]
    if not differing:
        note = {COUNTED_ON: SHAPES_ALONE, CHECKED: "a real run gave the same count"}
    else:
        on_shapes, really = (sum(m.values) for m in (before[differing[0].metric], differing[0]))
        note = {BECAUSE: f"the count on shapes alone differs ({on_shapes:,.0f} instead of {really:,.0f} FLOP)"}
    return [replace(m, notes={**m.notes, **note}) if m.metric == metrics.FLOPS.id else m for m in totals]


def _with_another_input(session: Session, counted: Sequence[Count], started: float) -> dict[str, str]:
    """A note where an input of the same size and other content takes another count: a cache, or values that decide.

    Left out where the counts took long, or where no other input can be made.
    """
    batch = session.batches[0]
    data = other_content(batch.data) if perf_counter() - started < _LONG_S else None
    if data is None:
        return {}
    try:
        again, _ = _count_stages(session, replace(batch, data=data))
    except Exception:  # what is wrong with made-up content says nothing of the model
        return {}
    usual, other = (sum(c.forward for c in _clocked(session.stages, row)) for row in (counted, again))
    return (
        {}
        if usual == other
        else {ANOTHER: f"the FLOPs depend on the content: another input of the same size took {other:,.0f} FLOP"}
    )


def _count_stages(session: Session, batch: Batch) -> tuple[list[Count], list[Any]]:
    """The count of each stage, and their outputs."""
    from speechmeter.meters.flops.count import count
    from speechmeter.meters.flops.running import RunningPath
    from speechmeter.meters.flops.shapes_only import active

    mode = active()
    counts: list[Count] = []
    path = RunningPath()  # of all stages: backward is one, and forward another
    outputs: list[Any] = [batch]
    if mode is not None:
        mode.decided = ""
    for stage in session.stages:
        session.progress(f"flops: {stage.name}")
        if mode is not None:
            # a stage without weights that turns what a model found into text
            mode.writing = stage.name.rpartition(".")[2] == "decode" and not stage.modules
        counts.append(count(partial(step, stage, outputs), session.prepared.modules, path))
        if mode is not None:
            mode.check_refused()
            if stage.tokens is not None and stage.pinned_tokens is not None:
                # On shapes a decoder is steered by invented values: it must still have made what it was pinned to.
                each = stage.pinned_tokens if isinstance(stage.pinned_tokens, int) else stage.pinned_tokens()
                tokens, pinned = stage.tokens(outputs[-1]), each * batch.items
                if tokens != pinned:
                    raise NeedsValuesError(
                        f"the count on shapes alone generated {tokens} tokens instead of the pinned {pinned}"
                    )
    session.sync()
    return counts, outputs[1:]


def _clocked(stages: Sequence[Stage], counts: Sequence[Count]) -> list[Count]:
    return [count for stage, count in zip(stages, counts, strict=True) if stage.clocked]


def _totals(stages: Sequence[Stage], counts: Sequence[Sequence[Count]], how: Mapping[str, Any]) -> list[Measurement]:
    """Over the clocked stages, as the latency is."""
    clocked = [_clocked(stages, row) for row in counts]
    if not any(c.arithmetic for row in clocked for c in row):
        return [Measurement.absent(metrics.FLOPS, _NOT_TORCH.format(in_it=""))]
    silent = [stage.name for stage, c in zip(stages, counts[0], strict=True) if stage.clocked and not c.arithmetic]
    unknown = {name: calls for row in counts for count in row for name, calls in count.unknown().items()}
    notes = {**how, "unknown": unknown, **({"no arithmetic by torch in": silent} if silent else {})}
    found = [
        Measurement.of(metrics.FLOPS, [sum(c.forward for c in row) for row in clocked], source="torch", notes=notes),
        Measurement.of(metrics.ELEMENT_OPS, [sum(c.element_ops for c in row) for row in clocked]),
        Measurement.of(metrics.BYTES_MOVED, [sum(c.bytes for c in row) for row in clocked]),
    ]
    backward = [sum(c.backward for c in row) for row in clocked]
    if any(backward):
        operators = {operator for row in clocked for c in row for operator in c.by_operator()}
        attention = sorted(name for name in operators if "attention" in name and "backward" in name)
        again = [sum(c.recompute for c in row) for row in clocked]
        found.append(
            Measurement.of(metrics.FLOPS_BACKWARD, backward, notes={"recompute": again, "attention": attention})
        )
    return found


def _stage_rows(stages: Sequence[Stage], counts: Sequence[Sequence[Count]]) -> list[Measurement]:
    if len(stages) == 1:
        return []
    found: list[Measurement] = []
    for index, stage in enumerate(stages):
        scope, notes = Scope.of(STAGE, stage.name), {"clocked": stage.clocked}
        column = [row[index] for row in counts]
        if any(count.arithmetic for count in column):
            flops = [count.forward for count in column]
            found.append(Measurement.of(metrics.FLOPS, flops, scope=scope, notes=notes))
        else:
            found.append(Measurement.absent(metrics.FLOPS, _NOT_TORCH.format(in_it=" in it"), scope=scope))
        if any(count.bytes for count in column):
            moved = [count.bytes for count in column]
            found.append(Measurement.of(metrics.BYTES_MOVED, moved, scope=scope, notes=notes))
    return found


def _module_and_operator_rows(batches: Sequence[Sequence[Count]]) -> list[Measurement]:
    """One row for each module and each operator, the mean over the batches; `batches` has the stages of each."""
    from speechmeter.meters.flops.count import together

    counts = [together(row) for row in batches]
    return [
        *_module_rows(metrics.FLOPS, [_shown(count.by_module()) for count in counts]),
        *_module_rows(metrics.FLOPS_BACKWARD, [_shown(count.by_module(backward=True)) for count in counts]),
        *_operator_rows([count.by_operator() for count in counts]),
    ]


def _shown(rows: Mapping[str, Tally]) -> dict[str, Tally]:
    """The modules that get a row, in the order in which they ran, an outer one before those inside it."""
    shown = {path: t for path, t in rows.items() if path and t.flops and path.count(".") < _DEEPEST_MODULE}
    ran = {path: number for number, path in enumerate(shown)}

    def order(path: str) -> list[int]:
        parts = path.split(".")
        return [ran.get(".".join(parts[:depth]), 0) for depth in range(1, len(parts) + 1)]

    return {path: shown[path] for path in sorted(shown, key=order)}


def _module_rows(metric: Metric, batches: Sequence[Mapping[str, Tally]]) -> list[Measurement]:
    return [
        Measurement.of(metric, [sum(t.flops for t in tallies) / len(batches)], scope=Scope.of(MODULE, path))
        for path, tallies in _by_name(batches).items()
    ]


def _operator_rows(batches: Sequence[Mapping[str, Tally]]) -> list[Measurement]:
    """Rows for each operator that computes; one without a figure where it is unknown."""
    from speechmeter.meters.flops.kinds import UNKNOWN

    found: list[Measurement] = []
    for name, tallies in _by_name(batches).items():
        scope, notes = Scope.of(OPERATOR, name), {"kind": tallies[0].kind, "calls": sum(t.calls for t in tallies)}
        totals = {
            metrics.FLOPS: sum(tally.flops for tally in tallies),
            metrics.ELEMENT_OPS: sum(tally.element_ops for tally in tallies),
        }
        for metric, total in totals.items():
            if total:
                found.append(Measurement.of(metric, [total / len(batches)], scope=scope, notes=notes))
        if tallies[0].kind == UNKNOWN:
            found.append(Measurement.absent(metrics.FLOPS, _UNKNOWN, scope=scope, notes=notes))
    return found


def _by_name(batches: Sequence[Mapping[str, Tally]]) -> dict[str, list[Tally]]:
    names = dict.fromkeys(name for batch in batches for name in batch)
    return {name: [batch[name] for batch in batches if name in batch] for name in names}
