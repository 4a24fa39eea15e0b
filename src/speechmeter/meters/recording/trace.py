"""Make a profiler's trace fit to be kept: plain names, the module of every operator, slices nested, not too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.core.traces import ANNOTATION, DIRECTION, MODULE, OPERATOR, Event, Slice, Trace, nested
from speechmeter.meters.recording import label
from speechmeter.meters.recording.attribution import Node

OURS = "speechmeter"
"""The key beside the events under which we say what was done to them."""
ID = "External id"
"""What torch calls the number of an event of the CPU, in the event itself and in what a device did for it."""
_FLOW = ("s", "t", "f")
_BASE = "baseTimeNanoseconds"
"""The key beside the events: the moment that their times are counted from."""
_NUMBERS = (ID, "correlation", "Ev Idx")
"""Arguments that number events within one recording."""
_PYTHON = "python_function"
_FINE = (OPERATOR, _PYTHON, "cpu_instant_event")
"""What is left out first of a trace that is too long, the shortest before the longer."""
_PLAIN = {label.MODULE: MODULE, label.LABEL: "label", label.STAGE: "stage", label.CALL: "call"}


def with_modules(trace: Trace, nodes: Sequence[Node]) -> Trace:
    """The trace with `module` and `direction` among the arguments of its slices, where they work for a module."""
    homes = {node.event.id: (node.owner.module, node.direction) for node in nodes if node.owner.module}
    events: list[Event] = []
    for event in trace.events:
        args = event.get("args") or {}
        home = homes.get(args.get(ID, -1)) if event.get("ph") == "X" else None
        events.append(event if home is None else {**event, "args": {**args, MODULE: home[0], DIRECTION: home[1]}})
    return Trace(events=events, facts=trace.facts)


def tidied(trace: Trace) -> Trace:
    """The trace with plain names, slices nested and arrows whole."""
    events = [_plainly(event) for event in trace.events if not str(event.get("name", "")).startswith(label.PARAMETER)]
    _clip(events)
    return replace(trace, events=_whole_flows(events))


def joined(traces: Sequence[Trace]) -> Trace:
    """Recordings of one process, one after another, as one trace on the same lanes, each at its own time."""
    events: list[Event] = []
    lanes: dict[str, Event] = {}
    base_ns, numbered = float(traces[0].facts.get(_BASE, 0)), 0
    for trace in traces:
        shift_us = (float(trace.facts.get(_BASE, 0)) - base_ns) / 1000
        highest = max((_highest(event) for event in trace.events), default=0)
        for event in trace.events:
            if event.get("ph") == "M":
                lanes.setdefault(repr(sorted(event.items(), key=str)), event)
            else:
                # the numbers of a later recording must not be those of an earlier one
                moved = {**event, "ts": event["ts"] + shift_us} if shift_us and "ts" in event else event
                numbers = {key: value + numbered for key, value in _numbers(event).items()} if numbered else {}
                if numbers:
                    moved = {**moved, "args": {**event["args"], **numbers}}
                if numbered and event.get("ph") in _FLOW and _is_number(event.get("id")):
                    moved = {**moved, "id": event["id"] + numbered}
                events.append(moved)
        numbered += highest + 1
    return replace(traces[0], events=[*lanes.values(), *events])


def _numbers(event: Event) -> Mapping[str, Any]:
    return {key: value for key, value in (event.get("args") or {}).items() if key in _NUMBERS and _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and value > 0  # 0 and -1: the profiler does not know


def _highest(event: Event) -> int:
    flow = [event["id"]] if event.get("ph") in _FLOW and _is_number(event.get("id")) else []
    return max([*_numbers(event).values(), *flow], default=0)


def shortened(trace: Trace, most_events: int) -> Trace:
    """A tidied trace as it is kept. Left-out events are counted in its facts, with the length below which they fell."""
    over = len(trace.events) - most_events
    if over <= 0:
        return replace(trace, events=_whole_flows(trace.events), facts={**trace.facts, OURS: {"left_out": 0}})
    fine = sorted(
        (float(event.get("dur", 0.0)), index) for index, event in enumerate(trace.events) if event.get("cat") in _FINE
    )
    gone = {index for _, index in fine[:over]}
    kept = [event for index, event in enumerate(trace.events) if index not in gone]
    facts = {"left_out": len(gone), "shorter_than_us": fine[len(gone) - 1][0] if gone else 0.0}
    return replace(trace, events=_whole_flows(kept), facts={**trace.facts, OURS: facts})


def _plainly(event: Event) -> Event:
    """A range of ours under its plain name, with what it is among its arguments; nothing stays without a name."""
    name = str(event.get("name", ""))
    for prefix, kind in _PLAIN.items():
        if name.startswith(prefix):
            plain = name.removeprefix(prefix)
            category = ANNOTATION if event.get("cat") == OPERATOR else event.get("cat")
            return {**event, "name": plain or kind, "cat": category, "args": {**event.get("args", {}), kind: plain}}
    return event if name else {**event, "name": "(no name)"}


def _clip(events: Sequence[Event]) -> None:
    """Let every slice lie inside the one it begins in, or apart from it.

    Rounding lets some reach a nanosecond too far: they end with the one around them. A range that a function of Python
    opens and leaves open outlives that function: it is the function's slice that ends, where the range begins.
    """
    open_: list[Slice] = []
    for one in nested(events):
        while open_ and (open_[-1].lane != one.lane or open_[-1].end_us <= one.start_us):
            open_.pop()
        while open_ and open_[-1].end_us < one.end_us:
            if open_[-1].category != _PYTHON or one.category == _PYTHON:
                _end(one, open_[-1].end_us)
                break
            _end(open_.pop(), one.start_us)
        open_.append(one)


def _end(one: Slice, at_us: float) -> None:
    one.duration_us = max(0.0, at_us - one.start_us)
    one.event["dur"] = one.duration_us


def _whole_flows(events: Sequence[Event]) -> list[Event]:
    """Without arrows that have lost the slice at one of their ends."""
    starts = {(event.get("pid"), event.get("tid"), event.get("ts")) for event in events if event.get("ph") == "X"}
    ends: dict[tuple[Any, Any], set[str]] = {}
    for event in events:
        if event.get("ph") in _FLOW and (event.get("pid"), event.get("tid"), event.get("ts")) in starts:
            ends.setdefault((event.get("cat"), event.get("id")), set()).add(event["ph"])
    return [
        event
        for event in events
        if event.get("ph") not in _FLOW or ends.get((event.get("cat"), event.get("id")), set()) >= {"s", "f"}
    ]
