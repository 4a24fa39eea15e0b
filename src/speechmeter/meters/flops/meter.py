"""The FLOPs meter: counts every stage, on shapes alone where the model allows it. Imports torch when it measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from speechmeter.core import metrics
from speechmeter.core.errors import NeedsValuesError
from speechmeter.core.metrics import Metric
from speechmeter.core.other_content import other_content
from speechmeter.core.protocols import Phase, Session
from speechmeter.core.scope import MODULE, OPERATOR, STAGE, Scope
from speechmeter.core.stages import made_by, step
from speechmeter.core.types import Batch, Case, Measurement, Stage
from speechmeter.meters.shapes import SHAPES_THEN_REAL

if TYPE_CHECKING:
    from speechmeter.meters.flops.count import Count, Tally

_DEEPEST_MODULE = 5
"""Levels of modules that get a row: `model.wav2vec2.encoder.layers.0` is the fifth."""
_NOT_TORCH = "torch computed nothing in it: what runs outside torch, or comes from a cache, cannot be counted"
_UNKNOWN = "there is no formula for this operator"
_UNSEEN = (
    "torch operators ran in a thread that cannot be followed ({operators}): start the thread inside the call, or use a "
    "ThreadPoolExecutor"
)


COUNTED_ON, BECAUSE, CHECKED, ANOTHER = "counted on", "because", "checked", "another input"
"""Notes of the total: how the count was taken, why not otherwise, how it was checked, and what another call took."""
_LONG_S = 5.0
SHAPES_ALONE, REAL_RUN = "shapes alone", "a real run"
_CHECKED = (metrics.FLOPS.id, metrics.FLOPS_BACKWARD.id)


class FlopsMeter:
    """Matrix arithmetic, element operations and bytes: total, by stage, module and operator."""

    name = "flops"
    metrics = (metrics.FLOPS, metrics.FLOPS_BACKWARD, metrics.ELEMENT_OPS, metrics.BYTES_MOVED)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = SHAPES_THEN_REAL
    phase = Phase.COUNT

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, whose operators it counts."""
        return None if find_spec("torch") else "FLOPs are counted by torch operators, and torch is not installed"

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
            *_stages(session.stages, stages),
            *_module_rows(metrics.FLOPS, [_modules(_clocked(session.stages, s)) for s in stages]),
            *_module_rows(metrics.FLOPS_BACKWARD, [_modules_backward(_clocked(session.stages, s)) for s in stages]),
            *_operator_rows([_operators(_clocked(session.stages, s)) for s in stages]),
            *made,
        ]


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
    return {} if usual == other else {ANOTHER: f"another input of the same size took {other:,.0f} FLOP"}


def count_rows(counted: Count) -> list[Measurement]:
    """What the meter would record of one call that somebody else has counted."""
    stage = Stage(name="call", fn=lambda state: state)
    return [
        *_totals((stage,), [[counted]], {COUNTED_ON: REAL_RUN}),
        *_module_rows(metrics.FLOPS, [_modules([counted])]),
        *_module_rows(metrics.FLOPS_BACKWARD, [_modules_backward([counted])]),
        *_operator_rows([_operators([counted])]),
    ]


def _how(session: Session) -> dict[str, Any]:
    """How the count is taken, for the notes. On shapes alone it also makes the first call, which is not counted."""
    from speechmeter.meters.flops.shapes_only import active

    mode = active()
    if mode is None:
        return {COUNTED_ON: REAL_RUN, **({BECAUSE: session.refused} if session.refused else {})}
    if session.prepared.data_dependent:
        raise NeedsValuesError("how long its output gets depends on what it hears")
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
        note = {BECAUSE: f"the count on shapes alone is another one ({on_shapes:,.0f} instead of {really:,.0f} FLOP)"}
    return [replace(m, notes={**m.notes, **note}) if m.metric == metrics.FLOPS.id else m for m in totals]


def _count_stages(session: Session, batch: Batch) -> tuple[list[Count], list[Any]]:
    from speechmeter.meters.flops.count import RunningPath, count
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
            mode.writing = _only_writes(stage)
        counts.append(count(partial(step, stage, outputs), session.prepared.modules, path))
        if mode is not None:
            mode.check_refused()
            _check_tokens(stage, outputs[-1], batch.items)
    session.sync()
    return counts, outputs[1:]


def _only_writes(stage: Stage) -> bool:
    """Whether a stage turns what a model found into text, and has no weights to compute anything with."""
    return stage.name.rpartition(".")[2] == "decode" and not stage.modules


def _check_tokens(stage: Stage, output: Any, items: int) -> None:
    """On shapes alone a decoder is steered by invented values: it must still have made what it was pinned to."""
    if stage.tokens is None or stage.pinned_tokens is None:
        return
    each = stage.pinned_tokens if isinstance(stage.pinned_tokens, int) else stage.pinned_tokens()
    tokens, pinned = stage.tokens(output), each * items
    if tokens != pinned:
        raise NeedsValuesError(f"{tokens} tokens were made on shapes alone where {pinned} are pinned")


