"""Measure one case in this process: load, first call, then one pass per meter in the order of `engine.phases`."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.machine import profiler_ran
from speechmeter.core.outputs import Keep
from speechmeter.core.protocols import ORDINARY, Meter, Subject, Way, Workload
from speechmeter.core.scope import LOADING, PROCESS, Scope
from speechmeter.core.types import Case, Environment, Measurement, Status
from speechmeter.engine.disturbance import GpuState, Watch, disturbances
from speechmeter.engine.doubts import cache_warning, session_warnings
from speechmeter.engine.environment import capture
from speechmeter.engine.failures import classify, finite
from speechmeter.engine.outputs import write_outputs, write_timed_utterances
from speechmeter.engine.phases import MAIN, in_order, processes_of
from speechmeter.engine.session import LOAD, LoadedSession, Progress, open_session

_PROFILED_BEFORE = "a profiler ran earlier in this process and may slow down the timed calls; measure in a new process"
NOT_COLD = "a cold start is measured only in new processes, and this one was forked"
"""Why a process that did not import its libraries says nothing about a cold start."""
_OF_THE_SUBJECT = (metrics.LATENCY, metrics.MEMORY_CPU_TOTAL)
"""A meter that reads one of these does nothing but call the subject: if it fails, the subject did."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """What starting the process took, and whether it was forked from one that had imported its libraries."""

    took_s: float
    forked: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one process found out about a case."""

    status: Status
    reason: str = ""
    measurements: tuple[Measurement, ...] = ()
    warnings: tuple[str, ...] = ()
    environment: Environment | None = None


def measure(
    case: Case,
    subject: Subject,
    workload: Workload,
    meters: Sequence[Meter],
    *,
    report: Progress = lambda _: None,
    process: str = MAIN,
    leads: bool = True,
    start: Start | None = None,
    ways: Sequence[Way] | None = None,
    keep: Keep | None = None,
) -> Outcome:
    """All readings of the given meters. A failure keeps what was read before it; it never raises for one.

    The case is opened in the first of the meters' ways that works. `process` names the measuring process in the scope
    of its phases. The process that `leads` also records what was fed. `start` says how a measuring process was started.
    `keep` says where the outputs of the calls go, if anywhere. KeyboardInterrupt passes through.
    """
    *earlier, last = ways or (meters[0].ways if meters and process != MAIN else ORDINARY)
    attempt = _Attempt(
        case=case, subject=subject, workload=workload, meters=meters, report=report, process=process, leads=leads,
        start=start, keep=keep,
    )  # fmt: skip
    refused = ""
    found: Outcome | None = None
    for way in earlier:
        outcome = attempt.measure(way, refused, another=True)
        if outcome.status == "crashed":  # a lost device does not come back in this process
            return outcome
        if outcome.status == "ok":
            if not way.check_next(outcome.measurements):
                return outcome
            found = outcome
        refused = outcome.reason
    if found is None:
        return attempt.measure(last, refused)
    checked = attempt.measure(last, refused, found.measurements)
    if checked.status == "ok":
        return checked
    return replace(
        found,
        warnings=(*found.warnings, f"a second measurement that should check this one failed: {checked.reason}"),
    )


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """One process that measures one case, in one way after another."""

    case: Case
    subject: Subject
    workload: Workload
    meters: Sequence[Meter]
    report: Progress
    process: str
    leads: bool
    start: Start | None
    keep: Keep | None

    def measure(self, way: Way, refused: str, earlier: Sequence[Measurement] = (), *, another: bool = False) -> Outcome:
        """Open the case in one way and take every reading. Where there is `another` way, no meter may fail."""
        found: list[Measurement] = []
        phases: dict[str, float] = {} if self.start is None else {"start": self.start.took_s}
        warnings: list[str] = []
        status: Status = "ok"
        reason = ""
        session: LoadedSession | None = None
        try:
            with way.around():
                random.seed(self.case.protocol.seed)
                os.environ.setdefault("PYTHONHASHSEED", str(self.case.protocol.seed))
                session = open_session(
                    self.case, self.subject, self.workload, self.report, warm=way.warm, refused=refused,
                    earlier=earlier, keep=(self.keep or Keep()).of(self.case.id),
                )  # fmt: skip
                phases.update(data=session.data_ns / 1e9, load=session.load_ns / 1e9, first=session.first_ns / 1e9)
                warnings += [*session_warnings(session), *self._after_a_profiler()]
                found += self._session_facts(session)
                before, gpu = Watch.now(), GpuState.of(self.case.device)
                gpu.look("first call")
                for meter in in_order(self.meters):
                    start = perf_counter_ns()
                    readings = _one_pass(meter, session) if another else self._whatever_happens(meter, session)
                    found += _new(readings, found)
                    gpu.look(meter.name)
                    phases[meter.name] = (perf_counter_ns() - start) / 1e9
                known = {(m.metric, m.scope) for m in found}  # some meters count the calls' tokens themselves
                found += [m for m in self._results(session, phases, found) if (m.metric, m.scope) not in known]
                if self.process == MAIN:
                    warnings += cache_warning(session, found)
                    busy, disturbed = disturbances(before, Watch.now())
                    found += [*busy, *gpu.measurements()]
                    warnings += [*disturbed, *gpu.warnings()]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit of a model is a failed case, not the end of the run
            status, reason = classify(error)
        finally:
            if session is not None:
                warnings += _close(session)
        if phases:
            notes: dict[str, Any] = {"phases": list(phases)}
            if self.start is not None:
                notes["start"] = "forked" if self.start.forked else "new"
            scope = Scope.of(PROCESS, self.process)
            found.append(Measurement.of(metrics.PHASE, list(phases.values()), scope=scope, notes=notes))
        try:
            environment = capture(self.case)
        except Exception:  # as with a device that was lost
            environment = None
        return Outcome(
            status=status,
            reason=reason,
            measurements=tuple(map(finite, found)),
            warnings=tuple(warnings),
            environment=environment,
        )

    def _whatever_happens(self, meter: Meter, session: LoadedSession) -> list[Measurement]:
        """The readings of a meter; where it fails, its figure is unavailable with the reason, and the case goes on.

        What the subject does wrong while it is only called is raised, and so is the loss of the device.
        """
        try:
            return _one_pass(meter, session)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            status, reason = classify(error)
            if status == "crashed" or any(metric in _OF_THE_SUBJECT for metric in meter.metrics):
                raise
            if self.process == MAIN:  # if a call without the meter fails too, the failure is the subject's
                session.call(next(iter(session.batches)))
            failed = f"the meter {meter.name} failed: {reason}"
            return [Measurement.absent(metric, failed) for metric in meter.metrics[:1]]

    def _after_a_profiler(self) -> list[str]:
        """Measuring processes are new; a program that measures objects of its own may have profiled before."""
        timed = any(process.name == MAIN for process in processes_of(self.case, self.meters))
        return [_PROFILED_BEFORE] if timed and profiler_ran() else []

    def _session_facts(self, session: LoadedSession) -> list[Measurement]:
        """Times of load and first call, and what was fed."""
        facts = _workload_facts(session) if self.leads else []
        if self.process != MAIN:
            return facts
        cold = {metrics.LATENCY_LOAD: session.load_ns / 1e9, metrics.LATENCY_FIRST: session.first_ns / 1e9}
        if self.start is not None and self.start.forked:
            found = [Measurement.absent(metric, NOT_COLD) for metric in cold]
        else:
            found = [Measurement.of(metric, [seconds]) for metric, seconds in cold.items()]
        if all(stage.name != LOAD for stage in session.stages):  # else a clocked stage of every call
            reload_s = session.reload_ns / 1e9
            found.append(Measurement.of(metrics.LATENCY, [reload_s], scope=LOADING, notes={"clocked": False}))
        return [*found, *facts]

    def _results(
        self, session: LoadedSession, phases: dict[str, float], found: Sequence[Measurement]
    ) -> list[Measurement]:
        """Tokens and sound that the calls made, and the outputs as files; once a case."""
        if self.keep is None or not self.keep.outputs or not self.leads:
            return []
        start = perf_counter_ns()
        self.report("outputs")
        outputs = list(zip(session.all_batches.outlines(), session.outputs(), strict=False))
        folder = session.keep.folder
        if folder is not None:
            latency = next((m for m in found if (m.metric, m.scope) == (metrics.LATENCY.id, "total")), None)
            write_outputs(folder, outputs, speech=self.keep.speech)
            write_timed_utterances(folder, [outputs[index] for index in session.measured if outputs], latency)
        phases["outputs"] = (perf_counter_ns() - start) / 1e9
        return _joined([session.results[index].made for index in session.measured if session.results])


