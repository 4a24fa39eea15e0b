"""Where a call's time goes by operator, from a profiled pass: for shares, never for latency. Imports torch late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import Meter, Phase, Session
from speechmeter.core.scope import OPERATOR, OPERATOR_KIND, Scope
from speechmeter.core.types import Case, Measurement
from speechmeter.meters import torch_missing
from speechmeter.meters.modules import gpu_busy
from speechmeter.meters.operators.use import Use, used_by_operators, write_texts
from speechmeter.meters.recording.attribution import Direction, Node
from speechmeter.meters.recording.label import OURS
from speechmeter.meters.recording.recording import Needs, Recording
from speechmeter.meters.recording.session import one_more_call, recording_of, turns

_NANOSECOND = 1e-9
_DIGITS = 9
"""Values are rounded to the nanosecond, the step of the profiler's clock, so that sums of stored values add up."""
_LEAST_SHARE = 0.001
"""Of the time in all operators: what one did for a module is in the record from this share on. The other pairs are nine
in ten; no table shows them, and they would be most of the record."""
_NO_OPERATORS = ("autograd::", "torch::autograd::", *OURS)

Apart = dict[str, dict[Direction, list[float]]]
"""Seconds of each step by module, empty outside of all, and direction."""


class OperatorsMeter(Meter):
    """Time in each operator and its kind: matrix arithmetic, elements, moving data, or unknown to the FLOP count."""

    name = "operators"
    metrics = (
        metrics.TIME_OPERATOR,
        metrics.TIME_OPERATOR_TOTAL,
        metrics.MEMORY_OPERATOR,
        metrics.MEMORY_OPERATOR_OWN,
        metrics.TIME_GPU,
    )
    phase = Phase.PROFILE

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, and operators that can be distinguished."""
        if case.axes.compile:
            return torch_missing() or "compiled code runs fused kernels, which cannot be assigned to operators"
        return torch_missing()

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
        busy = [gpu_busy(recording.calls, notes, recording.notes)] if session.case.device.is_cuda else []
        return [*operator_rows([recording], kinds, memory), *busy]


def operator_rows(
    recordings: Sequence[Recording], kinds: Mapping[str, str], memory: Sequence[Recording] = ()
) -> list[Measurement]:
    """Time in each operator in the steps of one or several recordings; `kinds` are those of a count.

    On a GPU it is the time of the kernels that an operator started, else its own on the CPU. One value a step. `memory`
    are recordings with allocations, those of the device.
    """
    spent = _spent(recordings, kinds)
    times = {name: _summed([v for ways in own.values() for v in ways.values()]) for name, own in spent.items()}
    used = _used(recordings, kinds)
    rows: list[Measurement] = []
    if any(map(any, times.values())):
        rows += _time_rows(spent, times, kinds, used, recordings)
    else:
        rows.append(Measurement.absent(metrics.TIME_OPERATOR, "the profiler saw no time in any operator"))
    listed = [scope.path for scope in (Scope.parse(m.scope) for m in rows) if scope.kind == OPERATOR]
    held = _used(memory, kinds)
    return [
        *rows,
        *_one_each(
            metrics.TIME_OPERATOR_TOTAL,
            {name: [ns * _NANOSECOND for ns in used[name].total_ns] for name in listed if name in used},
        ),
        *_one_each(metrics.MEMORY_OPERATOR, {name: held[name].bytes for name in listed if name in held}),
        *_one_each(metrics.MEMORY_OPERATOR_OWN, {name: held[name].own_bytes for name in listed if name in held}),
    ]


def _one_each(metric: Metric, values: Mapping[str, Sequence[float]]) -> list[Measurement]:
    return [
        Measurement.of(metric, [round(float(one), _DIGITS) for one in own], scope=Scope.of(OPERATOR, name))
        for name, own in values.items()
    ]


def _spent(recordings: Sequence[Recording], kinds: Mapping[str, str]) -> dict[str, Apart]:
    """Seconds by operator, the module whose work it does, direction, and step over all recordings."""
    found: dict[str, Apart] = {}
    before, steps = 0, sum(recording.steps for recording in recordings)
    for recording in recordings:
        kernel_ns = recording.events.kernel_ns()
        for node in recording.nodes:
            if node.event.is_range:
                continue
            own_ns = kernel_ns.get(node.event.id, 0) if recording.on_cuda else node.own_ns()
            step = recording.step_at(node.event.start_ns) if own_ns else None
            name = _credited(node, kinds) if step is not None else None
            if step is None or name is None:
                continue
            by_direction = found.setdefault(name, {}).setdefault(node.owner.module, {})
            by_direction.setdefault(node.direction, [0.0] * steps)[before + step] += own_ns * _NANOSECOND
        before += recording.steps
    for by_module in found.values():
        for by_direction in by_module.values():
            for values in by_direction.values():
                values[:] = [round(value, _DIGITS) for value in values]
    return found


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


def _operator_name(node: Node) -> str | None:
    """The name of an operator; None for a node of the backward pass, which only holds some."""
    own = node.event.name
    return None if "::" not in own or own.startswith(_NO_OPERATORS) else own


def _credited(node: Node, kinds: Mapping[str, str]) -> str | None:
    """The operator that gets an event's time: the nearest above it that was counted; None for what is no operator."""
    above: Node | None = node
    while above is not None:
        if above.event.name in kinds:
            return above.event.name
        above = above.parent
    return _operator_name(node)


