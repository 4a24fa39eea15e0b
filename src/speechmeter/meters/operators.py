"""Where a call's time goes by operator, from a profiled pass: for shares, never for latency. Imports torch late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.protocols import MAIN, ORDINARY, Session
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.modules.events import Events, events_of
from speechmeter.meters.modules.names import OURS
from speechmeter.meters.operator_texts import write_texts

_CALLS = 3
_SLOW_NS = 5 * 10**9
_MICROSECOND = 1e-6
_NO_OPERATORS = ("autograd::", "torch::autograd::", "cuda", *OURS)
_MOST_PLACED = 50
"""So many operators have a row for the module they work for."""
_LEAST_SHARE = 0.0001
"""Operators below this share of the time have no row, unless nobody knows what they compute."""


class OperatorsMeter:
    """Time in each operator and its kind: matrix arithmetic, elements, moving data, or unknown to the FLOP count."""

    name = "operators"
    metrics = (metrics.TIME_OPERATOR, metrics.TIME_GPU)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY

    def process(self, case: Case) -> str:
        """Shares the main process; list it last, because it profiles."""
        return MAIN

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, and operators that can be told apart."""
        if find_spec("torch") is None:
            return "operators are torch's, and torch is not installed"
        if case.axes.get("compile"):
            return "compiled code runs fused kernels that carry no operator's name"
        return None

    def measure(self, session: Session) -> list[Measurement]:
        """A count of the first batch for the kinds of its operators, then a profiled pass over the same batch."""
        from speechmeter.meters.flops.count import count

        batch = session.batches[0]
        counted = count(lambda: session.call(batch)).by_operator()
        if not counted:
            return [Measurement.absent(metrics.TIME_OPERATOR, "no torch operator ran")]
        calls = _CALLS if session.first_ns < _SLOW_NS else 1
        on_cuda = str(session.case.axes["device"]).startswith("cuda")
        finished = _profiled(session, calls, on_cuda)
        raw = events_of(finished)
        if session.keep.folder is not None:
            from speechmeter.meters.traces.record import finished_trace

            write_texts(session.keep.folder, finished, finished_trace(finished, raw))
        kinds = {name: tally.kind for name, tally in counted.items()}
        gpu = _gpu_time(finished.events(), calls) if on_cuda else []
        return [*operator_rows([(finished, raw)], kinds, calls, on_cuda=on_cuda), *gpu]


@dataclass
class _Row:
    kind: str
    seconds: float = 0.0


Rows = dict[tuple[str, str], _Row]
"""By operator and the module whose work it does; that is empty outside of all."""


def _profiled(session: Session, calls: int, on_cuda: bool) -> Any:
    from torch.profiler import ProfilerActivity, profile

    from speechmeter.meters.modules.ranges import module_ranges

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_cuda else [])]
    session.call(session.batches[0])
    with module_ranges(session.prepared.modules), profile(activities=activities) as profiled:
        for _ in range(calls):
            session.call(session.batches[0])
    return profiled


def operator_rows(
    profiles: Sequence[tuple[Any, Events]], kinds: Mapping[str, str], calls: int, *, on_cuda: bool
) -> list[Measurement]:
    """Time in each operator of finished profiles, with their raw events, of so many calls together.

    `kinds` are those that a count has told.
    """
    from speechmeter.meters.traces.places import homes_of

    rows: Rows = {}
    for finished, raw in profiles:
        homes = {key: home[0] for key, home in homes_of(raw).items()}
        for key, row in _credited(finished.events(), kinds, on_cuda, homes).items():
            rows.setdefault(key, _Row(kind=row.kind)).seconds += row.seconds
    return _rows(rows, calls)


def _credited(events: Iterable[Any], kinds: Mapping[str, str], on_cuda: bool, homes: Mapping[int, str]) -> Rows:
    """Own time of every event, given to the nearest operator above it that the count knows."""
    from torch.autograd import DeviceType

    rows: Rows = {}
    for event in events:
        own = (event.self_device_time_total if on_cuda else event.self_cpu_time_total) * _MICROSECOND
        if event.device_type != DeviceType.CPU or not own:
            continue
        name = _counted_above(event, kinds)
        if name is None:
            if "::" not in event.name or event.name.startswith(_NO_OPERATORS):
                continue  # a range, a backward node, a call of the runtime: what they hold are events of their own
            name = event.name
        key = (name, homes.get(event.id, ""))
        if key not in rows:
            rows[key] = _Row(kind=kinds.get(name) or _kind(name))
        rows[key].seconds += own
    return rows


def _counted_above(event: Any, kinds: Mapping[str, str]) -> str | None:
    while event is not None:
        if event.name in kinds:
            return str(event.name)
        event = event.cpu_parent
    return None


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


def _rows(rows: Rows, calls: int) -> list[Measurement]:
    from speechmeter.meters.flops.kinds import KINDS

    total = sum(row.seconds for row in rows.values())
    if not total:
        return [Measurement.absent(metrics.TIME_OPERATOR, "the profiler saw no time in any operator")]
    by_kind = dict.fromkeys(KINDS, 0.0)
    by_name: dict[str, _Row] = {}
    for (name, _), row in rows.items():
        by_kind[row.kind] += row.seconds
        by_name.setdefault(name, _Row(kind=row.kind)).seconds += row.seconds
    ordered = sorted(by_name.items(), key=lambda item: -item[1].seconds)
    return [
        Measurement.of(metrics.TIME_OPERATOR, [total / calls], source="torch.profiler"),
        *(
            Measurement.of(metrics.TIME_OPERATOR, [time / calls], scope=f"kind:{kind}")
            for kind, time in by_kind.items()
        ),
        *(
            Measurement.of(metrics.TIME_OPERATOR, [row.seconds / calls], scope=f"op:{name}", notes={"kind": row.kind})
            for name, row in ordered
            if row.kind == "unknown" or row.seconds >= _LEAST_SHARE * total
        ),
        *_by_module(rows, calls),
    ]


def _by_module(rows: Rows, calls: int) -> list[Measurement]:
    """The costliest operators with the module they work for: `op:aten::addmm@encoder.layers.0`."""
    placed = sorted(((key, row) for key, row in rows.items() if key[1]), key=lambda item: -item[1].seconds)
    return [
        Measurement.of(
            metrics.TIME_OPERATOR,
            [row.seconds / calls],
            scope=f"op:{name}@{module}",
            notes={"kind": row.kind, "module": module},
        )
        for (name, module), row in placed[:_MOST_PLACED]
    ]


def _gpu_time(events: Iterable[Any], calls: int) -> list[Measurement]:
    """Time in which at least one kernel ran: overlapping ones count once."""
    from torch.autograd import DeviceType

    spans = sorted(
        (event.time_range.start, event.time_range.end) for event in events if event.device_type == DeviceType.CUDA
    )
    if not spans:
        return [Measurement.absent(metrics.TIME_GPU, "the profiler saw no kernel")]
    busy, until = 0.0, 0.0
    for start, end in spans:
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    return [Measurement.of(metrics.TIME_GPU, [busy * _MICROSECOND / calls], source="torch.profiler")]
