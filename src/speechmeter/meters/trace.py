"""The meter `trace`: a step or two as a trace file, with stacks for flame graphs. Imports torch late."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from speechmeter.core import metrics
from speechmeter.core.protocols import Meter, Phase, Session
from speechmeter.core.traces import (
    ANNOTATION,
    COPIES,
    DIRECTION,
    FOLDER,
    KERNEL,
    MODULE,
    OPERATOR,
    SUFFIX,
    Event,
    Slice,
    Trace,
    nested,
    write_trace,
)
from speechmeter.core.types import Case, Measurement
from speechmeter.meters import torch_missing
from speechmeter.meters.recording.recording import Needs
from speechmeter.meters.recording.session import recording_of
from speechmeter.meters.recording.trace import ID, OURS, joined, shortened

STACKS_FILE, GPU_STACKS_FILE = "stacks.txt", "stacks-gpu.txt"
REST = "(shorter stacks)"
UNKNOWN = "(launched by unknown code)"
"""In place of a stack, where the profiler does not say which code launched a kernel."""
_RUNTIME = ("cuda_runtime", "cuda_driver")
_FRAMES = (OPERATOR, ANNOTATION, "python_function", *_RUNTIME)
_ON_GPU = (KERNEL, *COPIES)
_LAUNCH = "correlation"
"""What torch calls the number that a call of the runtime and the kernels it launched have in common."""


class TraceMeter(Meter):
    """The bytes of the trace that was written; the file itself is what people want."""

    name = "trace"
    metrics = (metrics.TRACE_BYTES,)
    phase = Phase.PROFILE

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, whose profiler records."""
        return torch_missing()

    def needs(self, session: Session) -> Needs:
        """As many steps as are asked for, with everything that a reader of a trace looks for."""
        asked = session.keep.trace
        return Needs(modules=True, memory=True, shapes=True, stacks=asked.python_stacks, traced=asked.steps)

    def measure(self, session: Session) -> list[Measurement]:
        """Write the first steps that were recorded."""
        folder, asked = session.keep.folder, session.keep.trace
        if folder is None:
            return [Measurement.absent(metrics.TRACE_BYTES, "no directory to write files to: use `speechmeter run`")]
        recording = recording_of(session, self.needs(session))
        if not any(event.get("cat") in (OPERATOR, KERNEL) for event in recording.trace.events):
            return [Measurement.absent(metrics.TRACE_BYTES, "no torch operator ran")]
        path = folder / FOLDER / f"{file_name(session.case.subject.name)}{SUFFIX}"
        kept = write_files(path, [recording.trace], asked.most_events)
        where = "/".join(path.parts[-3:])
        facts = {"file": f"artifacts/{where}", "events": len(kept.events), **kept.facts.get(OURS, {})}
        notes = {**facts, **recording.notes}
        return [Measurement.of(metrics.TRACE_BYTES, [float(path.stat().st_size)], source="torch.profiler", notes=notes)]


def write_files(path: Path, traces: Sequence[Trace], most_events: int) -> Trace:
    """The traces of one process as one file and, beside it, the stacks of all; returns the trace that was written.

    Stacks by the time of the GPU are a second file, where anything ran there. They are made before events are left out:
    a kernel may be long and the operator that launched it short.
    """
    kept = shortened(joined(traces), most_events)
    write_trace(path, kept)
    for name, read in {STACKS_FILE: stacks, GPU_STACKS_FILE: gpu_stacks}.items():
        found: dict[str, float] = {}
        for trace in traces:
            for stack, time_us in read(trace.events).items():
                found[stack] = found.get(stack, 0.0) + time_us
        if found or name == STACKS_FILE:
            path.with_name(name).write_text(stacks_text(found), encoding="utf-8")
    return kept


def file_name(name: str) -> str:
    """A model's name with only the characters that a file name may have."""
    return re.sub(r"[^\w-]+", "-", name).strip("-")[:80] or "trace"


def stacks(events: Iterable[Event]) -> dict[str, float]:
    """`step;module;operator` → microseconds of the CPU in just that stack, for flamegraph.pl and speedscope."""
    found: dict[str, float] = {}
    for one in nested(event for event in events if event.get("cat") in _FRAMES):
        if one.own_us > 0:
            line = ";".join(_frames(one))
            found[line] = found.get(line, 0.0) + one.own_us
    return found


def gpu_stacks(events: Sequence[Event]) -> dict[str, float]:
    """`step;module;operator;kernel` → microseconds of the GPU, of kernels, copies and fills by the launching code.

    Those that overlap are added up. Empty where nothing ran on a GPU.
    """
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
        stack = [UNKNOWN] if around is None else _frames(around)
        line = ";".join([*stack, str(event.get("name", "")).replace(";", ",")])
        found[line] = found.get(line, 0.0) + float(event["dur"])
    return found


def _frames(innermost: Slice) -> list[str]:
    """The names of a slice and of those around it, outermost first, without semicolons.

    Where the backward pass of a module begins, the module has a frame: nothing else names it there.
    """
    found = []
    here: Slice | None = innermost
    while here is not None:
        found.append(here.name.replace(";", ","))
        args = here.event.get("args") or {}
        around = (here.parent.event.get("args") or {}) if here.parent is not None else {}
        if args.get(DIRECTION) == "backward" and around.get(DIRECTION) != "backward":
            found.append(f"{args[MODULE]} (backward)")
        here = here.parent
    return found[::-1]


def stacks_text(found: dict[str, float], most: int = 5000) -> str:
    """The costliest lines, in whole microseconds; all others are added up in one line, so that the sum stays."""
    ordered = sorted(found.items(), key=lambda item: -item[1])
    kept = [(stack, round(own_us)) for stack, own_us in ordered[:most] if round(own_us) > 0]
    rest = round(sum(found.values()) - sum(own_us for _, own_us in kept))
    kept += [(REST, rest)] if rest > 0 else []
    return "".join(f"{stack} {own_us}\n" for stack, own_us in kept)
