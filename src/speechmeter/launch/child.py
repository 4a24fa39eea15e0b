"""The measuring process: a job on standard input, messages as JSON lines on a file descriptor, nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.machine import available_cores
from speechmeter.core.outputs import Keep, SpeechFiles, TraceOptions
from speechmeter.core.process_tree import note_guard
from speechmeter.core.types import Case, Environment, Measurement
from speechmeter.engine.measure import Outcome, Start, measure
from speechmeter.launch.live import measure_live_case
from speechmeter.launch.memory_limit import limit_data
from speechmeter.launch.offline import is_offline, refuse_network
from speechmeter.launch.share import Share


@dataclass(frozen=True, kw_only=True)
class Job:
    """The work of one process: the case, the meters that it runs, and the name of the process in scopes of phases.

    The process that `leads` records what the case was fed, and `keep` says what happens to the outputs of its calls.
    `spawned_ns` is the launcher's monotonic clock when it started the process: it gives the start-up time.
    `memory_group` names the control group that holds the process to `memory_bytes`, where there is one. `round` names
    the files of a live case, which has them in every round.
    """

    case: Case
    meters: tuple[str, ...]
    process: str
    leads: bool
    spawned_ns: int
    memory_bytes: int | None = None
    memory_group: str | None = None
    keep: Keep | None = None
    round: int = 0
    share: Share | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        keep = None if self.keep is None else asdict(self.keep)
        if keep is not None and keep["folder"] is not None:
            keep["folder"] = str(keep["folder"])
        return {
            "case": self.case.to_json(),
            "meters": list(self.meters),
            "process": self.process,
            "leads": self.leads,
            "spawned_ns": self.spawned_ns,
            "memory_bytes": self.memory_bytes,
            "memory_group": self.memory_group,
            "keep": keep,
            "round": self.round,
            "share": None if self.share is None else self.share.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """The inverse of `to_json`."""
        keep = data["keep"]
        if keep is not None:
            keep = Keep(
                folder=None if keep["folder"] is None else Path(keep["folder"]),
                speech=None if keep["speech"] is None else SpeechFiles(**keep["speech"]),
                trace=TraceOptions(**keep["trace"]),
                outputs=keep.get("outputs", True),
            )
        return cls(
            case=Case.from_json(data["case"]),
            meters=tuple(data["meters"]),
            process=data["process"],
            leads=data["leads"],
            spawned_ns=data["spawned_ns"],
            memory_bytes=data["memory_bytes"],
            memory_group=data["memory_group"],
            keep=keep,
            round=data["round"],
            share=None if data["share"] is None else Share.from_json(data["share"]),
        )


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data."""
    environment = outcome.environment
    return {
        "status": outcome.status,
        "reason": outcome.reason,
        "warnings": list(outcome.warnings),
        "measurements": [m.to_json() for m in outcome.measurements],
        "environment": environment.to_json() if environment is not None else None,
    }


def outcome_from_json(data: Mapping[str, Any]) -> Outcome:
    """The inverse of `outcome_to_json`."""
    environment = data["environment"]
    return Outcome(
        status=data["status"],
        reason=data["reason"],
        warnings=tuple(data["warnings"]),
        measurements=tuple(Measurement.from_json(m) for m in data["measurements"]),
        environment=Environment(facts=environment["facts"], state=environment["state"]) if environment else None,
    )


def main() -> None:
    """Measure the job on standard input; messages go to the descriptor that the first argument names."""
    message_fd = int(sys.argv[1])
    run(Job.from_json(json.load(sys.stdin)), message_fd)


def run(job: Job, message_fd: int, *, forked: bool = False) -> None:
    """Measure the job and leave without waiting for anything the model may have started."""
    messages = os.fdopen(message_fd, "w", buffering=1, encoding="utf-8")
    os.set_inheritable(messages.fileno(), False)
    started_ns = perf_counter_ns()
    note_guard(os.getppid())
    if job.memory_bytes is not None:
        limit_data(job.memory_bytes, job.memory_group)
    if is_offline():
        refuse_network()
    stay_on_cores(job.case)

    def send(message: dict[str, Any]) -> None:
        messages.write(json.dumps(message) + "\n")

    start = Start(took_s=(started_ns - job.spawned_ns) / 1e9, forked=forked)
    send({"outcome": outcome_to_json(_measured(job, send, start))})
    messages.flush()
    for printed in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a model may have closed or replaced them
            printed.flush()
    os._exit(0)


def stay_on_cores(case: Case) -> None:
    """Hold this process to the cores of the case, before libraries count them."""
    wanted, here = case.axes.cores, available_cores()
    if wanted and wanted < len(here) and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, here[:wanted])


def _measured(job: Job, send: Callable[[dict[str, Any]], None], start: Start) -> Outcome:
    subject, workload = plugins.subject(job.case.subject.plugin), plugins.workload(job.case.workload.plugin)
    meters = [plugins.meter(name) for name in job.meters]

    def report(phase: str) -> None:
        send({"phase": phase})

    if job.case.live is not None:
        return measure_live_case(
            job.case, subject, workload, meters, keep=job.keep, round_=job.round, report=report,
            waits=lambda seconds: send({"waits_s": seconds}), start_s=start.took_s,
            part=None if job.share is None else job.share.part(),
        )  # fmt: skip
    return measure(
        job.case, subject, workload, meters, report=report, process=job.process, leads=job.leads, keep=job.keep,
        start=start,
    )  # fmt: skip
