"""The measuring process: one job on standard input, messages as JSON lines on a file descriptor, nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from time import perf_counter_ns
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.machine import available_cores
from speechmeter.core.types import Case
from speechmeter.launch.job import Job, outcome_to_json
from speechmeter.launch.memory_limit import limit_data
from speechmeter.launch.offline import is_offline, refuse_network


def main() -> None:
    """Measure the job and leave without waiting for anything the model may have started."""
    messages = os.fdopen(int(sys.argv[1]), "w", buffering=1, encoding="utf-8")
    os.set_inheritable(messages.fileno(), False)
    job = Job.from_json(json.load(sys.stdin))
    started_ns = perf_counter_ns()
    if job.memory_bytes is not None:
        limit_data(job.memory_bytes, job.memory_group)
    if is_offline():
        refuse_network()
    _pin_cores(job.case)
    from speechmeter.engine.measure import measure

    outcome = measure(
        job.case,
        plugins.subject(job.case.subject.plugin),
        plugins.workload(job.case.workload.plugin),
        [plugins.meter(name) for name in job.meters],
        report=lambda phase: _send(messages, {"phase": phase}),
        process=job.process,
        leads=job.leads,
        keep=job.keep,
        start_s=(started_ns - job.spawned_ns) / 1e9,
    )
    _send(messages, {"outcome": outcome_to_json(outcome)})
    messages.flush()
    for printed in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a model may have closed or replaced them
            printed.flush()
    os._exit(0)


def _send(messages: Any, message: dict[str, Any]) -> None:
    messages.write(json.dumps(message) + "\n")


def _pin_cores(case: Case) -> None:
    wanted = case.axes.get("cores")
    here = available_cores()
    if wanted and wanted < len(here) and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, here[:wanted])
