"""Make a profiler's trace fit to be kept: our ranges by their plain names, slices nested, not too many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from speechmeter.core.traces import ANNOTATION, MODULE, OPERATOR, Event, Slice, Trace, nested
from speechmeter.meters.modules import names

OURS = "speechmeter"
"""The key beside the events under which we say what was done to them."""
_FLOW = ("s", "t", "f")
_PYTHON = "python_function"
_FINE = (OPERATOR, _PYTHON, "cpu_instant_event")
"""What is left out first of a trace that is too long, the shortest before the longer."""
_PLAIN = {names.MODULE: MODULE, names.LABEL: "label", names.STAGE: "stage", names.CALL: "call"}


def tidied(trace: Trace, *, most_events: int | None = None) -> Trace:
    """The trace as it is kept. Left-out events are counted in its facts, with the length below which they fell."""
    events = [_plainly(event) for event in trace.events if not _is_mark(event)]
    events, facts = _bounded(events, most_events)
    _clip(events)
    return replace(trace, events=_whole_flows(events), facts={**trace.facts, OURS: facts})


def _is_mark(event: Event) -> bool:
    return str(event.get("name", "")).startswith(names.PARAMETER)


def _plainly(event: Event) -> Event:
    """A range of ours under its plain name, with what it is among its arguments; nothing stays without a name."""
    name = str(event.get("name", ""))
    for prefix, kind in _PLAIN.items():
        if name.startswith(prefix):
            plain = name.removeprefix(prefix)
            category = ANNOTATION if event.get("cat") == OPERATOR else event.get("cat")
            return {**event, "name": plain or kind, "cat": category, "args": {**event.get("args", {}), kind: plain}}
    return event if name else {**event, "name": "(no name)"}


def _bounded(events: list[Event], most: int | None) -> tuple[list[Event], dict[str, Any]]:
    over = 0 if most is None else len(events) - most
    if over <= 0:
        return events, {"left_out": 0}
    fine = sorted(
        (float(event.get("dur", 0.0)), place) for place, event in enumerate(events) if event.get("cat") in _FINE
    )
    gone = {place for _, place in fine[:over]}
    kept = [event for place, event in enumerate(events) if place not in gone]
    return kept, {"left_out": len(gone), "shorter_than_us": fine[len(gone) - 1][0] if gone else 0.0}


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
