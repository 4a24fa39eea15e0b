"""The meter `timeline`: torch's memory through one step, and what held it at the peak. Imports torch late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.memory_timeline import FILE, Held, MemoryTimeline, write_timeline
from speechmeter.core.protocols import Meter, Phase, Session
from speechmeter.core.scope import MODULE, Scope
from speechmeter.core.traces import ANNOTATION, OPERATOR, STEP, Event, Slice, lane_of, nested
from speechmeter.core.types import Case, Measurement
from speechmeter.meters import torch_missing
from speechmeter.meters.recording.recording import Needs
from speechmeter.meters.recording.session import recording_of

_OUTSIDE = "(outside)"
"""The row of what was allocated outside of all modules."""
_CPU, _CUDA = 0, 1
"""Torch's numbers for kinds of devices."""
_MEMORY = "[memory]"
_ENGINE = "autograd::engine::evaluate_function: "
_MICROSECOND = 1e-6
_MOST_READINGS = 4000
_MOST_OPERATORS = 5


class TimelineMeter(Meter):
    """Bytes of tensors at the peak of a step, by module; over time in an artifact."""

    name = "timeline"
    metrics = (metrics.MEMORY_TENSORS_PEAK, metrics.MEMORY_AT_PEAK)
    phase = Phase.PROFILE

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, whose allocators report to the profiler."""
        return torch_missing()

    def needs(self, session: Session) -> Needs:
        """One step with its allocations, and the modules that made them."""
        return Needs(modules=True, memory=True, traced=1)

    def measure(self, session: Session) -> list[Measurement]:
        """Add up the allocations of the first step that was recorded."""
        recording = recording_of(session, self.needs(session))
        timeline = timeline_of(recording.trace.events, session.case.device)
        if timeline is None:
            return [Measurement.absent(metrics.MEMORY_TENSORS_PEAK, "no tensor was allocated")]
        if session.keep.folder is not None:
            write_timeline(session.keep.folder / FILE, timeline)
        return timeline_rows(timeline, recording.notes)


def timeline_rows(timeline: MemoryTimeline, recorded: Mapping[str, Any] = MappingProxyType({})) -> list[Measurement]:
    """The peak, and what each module held then."""
    costliest = [[one.operator, one.module or _OUTSIDE, one.bytes] for one in timeline.held[:_MOST_OPERATORS]]
    notes = {"start_bytes": timeline.start_bytes, "operators": costliest, **recorded}
    peak = [float(timeline.growth_bytes)]
    return [
        Measurement.of(metrics.MEMORY_TENSORS_PEAK, peak, source="torch.profiler", notes=notes),
        *(
            Measurement.of(metrics.MEMORY_AT_PEAK, [float(size)], scope=Scope.of(MODULE, path))
            for path, size in by_module(timeline.held).items()
        ),
    ]


def by_module(held: Iterable[Held]) -> dict[str, int]:
    """Path → bytes, the largest first."""
    found: dict[str, int] = {}
    for one in held:
        found[one.module or _OUTSIDE] = found.get(one.module or _OUTSIDE, 0) + one.bytes
    return dict(sorted(found.items(), key=lambda item: -item[1]))


@dataclass(frozen=True, kw_only=True)
class _Change:
    """An allocation, or with negative bytes the end of one, and what ran when it was made."""

    at_us: float
    bytes: int
    address: int
    allocated_bytes: int
    reserved_bytes: int
    inside: Slice | None


def timeline_of(events: Sequence[Event], device: Device) -> MemoryTimeline | None:
    """The timeline of the first step in a trace; None when no memory of the device changed in it."""
    slices = nested(events)
    step = next((one for one in slices if one.name.startswith(STEP) and one.category == ANNOTATION), None)
    found = _changes(events, slices, device)
    if step is not None:
        found = [change for change in found if step.start_us <= change.at_us <= step.end_us]
    if not found:
        return None
    begin_us = found[0].at_us if step is None else step.start_us
    on_gpu = device.is_cuda
    start = found[0].allocated_bytes - found[0].bytes if on_gpu else 0
    levels = list(accumulate((change.bytes for change in found), initial=start))[1:]
    top = max(range(len(levels)), key=levels.__getitem__)
    shown = thinned(levels, _MOST_READINGS)
    return MemoryTimeline(
        device=str(device),
        duration_s=((found[-1].at_us if step is None else step.end_us) - begin_us) * _MICROSECOND,
        time_s=[round((found[index].at_us - begin_us) * _MICROSECOND, 9) for index in shown],
        allocated_bytes=[levels[index] for index in shown],
        reserved_bytes=[found[index].reserved_bytes for index in shown] if on_gpu else [],
        start_bytes=start,
        peak_bytes=max(start, levels[top]),
        peak_s=(found[top].at_us - begin_us) * _MICROSECOND if levels[top] > start else 0.0,
        held=_held(found[: top + 1]),
        count=len(found),
    )


def _changes(events: Iterable[Event], slices: Sequence[Slice], device: Device) -> list[_Change]:
    """All changes of one device's memory in order of time, each with the innermost slice it was made in."""
    kind = _CUDA if device.is_cuda else _CPU
    number = (device.index or 0) if device.is_cuda else None
    own = [
        event
        for event in events
        if event.get("name") == _MEMORY
        and event.get("ph") == "i"
        and event["args"].get("Device Type") == kind
        and number in (None, int(event["args"].get("Device Id", 0)))
    ]
    by_lane: dict[tuple[object, object], list[Slice]] = {}
    for one in slices:
        by_lane.setdefault(one.lane, []).append(one)
    reached = dict.fromkeys(by_lane, 0)
    open_: dict[tuple[object, object], Slice | None] = {}
    found: list[_Change] = []
    for event in sorted(own, key=lambda event: float(event["ts"])):
        lane, at_us, args = lane_of(event), float(event["ts"]), event["args"]
        in_lane, inside, index = by_lane.get(lane, []), open_.get(lane), reached.get(lane, 0)
        while index < len(in_lane) and in_lane[index].start_us <= at_us:
            inside, index = in_lane[index], index + 1
        while inside is not None and inside.end_us < at_us:
            inside = inside.parent
        reached[lane], open_[lane] = index, inside
        found.append(
            _Change(
                at_us=at_us,
                bytes=int(args["Bytes"]),
                address=int(args["Addr"]),
                allocated_bytes=int(args["Total Allocated"]),
                reserved_bytes=int(args["Total Reserved"]),
                inside=inside,
            )
        )
    return found


