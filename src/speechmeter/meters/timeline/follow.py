"""From a trace with allocations to a timeline: add them up, find the peak, tell who held what. Standard library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from speechmeter.core.device import Device
from speechmeter.core.memory_timeline import Held, MemoryTimeline
from speechmeter.core.traces import ANNOTATION, OPERATOR, STEP, Event, Slice, lane_of, nested

CPU, CUDA = 0, 1
"""Torch's numbers for kinds of devices."""
_MEMORY = "[memory]"
_ENGINE = "autograd::engine::evaluate_function: "
_MICROSECOND = 1e-6
_MOST_READINGS = 4000


@dataclass(frozen=True, kw_only=True)
class Change:
    """An allocation, or with negative bytes the end of one, and what ran when it was made."""

    at_us: float
    bytes: int
    address: int
    allocated_bytes: int
    reserved_bytes: int
    inside: Slice | None


def followed(events: Sequence[Event], device: Device) -> MemoryTimeline | None:
    """The timeline of the first step in a trace; None when no memory of the device changed in it."""
    slices = nested(events)
    step = next((one for one in slices if one.name.startswith(STEP) and one.category == ANNOTATION), None)
    found = [change for change in changes(events, slices, device) if step is None or _during(change, step)]
    if not found:
        return None
    begin_us = found[0].at_us if step is None else step.start_us
    on_gpu = device.is_cuda
    start = found[0].allocated_bytes - found[0].bytes if on_gpu else 0
    levels = _levels(start, found)
    top = max(range(len(levels)), key=levels.__getitem__)
    shown = thinned(levels, _MOST_READINGS)
    peak_s = (found[top].at_us - begin_us) * _MICROSECOND if levels[top] > start else 0.0
    return MemoryTimeline(
        device=str(device),
        duration_s=((found[-1].at_us if step is None else step.end_us) - begin_us) * _MICROSECOND,
        time_s=[round((found[place].at_us - begin_us) * _MICROSECOND, 9) for place in shown],
        allocated_bytes=[levels[place] for place in shown],
        reserved_bytes=[found[place].reserved_bytes for place in shown] if on_gpu else [],
        start_bytes=start,
        peak_bytes=max(start, levels[top]),
        peak_s=peak_s,
        held=held(found[: top + 1]),
        count=len(found),
    )


def changes(events: Iterable[Event], slices: Sequence[Slice], device: Device) -> list[Change]:
    """All changes of one device's memory in order of time, each with the innermost slice it was made in."""
    own = sorted((event for event in events if _is_of(event, device)), key=lambda event: float(event["ts"]))
    return [
        Change(
            at_us=float(event["ts"]),
            bytes=int(event["args"]["Bytes"]),
            address=int(event["args"]["Addr"]),
            allocated_bytes=int(event["args"]["Total Allocated"]),
            reserved_bytes=int(event["args"]["Total Reserved"]),
            inside=inside,
        )
        for event, inside in _innermost(own, slices)
    ]


def _is_of(event: Event, device: Device) -> bool:
    if event.get("name") != _MEMORY or event.get("ph") != "i":
        return False
    number = int(event["args"].get("Device Id", 0))
    if not device.is_cuda:
        return bool(event["args"].get("Device Type") == CPU)
    return bool(event["args"].get("Device Type") == CUDA and number == (device.index or 0))


def _innermost(events: Sequence[Event], slices: Sequence[Slice]) -> Iterator[tuple[Event, Slice | None]]:
    by_lane: dict[tuple[object, object], list[Slice]] = {}
    for one in slices:
        by_lane.setdefault(one.lane, []).append(one)
    reached = dict.fromkeys(by_lane, 0)
    open_: dict[tuple[object, object], Slice | None] = {}
    for event in events:
        lane, at_us = lane_of(event), float(event["ts"])
        own, here = by_lane.get(lane, []), open_.get(lane)
        place = reached.get(lane, 0)
        while place < len(own) and own[place].start_us <= at_us:
            here, place = own[place], place + 1
        while here is not None and here.end_us < at_us:
            here = here.parent
        reached[lane], open_[lane] = place, here
        yield event, here


def _during(change: Change, step: Slice) -> bool:
    return step.start_us <= change.at_us <= step.end_us


def _levels(start: int, found: Sequence[Change]) -> list[int]:
    levels, now = [], start
    for change in found:
        now += change.bytes
        levels.append(now)
    return levels


def held(until_peak: Sequence[Change]) -> tuple[Held, ...]:
    """What these changes left alive, by module and operator, the largest first."""
    alive: dict[int, Change] = {}
    for change in until_peak:
        if change.bytes > 0:
            alive[change.address] = change
        else:
            alive.pop(change.address, None)
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for change in alive.values():
        key = (_module(change), operator_of(change.inside))
        size, count = sums.get(key, (0, 0))
        sums[key] = (size + change.bytes, count + 1)
    ordered = sorted(sums.items(), key=lambda item: -item[1][0])
    return tuple(Held(bytes=s, count=n, module=module, operator=name) for (module, name), (s, n) in ordered)


def _module(change: Change) -> str:
    return (change.inside.module or "") if change.inside is not None else ""


def operator_of(innermost: Slice | None) -> str:
    """The outermost operator below the module's range: `aten::linear` tells more than the `aten::empty` inside it."""
    name, here = "", innermost
    while here is not None and (here.category == OPERATOR or not name):
        if here.category == OPERATOR:
            name = here.name.removeprefix(_ENGINE)
        here = here.parent
    return name or (innermost.name if innermost is not None else "")


def thinned(levels: Sequence[int], most: int) -> list[int]:
    """Places of at most so many readings: of each stretch the first, lowest, highest and last, so no peak is lost."""
    if len(levels) <= most:
        return list(range(len(levels)))
    stretches = most // 4
    kept: set[int] = set()
    for number in range(stretches):
        stretch = range(number * len(levels) // stretches, (number + 1) * len(levels) // stretches)
        kept |= {stretch[0], min(stretch, key=levels.__getitem__), max(stretch, key=levels.__getitem__), stretch[-1]}
    return sorted(kept)
