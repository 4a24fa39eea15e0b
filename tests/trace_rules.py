"""The rules of the Trace Event format that a trace of ours must keep, and every breach of them in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

PHASES = set("XBEisftMCP")
ROUNDING_US = 0.002
"""Times are doubles of some 10^12 µs: their last digit is half a nanosecond."""


def breaches(events: Sequence[dict[str, Any]]) -> list[str]:
    """What is wrong: slices without name or length, out of nest, begun and never ended, arrows with one end."""
    return [*_malformed(events), *_unbalanced(events), *_crossing(events), *_loose_arrows(events)]


def _malformed(events: Iterable[dict[str, Any]]) -> list[str]:
    found = []
    for event in events:
        if event.get("ph") not in PHASES:
            found.append(f"unknown phase: {event}")
        elif not event.get("name") or not isinstance(event["name"], str):
            found.append(f"no name: {event}")
        elif event["ph"] != "M" and not isinstance(event.get("ts"), int | float):
            found.append(f"no time: {event}")
        elif event["ph"] == "X" and not (isinstance(event.get("dur"), int | float) and event["dur"] >= 0):
            found.append(f"no duration: {event}")
        elif "pid" not in event or "tid" not in event:
            found.append(f"no lane: {event}")
    return found


def _unbalanced(events: Iterable[dict[str, Any]]) -> list[str]:
    open_: dict[Any, list[str]] = {}
    found = []
    for event in sorted((e for e in events if e.get("ph") in "BE"), key=lambda e: e["ts"]):
        stack = open_.setdefault((event["pid"], event["tid"]), [])
        if event["ph"] == "B":
            stack.append(event["name"])
        elif not stack or stack.pop() != event["name"]:
            found.append(f"ends without beginning: {event}")
    return found + [f"never ends: {name}" for stack in open_.values() for name in stack]


def _crossing(events: Iterable[dict[str, Any]]) -> list[str]:
    """Two slices of a lane lie apart or one inside the other: judged edge by edge, by a stack of ends."""
    lanes: dict[Any, list[tuple[float, float, str]]] = {}
    for event in events:
        if event.get("ph") == "X":
            lane = lanes.setdefault((event["pid"], event["tid"]), [])
            lane.append((float(event["ts"]), float(event["ts"]) + float(event["dur"]), event["name"]))
    found = []
    for lane in lanes.values():
        ends: list[float] = []
        for start, end, name in sorted(lane, key=lambda one: (one[0], -one[1])):
            while ends and ends[-1] <= start:
                ends.pop()
            if ends and end > ends[-1] + ROUNDING_US:
                found.append(f"{name} reaches beyond the slice it began in")
            ends.append(end)
    return found


def _loose_arrows(events: Iterable[dict[str, Any]]) -> list[str]:
    ends: dict[Any, list[str]] = {}
    for event in events:
        if event.get("ph") in ("s", "f"):
            ends.setdefault((event.get("cat"), event.get("id")), []).append(event["ph"])
    return [f"arrow {key} has {sorted(kinds)}" for key, kinds in ends.items() if set(kinds) != {"s", "f"}]