def _held(until_peak: Sequence[_Change]) -> tuple[Held, ...]:
    """What these changes left alive, by module and operator, the largest first."""
    alive: dict[int, _Change] = {}
    for change in until_peak:
        if change.bytes > 0:
            alive[change.address] = change
        else:
            alive.pop(change.address, None)
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for change in alive.values():
        module = (change.inside.module or "") if change.inside is not None else ""
        key = (module, _operator_of(change.inside))
        size, count = sums.get(key, (0, 0))
        sums[key] = (size + change.bytes, count + 1)
    ordered = sorted(sums.items(), key=lambda item: -item[1][0])
    return tuple(Held(bytes=s, count=n, module=module, operator=name) for (module, name), (s, n) in ordered)


def _operator_of(innermost: Slice | None) -> str:
    """The outermost operator below the module's range: `aten::linear` says more than the `aten::empty` inside it."""
    name, here = "", innermost
    while here is not None and (here.category == OPERATOR or not name):
        if here.category == OPERATOR:
            name = here.name.removeprefix(_ENGINE)
        here = here.parent
    return name or (innermost.name if innermost is not None else "")


def thinned(levels: Sequence[int], most: int) -> list[int]:
    """Indices of at most so many readings: of each stretch the first, lowest, highest and last, so no peak is lost."""
    if len(levels) <= most:
        return list(range(len(levels)))
    stretches = most // 4
    kept: set[int] = set()
    for number in range(stretches):
        stretch = range(number * len(levels) // stretches, (number + 1) * len(levels) // stretches)
        kept |= {stretch[0], min(stretch, key=levels.__getitem__), max(stretch, key=levels.__getitem__), stretch[-1]}
    return sorted(kept)
