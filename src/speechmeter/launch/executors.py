"""Where one round of one case is measured: in fresh processes, or inline in this one."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, perf_counter_ns
from types import MappingProxyType
from typing import Literal, Protocol

from speechmeter.core import plugins
from speechmeter.core.errors import CannotGoOnError
from speechmeter.core.outputs import Keep
from speechmeter.core.protocols import ORDINARY, Meter, Subject, Workload
from speechmeter.core.types import VARIANT, Case, Limits, Measurement
from speechmeter.engine.measure import Outcome, measure
from speechmeter.engine.phases import MAIN, PROFILED, Process, processes_of
from speechmeter.launch.carried import carried, starting
from speechmeter.launch.child import Job
from speechmeter.launch.clients import LocalClient, clients_of, hold_together, merged, shares
from speechmeter.launch.interpreters import environ_for
from speechmeter.launch.lent_sound import LentSound
from speechmeter.launch.live import measure_live_case
from speechmeter.launch.process import MeasuringProcess
from speechmeter.launch.process_settings import environ_of, memory_bytes_of
from speechmeter.launch.share import Share
from speechmeter.launch.templates import TemplateLostError, Templates, kind_of

THIS = "this"


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """What measures one side of a comparison: a Python, and variables that its processes get."""

    python: str
    environ: Mapping[str, str] = field(default_factory=dict)


Processes = Literal["auto", "fork", "exec"]
"""How measuring processes are started: forked from a template where they can be, all of them anew, or (`auto`) anew
where time is measured and forked where memory is read or something is counted."""
Extent = Literal["all", "repeat", "timing"]
"""Which processes of a case a round runs: `repeat` leaves out those that only count exact things, `timing` is the
main process alone."""


class Executor(Protocol):
    """Measures one round of a case, and makes an outcome of any failure."""

    def measure(self, case: Case, report: Callable[[str], None], extent: Extent = "all", round_: int = 0) -> Outcome:
        """The outcome of the case's meters, merged."""
        ...

    def close(self) -> None:
        """End what is kept from one measurement to the next."""
        ...