def _close(session: LoadedSession) -> list[str]:
    """What was measured counts, whatever the subject does when it is closed; the warning, if any."""
    try:
        session.prepared.close()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return [f"closing the model failed: {classify(error)[1]}"]
    return []


def _joined(calls: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """One measurement for each metric and scope, a value a call."""
    values: dict[tuple[str, str], list[float]] = {}
    for call in calls:
        for m in call:
            values.setdefault((m.metric, m.scope), []).extend(m.values)
    first = {(m.metric, m.scope): m for call in calls[:1] for m in call}
    return [replace(m, values=tuple(values[key])) for key, m in first.items()]


def _one_pass(meter: Meter, session: LoadedSession) -> list[Measurement]:
    reason = meter.unavailable(session.case)
    if reason is not None:
        return [Measurement.absent(metric, reason) for metric in meter.metrics[:1]]
    session.progress(meter.name)
    return meter.measure(session)


def _new(readings: Sequence[Measurement], found: Sequence[Measurement]) -> list[Measurement]:
    """Without those that another meter has read already, off the same recording: a value is in a record once."""
    known = {(m.metric, m.scope): m for m in found}
    return [m for m in readings if known.get((m.metric, m.scope)) != m]


def _workload_facts(session: LoadedSession) -> list[Measurement]:
    """Items and seconds of every batch with the notes of model and workload, and what of a dataset was left out."""
    scheduled = [session.steps.note()] if session.steps is not None and session.steps.note() else []
    texts = [*session.prepared.notes, *session.batches.notes, *scheduled]
    outlines = list(session.batches.outlines())
    items = [float(batch.items) for batch in outlines]
    facts = [Measurement.of(metrics.ITEMS, items, notes={"notes": texts} if texts else {})]
    seconds = [batch.audio_s for batch in outlines if batch.audio_s is not None]
    if seconds:
        facts.append(Measurement.of(metrics.AUDIO_SECONDS, seconds))
    padded = [batch.padded_s for batch in outlines if batch.padded_s is not None]
    if seconds and len(padded) == len(seconds):
        facts.append(Measurement.of(metrics.PADDED_SECONDS, padded))
    facts += _joined([batch.facts for batch in outlines])
    left_out = session.batches.left_out
    if left_out is not None:
        notes: dict[str, Any] = {"refused": [list(item) for item in left_out.first]} if left_out.count else {}
        notes |= {"kinds": dict(left_out.kinds)} if left_out.kinds else {}
        facts.append(Measurement.of(metrics.ITEMS_REFUSED, [float(left_out.count)], notes=notes))
    return facts
