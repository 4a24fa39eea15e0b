"""The meter `trace`: a step or two as a trace file, with stacks for flame graphs. Imports torch late."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.protocols import ORDINARY, PROFILED, Session
from speechmeter.core.traces import FOLDER, KERNEL, OPERATOR, SUFFIX, Trace, write_trace
from speechmeter.core.types import Case, Measurement

STACKS_FILE = "stacks.txt"


class TraceMeter:
    """Bytes of a trace that was written; of interest is the file."""

    name = "trace"
    metrics = (metrics.TRACE_BYTES,)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY

    def process(self, case: Case) -> str:
        """A process with other profilers: none of them is ever active where latency is taken."""
        return PROFILED

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, whose profiler records."""
        return "traces are torch's, and torch is not installed" if find_spec("torch") is None else None

    def measure(self, session: Session) -> list[Measurement]:
        """Record the steps and write the files."""
        from speechmeter.meters.modules.meter import chosen_roots
        from speechmeter.meters.traces.record import on_cuda, record, steps_of

        folder, asked = session.keep.folder, session.keep.trace
        if folder is None:
            return [Measurement.absent(metrics.TRACE_BYTES, "nothing keeps files here: use `speechmeter run`")]
        trace = record(
            steps_of(session, asked.steps),
            chosen_roots(session),
            cuda=on_cuda(session),
            python_stacks=asked.python_stacks,
            most_events=asked.most_events,
        )
        if not any(event.get("cat") in (OPERATOR, KERNEL) for event in trace.events):
            return [Measurement.absent(metrics.TRACE_BYTES, "no operator of torch ran")]
        path = folder / FOLDER / f"{file_name(session.case.subject.name)}{SUFFIX}"
        size = write_files(path, trace)
        return [Measurement.of(metrics.TRACE_BYTES, [float(size)], source="torch.profiler", notes=_notes(path, trace))]


def write_files(path: Path, trace: Trace) -> int:
    """The trace and, beside it, its stacks; returns the bytes of the trace."""
    from speechmeter.meters.traces.stacks import stacks, stacks_text

    size = write_trace(path, trace)
    path.with_name(STACKS_FILE).write_text(stacks_text(stacks(trace.events)), encoding="utf-8")
    return size


def file_name(name: str) -> str:
    """A model's name as far as it can name a file."""
    return re.sub(r"[^\w-]+", "-", name).strip("-")[:80] or "trace"


def _notes(path: Path, trace: Trace) -> dict[str, Any]:
    from speechmeter.meters.traces.tidy import OURS

    where = "/".join(path.parts[-3:])
    return {"file": f"artifacts/{where}", "events": len(trace.events), **trace.facts.get(OURS, {})}