class SubprocessExecutor:
    """Fresh processes: one for the meters that share, one for each that needs its own.

    `processes` says how they are started. A cold start is measured in new processes alone. `interpreters` measure the
    models of that name, `sides` the variants of that name; this one measures all others.
    """

    def __init__(
        self,
        limits: Limits,
        keep: Keep,
        processes: Processes = "exec",
        interpreters: Mapping[str, str] = MappingProxyType({}),
        sides: Mapping[str, Interpreter] = MappingProxyType({}),
    ) -> None:
        self._limits = limits
        self._keep = keep
        self._interpreters = interpreters
        self._sides = sides
        self._processes = processes
        self._templates = Templates()
        self._lent = LentSound()

    def close(self) -> None:
        """End what is kept from one measurement to the next."""
        self._templates.close()
        self._lent.close()

    def measure(self, case: Case, report: Callable[[str], None], extent: Extent = "all", round_: int = 0) -> Outcome:
        """Run the case's processes in order within its time limit; stop after the first that fails."""
        begun_ns: int | None = perf_counter_ns()  # starting the templates of a round counts for its first process
        count = clients_of(case)
        if count > 1:
            return self._with_clients(case, report, round_, count)
        self._templates.begin(round_, self._limits.time_s)
        deadline = None if self._limits.time_s is None else monotonic() + self._limits.time_s
        keep = kept(self._keep, case, extent)
        processes = processes_of(case, meters_of(case, repeated=extent != "all"))
        merged: Outcome | None = None
        for process in processes[: 1 if extent == "timing" else None]:
            job = Job(
                case=case,
                meters=tuple(meter.name for meter in process.meters),
                process=process.name,
                leads=merged is None,
                spawned_ns=begun_ns or perf_counter_ns(),
                memory_bytes=memory_bytes_of(self._limits, on_cuda=case.device.is_cuda),
                keep=keep,
                round=round_,
            )
            outcome = self._run(job, process, report, deadline)
            begun_ns = None
            if merged is not None and process.observes and outcome.status != "ok":
                # its failure makes its own metrics unavailable, not the case
                reason = f"{process.name} pass: {outcome.status}: {outcome.reason}"
                known = {m.metric for m in outcome.measurements}
                firsts = [meter.metrics[0] for meter in process.meters]
                absent = tuple(Measurement.absent(metric, reason) for metric in firsts if metric.id not in known)
                measurements = (*outcome.measurements, *absent)
                outcome = replace(outcome, status="ok", reason="", measurements=measurements)
            merged = outcome if merged is None else _merge(merged, outcome, process.name)
            if outcome.status != "ok":
                break
        assert merged is not None
        return merged

    def _with_clients(self, case: Case, report: Callable[[str], None], round_: int, count: int) -> Outcome:
        """One round that several processes hold together."""
        root, parts = shares(count)
        with root:
            results = hold_together([self.client(case, part, report, round_) for part in parts])
            return merged(case, round_, results, self._keep)

    def client(self, case: Case, share: Share, report: Callable[[str], None], round_: int) -> LocalClient:
        """A client process that is started now. The first one has the meters."""
        process = processes_of(case, meters_of(case))[0]
        started: list[MeasuringProcess] = []

        def run(share: Share, keep: Keep) -> Outcome:
            job = Job(
                case=case,
                meters=() if share.index else tuple(meter.name for meter in process.meters),
                process=process.name,
                leads=not share.index,
                spawned_ns=perf_counter_ns(),
                memory_bytes=memory_bytes_of(self._limits, on_cuda=False),
                keep=keep,
                round=round_,
                share=share,
            )
            log = share.folder / "client.log"
            python, folder, environ = self._interpreter(case, environ_of(case, process))
            code = starting("speechmeter.launch.child", folder)
            said = _nothing if share.index else report
            started.append(MeasuringProcess(job, environ, log, said, python, code=code))
            return started[0].run(self._limits.time_s)

        def stop() -> None:
            for one in started:
                one.stop()

        return LocalClient(share, self._keep, case, round_, run, stop)

    def _run(self, job: Job, process: Process, report: Callable[[str], None], deadline: float | None) -> Outcome:
        """One process from start to end; where its template is lost, a new one measures in its place."""
        case = job.case
        environ = environ_of(case, process)
        if case.device.is_cuda and self._limits.memory_gib is not None:
            environ["SPEECHMETER_CUDA_GIB"] = str(self._limits.memory_gib)
        log = (self._keep.folder or Path()) / f"{case.id}-{process.name}-{os.getpid()}.log"
        python, folder, environ = self._interpreter(case, environ)

        def left_s() -> float | None:
            return None if deadline is None else max(0.1, deadline - monotonic())

        code = starting("speechmeter.launch.child", folder)
        kind = None if self._is_new(job) else kind_of(case, python, environ, folder)
        if kind is not None and (template := self._templates.get(kind, job, left_s())) is not None:
            try:
                return MeasuringProcess(job, environ, log, report, python, template).run(left_s(), self._limits.time_s)
            except TemplateLostError:
                self._templates.end(kind)
        return MeasuringProcess(job, environ, log, report, python, code=code).run(left_s(), self._limits.time_s)

    def _interpreter(self, case: Case, environ: Mapping[str, str]) -> tuple[str, Path | None, dict[str, str]]:
        """What measures a case: the interpreter, where it finds this package unless that is installed there, and the
        variables that it starts with.
        """
        other = self._interpreters.get(case.subject.name)
        if other is not None:
            return other, carried(), {**environ_for(other, environ), **self._lent.variables(case, other)}
        if (side := self._sides.get(case.axes.get(VARIANT, ""))) is not None:
            # PYTHONPATH belongs to this environment, not to the other
            here = {key: text for key, text in environ.items() if key != "PYTHONPATH"}
            return side.python, None, {**here, **side.environ}
        return sys.executable, None, dict(environ)

    def _is_new(self, job: Job) -> bool:
        """Whether the process is to be started anew, whatever its subject says.

        Peaks of memory are the same in forked processes (within 0.3 MiB), and counts are exact. That calls take the
        same time was not shown within 5 % (benchmarks/sweep.py), so by default what is timed is never forked.
        """
        return self._processes == "exec" or (self._processes == "auto" and job.process in (MAIN, PROFILED))


