"""Several traces side by side in one file: each keeps its processes, under names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speechmeter.core.traces import Event, Trace

_BASE = "baseTimeNanoseconds"
_FLOW = ("s", "t", "f")


def merged(traces: Mapping[str, Trace], *, keep_time: bool = False) -> Trace:
    """One trace of all. Each begins at zero; with `keep_time`, at its true time relative to the first of them."""
    events: list[Event] = []
    starts = {
        name: _base_us(trace)
        + min((float(event["ts"]) for event in trace.events if event.get("ph") == "X"), default=0.0)
        for name, trace in traces.items()
    }
    origin_us = min(starts.values())
    pids: dict[tuple[str, Any], int] = {}
    for name, trace in traces.items():
        shift_us = _base_us(trace) - (origin_us if keep_time else starts[name])
        metadata = []
        for event in trace.events:
            moved = {**event, "pid": pids.setdefault((name, event.get("pid")), len(pids) + 1)}
            if event.get("ph") == "M":
                moved.pop("ts", None)
                if event.get("name") == "process_name":
                    moved["args"] = {"name": f"{name}: {event.get('args', {}).get('name', event.get('pid'))}"}
                metadata.append(moved)
                continue
            if "ts" in event:
                moved["ts"] = round(float(event["ts"]) + shift_us, 3)
            if event.get("ph") in _FLOW:
                moved["id"] = f"{name}:{event.get('id')}"
            events.append(moved)
        events += metadata
    named = {event["pid"] for event in events if event.get("name") == "process_name"}
    events += [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": f"{name}: {old}"}}
        for (name, old), pid in pids.items()
        if pid not in named
    ]
    return Trace(events=events, facts={"schemaVersion": 1, "displayTimeUnit": "ms", "merged": list(traces)})


def _base_us(trace: Trace) -> float:
    """The origin of the trace's times; traces of one machine may have different ones."""
    return float(trace.facts.get(_BASE, 0)) / 1000
