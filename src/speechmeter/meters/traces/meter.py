"""The meter `trace`: a step or two as a trace file, with stacks for flame graphs. Imports torch late."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.protocols import ORDINARY, Phase, Session
from speechmeter.core.traces import FOLDER, KERNEL, OPERATOR, SUFFIX, Trace, write_trace
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.recording.needs import Needs
from speechmeter.meters.recording.session import recording_of

STACKS_FILE, GPU_STACKS_FILE = "stacks.txt", "stacks-gpu.txt"


class TraceMeter:
    """Bytes of a trace that was written; of interest is the file."""

    name = "trace"
    metrics = (metrics.TRACE_BYTES,)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.PROFILE

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, whose profiler records."""
        return "traces are torch's, and torch is not installed" if find_spec("torch") is None else None

    def needs(self, session: Session) -> Needs:
        """As many steps as are asked for, with everything that a reader of a trace looks for."""
        asked = session.keep.trace
        return Needs(modules=True, memory=True, shapes=True, stacks=asked.python_stacks, traced=asked.steps)

    def measure(self, session: Session) -> list[Measurement]:
        """Write the first steps that were recorded."""
        folder, asked = session.keep.folder, session.keep.trace
        if folder is None:
            return [Measurement.absent(metrics.TRACE_BYTES, "nothing keeps files here: use `speechmeter run`")]
        recording = recording_of(session, self.needs(session))
        if not any(event.get("cat") in (OPERATOR, KERNEL) for event in recording.trace.events):
            return [Measurement.absent(metrics.TRACE_BYTES, "no operator of torch ran")]
        path = folder / FOLDER / f"{file_name(session.case.subject.name)}{SUFFIX}"
        kept = write_files(path, [recording.trace], asked.most_events)
        size, notes = path.stat().st_size, {**_notes(path, kept), **recording.notes}
        return [Measurement.of(metrics.TRACE_BYTES, [float(size)], source="torch.profiler", notes=notes)]


def write_files(path: Path, traces: Sequence[Trace], most_events: int) -> Trace:
    """The traces of one process as one file and, beside it, the stacks of all; returns the trace that was written.

    Stacks by the time of the GPU are a second file, where anything ran there. They are made before events are left out:
    a kernel may be long and the operator that launched it short.
    """
    from speechmeter.meters.traces.stacks import gpu_stacks, stacks, stacks_text
    from speechmeter.meters.traces.tidy import joined, shortened

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
    """A model's name as far as it can name a file."""
    return re.sub(r"[^\w-]+", "-", name).strip("-")[:80] or "trace"


def _notes(path: Path, trace: Trace) -> dict[str, Any]:
    from speechmeter.meters.traces.tidy import OURS

    where = "/".join(path.parts[-3:])
    return {"file": f"artifacts/{where}", "events": len(trace.events), **trace.facts.get(OURS, {})}