class InlineExecutor:
    """This process: quick, for debugging; no limits, and meters that need their own process are unavailable.

    So are profilers where anything is timed: the next case would be timed after them.
    """

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._crashed = ""

    def close(self) -> None:
        """Nothing is kept."""

    def measure(self, case: Case, report: Callable[[str], None], extent: Extent = "all", round_: int = 0) -> Outcome:
        """The outcome of the meters that can share this process. Raises CannotGoOnError once its device is lost."""
        if self._crashed:
            raise CannotGoOnError(
                f"{self._crashed}; this process cannot use the device again: "
                "use `resume` with `launcher: subprocess` to continue",
                resume_with={"launcher": "subprocess"},
            )
        subject, workload = plugins.subject(case.subject.plugin), plugins.workload(case.workload.plugin)
        meters, keep = meters_of(case, repeated=extent != "all"), kept(self._keep, case, extent)
        if case.live is not None:
            outcome = measure_live_case(case, subject, workload, meters, keep=keep, round_=round_, report=report)
        else:
            outcome = measure_here(
                case, subject, workload, meters, "use `launcher: subprocess`", with_profilers=False, report=report,
                keep=keep,
            )  # fmt: skip
        release()
        self._crashed = outcome.reason if outcome.status == "crashed" else ""
        here = outcome.environment
        if here is None:
            return outcome
        # the record says so: rounds in one process differ less than those in processes of their own
        return replace(outcome, environment=replace(here, facts={**here.facts, "launcher": "inline"}))


def _nothing(phase: str) -> None:
    """What the clients after the first report: all of them do the same."""


def kept(keep: Keep, case: Case, extent: Extent) -> Keep:
    """What is kept of a round: files of the first one alone, but what was said and heard live in every one."""
    return keep if extent == "all" or case.live is not None else keep.later_round()


def measure_here(
    case: Case,
    subject: Subject,
    workload: Workload,
    meters: Sequence[Meter],
    fix: str,
    *,
    with_profilers: bool = True,
    report: Callable[[str], None] = lambda phase: None,
    keep: Keep | None = Keep(),
) -> Outcome:
    """Measure in this process; a meter that needs its own is unavailable, and `fix` says what to do instead.

    `with_profilers` runs them after all others. Without, they run only where nothing is timed.
    """
    processes = processes_of(case, meters)
    names = {process.name for process in processes}
    timed = MAIN in names and not with_profilers
    apart = [
        meter
        for process in processes
        for meter in process.meters
        if (meter.environ and process.name != MAIN) or (timed and process.name == PROFILED)
    ]
    shared = [meter for meter in meters if meter not in apart]
    name = PROFILED if names == {PROFILED} else MAIN
    outcome = measure(case, subject, workload, shared, report=report, process=name, ways=ORDINARY, keep=keep)
    absent = tuple(
        Measurement.absent(meter.metrics[0], f"{meter.name} needs a separate process: {fix}") for meter in apart
    )
    return replace(outcome, measurements=(*outcome.measurements, *absent))


def meters_of(case: Case, *, repeated: bool = False) -> list[Meter]:
    """The case's meters. `repeated` leaves out those whose metrics are all exact: they are not counted again."""
    return [plugins.meter(name) for name in case.meters if not (repeated and all_exact([name]))]


def varies(case: Case) -> bool:
    """Whether anything that is read off a case varies between rounds. Conversations do."""
    return case.live is not None or not all_exact(case.meters)


def all_exact(meters: Iterable[str]) -> bool:
    """Whether nothing that these meters read varies between rounds."""
    return all(metric.exact for name in meters for metric in plugins.meter(name).metrics)


def release() -> None:
    """Free what only reference cycles keep alive, and return cached CUDA memory. Imports nothing by itself."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):  # a device that the case broke: its outcome says so already
            torch.cuda.empty_cache()


def _merge(first: Outcome, second: Outcome, process: str) -> Outcome:
    failed = second if second.status != "ok" else first
    known = {(m.metric, m.scope, m.values) for m in first.measurements}
    added = [m for m in second.measurements if (m.metric, m.scope, m.values) not in known or not m.values]
    return Outcome(
        status=failed.status,
        reason=f"{process} pass: {second.reason}" if failed is second else first.reason,
        measurements=(*first.measurements, *added),
        warnings=tuple(dict.fromkeys((*first.warnings, *second.warnings))),
        environment=first.environment or second.environment,
    )
