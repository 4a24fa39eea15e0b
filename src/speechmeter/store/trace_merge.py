"""Several traces in one file, side by side: each keeps its processes, under a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speechmeter.core.traces import Event, Trace

_BASE = "baseTimeNanoseconds"
_FLOW = ("s", "t", "f")


def merged(traces: Mapping[str, Trace], *, keep_time: bool = False) -> Trace:
    """One trace of all. Each begins at zero, or with `keep_time` when it really did, seen from the first of them."""
    events: list[Event] = []
    starts = {name: _start_us(trace) for name, trace in traces.items()}
    origin_us = min(starts.values())
    pids: dict[tuple[str, Any], int] = {}
    for name, trace in traces.items():
        shift_us = _base_us(trace) - (origin_us if keep_time else starts[name])
        events += [_moved(event, name, shift_us, pids) for event in trace.events if event.get("ph") != "M"]
        events += [_renamed(event, name, pids) for event in trace.events if event.get("ph") == "M"]
    named = {(event["pid"]) for event in events if event.get("name") == "process_name"}
    events += [_process_name(pid, f"{name}: {old}") for (name, old), pid in pids.items() if pid not in named]
    return Trace(events=events, facts={"schemaVersion": 1, "displayTimeUnit": "ms", "merged": list(traces)})


def _base_us(trace: Trace) -> float:
    """Times stand against this; traces of one machine may have different ones."""
    return float(trace.facts.get(_BASE, 0)) / 1000


def _start_us(trace: Trace) -> float:
    first = min((float(event["ts"]) for event in trace.events if event.get("ph") == "X"), default=0.0)
    return _base_us(trace) + first


def _moved(event: Event, name: str, shift_us: float, pids: dict[tuple[str, Any], int]) -> Event:
    moved = {**event, "pid": _pid(event, name, pids)}
    if "ts" in event:
        moved["ts"] = round(float(event["ts"]) + shift_us, 3)
    if event.get("ph") in _FLOW:
        moved["id"] = f"{name}:{event.get('id')}"
    return moved


def _renamed(event: Event, name: str, pids: dict[tuple[str, Any], int]) -> Event:
    kept = {key: value for key, value in event.items() if key != "ts"} | {"pid": _pid(event, name, pids)}
    if event.get("name") == "process_name":
        kept["args"] = {"name": f"{name}: {event.get('args', {}).get('name', event.get('pid'))}"}
    return kept


def _pid(event: Event, name: str, pids: dict[tuple[str, Any], int]) -> int:
    return pids.setdefault((name, event.get("pid")), len(pids) + 1)


def _process_name(pid: int, name: str) -> Event:
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
