"""Where a call's time goes by operator, from a profiled pass: for shares, never for latency. Imports torch late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import ORDINARY, Phase, Session
from speechmeter.core.scope import OPERATOR, OPERATOR_KIND, Scope
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.modules.measurements import gpu_busy
from speechmeter.meters.modules.names import OURS
from speechmeter.meters.modules.tree import Direction, Node
from speechmeter.meters.operator_texts import write_texts
from speechmeter.meters.operator_use import Use, used_by_operators
from speechmeter.meters.recording.needs import Needs
from speechmeter.meters.recording.recording import Recording
from speechmeter.meters.recording.session import on_cuda, one_more_call, recording_of, turns

_NANOSECOND = 1e-9
_DIGITS = 9
_LEAST_SHARE = 0.001
"""Of the time in all operators: what one did for a module is in the record from this share on. The other pairs are nine
in ten; no table shows them, and they would be most of the record."""
_NO_OPERATORS = ("autograd::", "torch::autograd::", *OURS)


class OperatorsMeter:
    """Time in each operator and its kind: matrix arithmetic, elements, moving data, or unknown to the FLOP count."""

    name = "operators"
    metrics = (
        metrics.TIME_OPERATOR,
        metrics.TIME_OPERATOR_TOTAL,
        metrics.MEMORY_OPERATOR,
        metrics.MEMORY_OPERATOR_OWN,
        metrics.TIME_GPU,
    )
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.PROFILE

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, and operators that can be told apart."""
        if find_spec("torch") is None:
            return "operators are torch's, and torch is not installed"
        if case.axes.get("compile"):
            return "compiled code runs fused kernels that carry no operator's name"
        return None

    def needs(self, session: Session) -> Needs:
        """A few calls with a range around every module, whose work operators do."""
        return Needs(modules=True, means=True)

    def measure(self, session: Session) -> list[Measurement]:
        """Rows of the calls that were recorded; the kinds of operators from a count of the first batch.

        Memory is that of one more call, in the first round: recording allocations makes calls longer, and no other
        meter that reads the recording asked for it.
        """
        from speechmeter.meters.flops.count import count

        recording = recording_of(session, self.needs(session))
        counted = count(lambda: session.call(session.batches[0])).by_operator()
        if not counted:
            return [Measurement.absent(metrics.TIME_OPERATOR, "no torch operator ran")]
        memory = [recording] if recording.needs.memory else []
        if session.keep.folder is not None:
            memory = memory or [one_more_call(session, Needs(modules=True, memory=True))]
            write_texts(session.keep.folder, recording, memory=memory[0])
        kinds = {name: tally.kind for name, tally in counted.items()}
        notes = turns(session, recording)
        busy = [gpu_busy(recording.calls, notes, recording.notes)] if on_cuda(session) else []
        return [*operator_rows([recording], kinds, memory), *busy]


def operator_rows(
    recordings: Sequence[Recording], kinds: Mapping[str, str], memory: Sequence[Recording] = ()
) -> list[Measurement]:
    """Time in each operator in the steps of one or several recordings; `kinds` are those of a count.

    On a GPU it is that of the kernels that an operator started, else its own on the CPU. One value a step. `memory` are
    recordings with allocations, those of the device.
    """
    steps = sum(recording.steps for recording in recordings)
    spent = _Spent(steps)
    before = 0
    for recording in recordings:
        for node, step, seconds in _timed(recording):
            name = _credited(node, kinds)
            if name is not None:
                spent.add(name, node.place.module, node.direction, before + step, seconds)
        before += recording.steps
    used = _used(recordings, kinds)
    rows = _rows(spent, kinds, {"calls": steps, **recordings[0].notes}, used)
    listed = [scope.path for scope in (Scope.parse(m.scope) for m in rows) if scope.kind == OPERATOR]
    totals = {name: [ns * _NANOSECOND for ns in used[name].total_ns] for name in listed if name in used}
    return [*rows, *_of_each(metrics.TIME_OPERATOR_TOTAL, totals), *_memory(memory, kinds, listed)]


def _used(recordings: Sequence[Recording], kinds: Mapping[str, str]) -> dict[str, Use]:
    """What each operator used, over the steps of all recordings."""
    found: dict[str, Use] = {}
    before, steps = 0, sum(recording.steps for recording in recordings)
    for recording in recordings:
        own = used_by_operators(
            recording,
            _operator_name,
            lambda node: _credited(node, kinds),
            kernels=recording.on_cuda,
            on_gpu=recording.on_cuda,
        )
        for name, use in own.items():
            found.setdefault(name, Use(steps)).put(before, use)
        before += recording.steps
    return found


def _memory(recordings: Sequence[Recording], kinds: Mapping[str, str], listed: Sequence[str]) -> list[Measurement]:
    used = _used(recordings, kinds)
    held = {name: list(map(float, used[name].bytes)) for name in listed if name in used}
    own = {name: list(map(float, used[name].own_bytes)) for name in listed if name in used}
    return [*_of_each(metrics.MEMORY_OPERATOR, held), *_of_each(metrics.MEMORY_OPERATOR_OWN, own)]