def _time_rows(
    spent: Mapping[str, Apart],
    times: Mapping[str, Sequence[float]],
    kinds: Mapping[str, str],
    used: Mapping[str, Use],
    recordings: Sequence[Recording],
) -> list[Measurement]:
    """The time in all operators, in each kind of them, and in each one, the costliest first."""
    from speechmeter.meters.flops.kinds import KINDS

    steps = sum(recording.steps for recording in recordings)
    kind_of = {name: kinds.get(name) or _kind(name) for name in times}
    rows = [
        Measurement.of(
            metrics.TIME_OPERATOR,
            _summed(list(times.values())),
            source="torch.profiler",
            notes={"calls": steps, **recordings[0].notes},
        )
    ]
    for kind in KINDS:
        own = _summed([[0.0] * steps, *(times[name] for name in times if kind_of[name] == kind)])
        rows.append(Measurement.of(metrics.TIME_OPERATOR, own, scope=Scope.of(OPERATOR_KIND, kind)))
    least = _LEAST_SHARE * sum(map(sum, times.values()))
    for name in sorted(times, key=lambda name: -sum(times[name])):
        notes: dict[str, Any] = {"kind": kind_of[name]}
        if name in used:
            notes["calls"] = sum(used[name].calls) / len(used[name].calls)
        # what it did for each module, the costliest first, without what is too little to be shown
        inside = {module: sum(map(sum, ways.values())) for module, ways in spent[name].items() if module}
        shown = sorted((module for module in inside if inside[module] >= least), key=lambda module: -inside[module])
        if shown:
            notes["inside"] = {module: spent[name][module] for module in shown}
        rows.append(Measurement.of(metrics.TIME_OPERATOR, times[name], scope=Scope.of(OPERATOR, name), notes=notes))
    return rows


def _summed(rows: Sequence[Sequence[float]]) -> list[float]:
    return [round(sum(values), _DIGITS) for values in zip(*rows, strict=True)]


def _kind(name: str) -> str:
    """The kind of an operator that the count did not meet, because it only calls others."""
    import torch

    from speechmeter.meters.flops.formulas import has_formula
    from speechmeter.meters.flops.kinds import MATRIX, UNKNOWN, WRAPS, kind_of

    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace, None), operator, None)
    if packet is None or not hasattr(packet, "overloads"):
        return UNKNOWN
    if has_formula(packet):
        return MATRIX
    kind = kind_of(packet)[0]
    if kind == UNKNOWN and any(getattr(packet, overload)._can_decompose() for overload in packet.overloads()):
        return WRAPS
    return kind
