"""Stacks for flame graphs, one line each: what was open, outermost first, and the microseconds spent there alone."""

from __future__ import annotations

from collections.abc import Iterable

from speechmeter.core.traces import ANNOTATION, DIRECTION, MODULE, OPERATOR, Event, Slice, nested

REST = "(shorter stacks)"
_FRAMES = (OPERATOR, ANNOTATION, "python_function", "cuda_runtime", "cuda_driver")


def stacks(events: Iterable[Event]) -> dict[str, float]:
    """`step;module;operator` → microseconds of the CPU in just that stack. Feed for flamegraph.pl and speedscope."""
    found: dict[str, float] = {}
    for one in nested(event for event in events if event.get("cat") in _FRAMES):
        if one.own_us > 0:
            line = ";".join(frames(one))
            found[line] = found.get(line, 0.0) + one.own_us
    return found


def frames(innermost: Slice) -> list[str]:
    """The names of a slice and of those it lies in, outermost first; no name holds a semicolon."""
    found = []
    here: Slice | None = innermost
    while here is not None:
        found.append(here.name.replace(";", ","))
        found += _work_of(here)
        here = here.parent
    return found[::-1]


def _work_of(one: Slice) -> list[str]:
    """A frame for the module whose backward pass begins here: nothing around it would tell."""
    args, around = one.event.get("args") or {}, (one.parent.event.get("args") or {}) if one.parent is not None else {}
    if args.get(DIRECTION) != "backward" or around.get(DIRECTION) == "backward":
        return []
    return [f"{args[MODULE]} (backward)"]


def stacks_text(found: dict[str, float], most: int = 5000) -> str:
    """The costliest lines, in whole microseconds; what all others take is one line, so that the sum stays."""
    ordered = sorted(found.items(), key=lambda item: -item[1])
    kept = [(stack, round(own_us)) for stack, own_us in ordered[:most] if round(own_us) > 0]
    rest = round(sum(found.values()) - sum(own_us for _, own_us in kept))
    kept += [(REST, rest)] if rest > 0 else []
    return "".join(f"{stack} {own_us}\n" for stack, own_us in kept)