def _of_each(metric: Metric, values: Mapping[str, Sequence[float]]) -> list[Measurement]:
    return [
        Measurement.of(metric, [round(one, _DIGITS) for one in own], scope=Scope.of(OPERATOR, name))
        for name, own in values.items()
    ]


def _operator_name(node: Node) -> str | None:
    """The name of an operator; None for a node of the backward pass, which only holds some."""
    own = node.event.name
    return None if "::" not in own or own.startswith(_NO_OPERATORS) else own


def _timed(recording: Recording) -> Iterator[tuple[Node, int, float]]:
    """Every event with the step it ran in and its seconds, where it has any."""
    by_id = recording.events.kernel_ns()
    for node in recording.nodes:
        if node.event.is_range:
            continue
        own_ns = by_id.get(node.event.id, 0) if recording.on_cuda else node.own_ns()
        step = recording.step_at(node.event.start_ns) if own_ns else None
        if step is not None:
            yield node, step, own_ns * _NANOSECOND


def _credited(node: Node, kinds: Mapping[str, str]) -> str | None:
    """The operator that gets an event's time: the nearest above it that was counted; None for what is no operator."""
    name = _counted_above(node, kinds)
    if name is not None:
        return name
    return _operator_name(node)


def _counted_above(node: Node | None, kinds: Mapping[str, str]) -> str | None:
    while node is not None:
        if node.event.name in kinds:
            return node.event.name
        node = node.parent
    return None


Apart = dict[str, dict[Direction, list[float]]]
"""Seconds of each step by module, empty outside of all, and direction."""


@dataclass
class _Spent:
    """Seconds of every step, by operator, the module whose work it does, and direction."""

    steps: int
    by_name: dict[str, Apart] = field(default_factory=dict)

    def add(self, name: str, module: str, direction: Direction, step: int, seconds: float) -> None:
        apart = self.by_name.setdefault(name, {}).setdefault(module, {})
        apart.setdefault(direction, [0.0] * self.steps)[step] += seconds

    def rounded(self) -> dict[str, Apart]:
        """To the nanosecond, the step of the profiler's clock, so that sums of stored values add up."""
        return {
            name: {
                module: {way: [round(value, _DIGITS) for value in values] for way, values in ways.items()}
                for module, ways in apart.items()
            }
            for name, apart in self.by_name.items()
        }


def _rows(
    spent: _Spent, kinds: Mapping[str, str], notes: Mapping[str, Any], used: Mapping[str, Use]
) -> list[Measurement]:
    from speechmeter.meters.flops.kinds import KINDS

    names = spent.rounded()
    times = {name: _summed([v for ways in own.values() for v in ways.values()]) for name, own in names.items()}
    if not any(map(any, times.values())):
        return [Measurement.absent(metrics.TIME_OPERATOR, "the profiler saw no time in any operator")]
    kind_of = {name: kinds.get(name) or _kind(name) for name in times}
    nothing = [0.0] * spent.steps
    by_kind = {kind: _summed([nothing, *(times[n] for n in times if kind_of[n] == kind)]) for kind in KINDS}
    ordered = sorted(times, key=lambda name: -sum(times[name]))
    least = _LEAST_SHARE * sum(map(sum, times.values()))
    return [
        Measurement.of(metrics.TIME_OPERATOR, _summed(list(times.values())), source="torch.profiler", notes=notes),
        *(
            Measurement.of(metrics.TIME_OPERATOR, own, scope=Scope.of(OPERATOR_KIND, kind))
            for kind, own in by_kind.items()
        ),
        *(
            Measurement.of(
                metrics.TIME_OPERATOR,
                times[name],
                scope=Scope.of(OPERATOR, name),
                notes={"kind": kind_of[name], **_entered(used.get(name)), **_inside(names[name], least)},
            )
            for name in ordered
        ),
    ]


def _entered(use: Use | None) -> dict[str, Any]:
    return {} if use is None else {"calls": sum(use.calls) / len(use.calls)}


def _inside(apart: Apart, least: float) -> dict[str, Any]:
    """What an operator did for each module, the costliest first, without what is too little to be shown."""
    spent = {module: sum(map(sum, ways.values())) for module, ways in apart.items() if module}
    ordered = sorted((module for module in spent if spent[module] >= least), key=lambda module: -spent[module])
    return {"inside": {module: apart[module] for module in ordered}} if ordered else {}


def _summed(rows: Sequence[Sequence[float]]) -> list[float]:
    return [round(sum(values), _DIGITS) for values in zip(*rows, strict=True)]


def _kind(name: str) -> str:
    """The kind of an operator that the count did not meet, because it only calls others."""
    import torch

    from speechmeter.meters.flops.count import has_formula
    from speechmeter.meters.flops.kinds import MATRIX, UNKNOWN, WRAPS, kind_of

    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace, None), operator, None)
    if packet is None or not hasattr(packet, "overloads"):
        return UNKNOWN
    if has_formula(packet):
        return MATRIX
    kind = kind_of(packet)[0]
    return WRAPS if kind == UNKNOWN and _only_calls_others(packet) else kind


def _only_calls_others(packet: Any) -> bool:
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    return any(overload._can_decompose() for overload in overloads)
