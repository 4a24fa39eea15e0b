"""Stacks for flame graphs, one line each: what was open, outermost first, and the microseconds spent there alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from speechmeter.core.traces import ANNOTATION, COPIES, DIRECTION, KERNEL, MODULE, OPERATOR, Event, Slice, nested
from speechmeter.meters.traces.places import ID

REST = "(shorter stacks)"
UNKNOWN = "(launched by unknown code)"
"""In the place of a stack, where the profiler does not say which code launched a kernel."""
_RUNTIME = ("cuda_runtime", "cuda_driver")
_FRAMES = (OPERATOR, ANNOTATION, "python_function", *_RUNTIME)
_ON_GPU = (KERNEL, *COPIES)
_LAUNCH = "correlation"
"""What torch calls the number that a call of the runtime and the kernels it launched have in common."""


def stacks(events: Iterable[Event]) -> dict[str, float]:
    """`step;module;operator` → microseconds of the CPU in just that stack. Feed for flamegraph.pl and speedscope."""
    found: dict[str, float] = {}
    for one in nested(event for event in events if event.get("cat") in _FRAMES):
        if one.own_us > 0:
            line = ";".join(frames(one))
            found[line] = found.get(line, 0.0) + one.own_us
    return found


def gpu_stacks(events: Sequence[Event]) -> dict[str, float]:
    """`step;module;operator;kernel` → microseconds of the GPU: of a kernel, a copy or a fill, by the code it was
    launched from. Those that overlap are added up. Empty where nothing ran on a GPU."""
    on_gpu = [event for event in events if event.get("cat") in _ON_GPU and event.get("ph") == "X"]
    launches: dict[int, Slice] = {}
    by_id: dict[int, Slice] = {}
    for one in nested(event for event in events if event.get("cat") in _FRAMES) if on_gpu else ():
        args = one.event.get("args") or {}
        if one.category in _RUNTIME and _LAUNCH in args:
            launches[args[_LAUNCH]] = one
        elif one.category in (OPERATOR, ANNOTATION) and ID in args:
            by_id[args[ID]] = one
    found: dict[str, float] = {}
    for event in on_gpu:
        args = event.get("args") or {}
        launch = launches.get(args.get(_LAUNCH, -1))
        around = launch.parent if launch is not None else None
        around = around or by_id.get(args.get(ID, -1))  # a trace without calls of the runtime
        stack = [UNKNOWN] if around is None else frames(around)
        line = ";".join([*stack, str(event.get("name", "")).replace(";", ",")])
        found[line] = found.get(line, 0.0) + float(event["dur"])
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