def _totals(stages: Sequence[Stage], counts: Sequence[Sequence[Count]], how: Mapping[str, Any]) -> list[Measurement]:
    """Over the clocked stages, as the latency is."""
    clocked = [_clocked(stages, row) for row in counts]
    if not any(c.arithmetic for row in clocked for c in row):
        return [Measurement.absent(metrics.FLOPS, _NOT_TORCH.replace(" in it", ""))]
    unseen = [stage.name for stage, c in zip(stages, counts[0], strict=True) if stage.clocked and not c.arithmetic]
    notes = {**how, "unknown": _unknown(counts), **({"no arithmetic by torch in": unseen} if unseen else {})}
    found = [
        Measurement.of(metrics.FLOPS, [_sum(row, "forward") for row in clocked], source="torch", notes=notes),
        Measurement.of(metrics.ELEMENT_OPS, [_sum(row, "element_ops") for row in clocked]),
        Measurement.of(metrics.BYTES_MOVED, [_sum(row, "bytes") for row in clocked]),
    ]
    backward = [_sum(row, "backward") for row in clocked]
    if any(backward):
        again = [_sum(row, "recompute") for row in clocked]
        attention = sorted({op for row in clocked for c in row for op in c.by_operator() if _is_attention_backward(op)})
        found.append(
            Measurement.of(metrics.FLOPS_BACKWARD, backward, notes={"recompute": again, "attention": attention})
        )
    return found


def _clocked(stages: Sequence[Stage], counts: Sequence[Count]) -> list[Count]:
    return [count for stage, count in zip(stages, counts, strict=True) if stage.clocked]


def _is_attention_backward(operator: str) -> bool:
    return "attention" in operator and "backward" in operator


def _sum(counts: Iterable[Count], what: str) -> float:
    return float(sum(getattr(count, what) for count in counts))


def _unknown(counts: Sequence[Sequence[Count]]) -> dict[str, int]:
    return {name: calls for row in counts for count in row for name, calls in count.unknown().items()}


def _stages(stages: Sequence[Stage], counts: Sequence[Sequence[Count]]) -> list[Measurement]:
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
            found.append(Measurement.absent(metrics.FLOPS, _NOT_TORCH, scope=scope))
        if any(count.bytes for count in column):
            moved = [count.bytes for count in column]
            found.append(Measurement.of(metrics.BYTES_MOVED, moved, scope=scope, notes=notes))
    return found


def _modules(counts: Iterable[Count]) -> dict[str, Tally]:
    return _shown(_together(counts).by_module())


def _modules_backward(counts: Iterable[Count]) -> dict[str, Tally]:
    return _shown(_together(counts).by_module_backward())


def _shown(rows: Mapping[str, Tally]) -> dict[str, Tally]:
    shown = {path: t for path, t in rows.items() if path and t.flops and path.count(".") < _DEEPEST_MODULE}
    ran = {path: place for place, path in enumerate(shown)}
    return {path: shown[path] for path in sorted(shown, key=lambda path: [ran.get(outer, 0) for outer in _outer(path)])}


def _outer(path: str) -> list[str]:
    """`a`, `a.b`, `a.b.c` of `a.b.c`: in this order a module stands before those inside it."""
    parts = path.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _operators(counts: Iterable[Count]) -> dict[str, Tally]:
    return _together(counts).by_operator()


def _together(counts: Iterable[Count]) -> Count:
    from speechmeter.meters.flops.count import together

    return together(counts)


def _module_rows(metric: Metric, batches: Sequence[Mapping[str, Tally]]) -> list[Measurement]:
    """One row for each module, the mean over the batches."""
    return [
        Measurement.of(metric, [sum(t.flops for t in tallies) / len(batches)], scope=Scope.of(MODULE, path))
        for path, tallies in _by_name(batches).items()
    ]


def _operator_rows(batches: Sequence[Mapping[str, Tally]]) -> list[Measurement]:
    """Rows for each operator that computes, the mean over the batches; one without a figure where it is unknown."""
    from speechmeter.meters.flops.kinds import UNKNOWN

    found: list[Measurement] = []
    for name, tallies in _by_name(batches).items():
        scope, notes = Scope.of(OPERATOR, name), {"kind": tallies[0].kind, "calls": sum(t.calls for t in tallies)}
        totals = {metrics.FLOPS: "flops", metrics.ELEMENT_OPS: "element_ops"}
        for metric, what in totals.items():
            if total := sum(getattr(tally, what) for tally in tallies):
                found.append(Measurement.of(metric, [total / len(batches)], scope=scope, notes=notes))
        if tallies[0].kind == UNKNOWN:
            found.append(Measurement.absent(metrics.FLOPS, _UNKNOWN, scope=scope, notes=notes))
    return found


def _by_name(batches: Sequence[Mapping[str, Tally]]) -> dict[str, list[Tally]]:
    names = dict.fromkeys(name for batch in batches for name in batch)
    return {name: [batch[name] for batch in batches if name in batch] for name in names}
