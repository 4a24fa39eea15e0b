"""A run on this machine, and the one way in which any run is written: each record on disk before the next turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from time import monotonic
from typing import Literal

from speechmeter.core.errors import InterruptedRun, StoppedRun, StoreError
from speechmeter.core.machine import host_name
from speechmeter.core.types import Case, Environment, Record, Skip, Status
from speechmeter.engine.measure import Outcome
from speechmeter.launch.executors import Executor, Extent
from speechmeter.launch.forecast import Forecast, History, forecast
from speechmeter.launch.git_state import git_state
from speechmeter.launch.schedule import Schedule, Sweep, Turn
from speechmeter.store.run_dir import RunWriter

EventKind = Literal["left out", "started", "phase", "finished"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """A case was left out, or a (case, round) was started, entered a phase, or finished with a record.

    `known` gives the records so far, those of an earlier start included. When one has finished, `left` estimates how
    long the rest will take, if that is possible.
    """

    kind: EventKind
    case: Case
    round: int
    done: int
    total: int
    phase: str = ""
    record: Record | None = None
    known: Callable[[], Sequence[Record]] = tuple
    left: Callable[[], Forecast] | None = None


Watcher = Callable[[Event], None]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The outcome of a turn, with host, time (UTC) and commit of the machine that measured."""

    outcome: Outcome
    host: str
    started: str
    wall_s: float
    git: str = ""


def run_sweep(
    sweep: Sweep,
    executor: Executor,
    store: RunWriter,
    watch: Watcher = lambda event: None,
    history: Callable[[], History] | None = None,
    records: Sequence[Record] | None = None,
    git: str | None = None,
) -> None:
    """Measure what the store does not hold yet. Raises StoppedRun where it ends early, finished records kept.

    With the history of this machine, events hold the time that is left. It is read when that is first needed.
    `records` are those of the store and `git` the state of the code, for whoever knows them already.
    """
    schedule = Schedule(sweep, store.records() if records is None else records)
    recorder = Recorder(schedule, store, watch, history)
    with recorder.stopping():
        recorder.leave_out()
        git = git_state() if git is None else git
        for turn in schedule.turns():
            recorder.begin(turn)
            report = partial(recorder.phase, turn)
            recorder.finish(turn, measure_round(executor, turn.case, turn.extent, git, turn.round, report))


def measure_round(
    executor: Executor,
    case: Case,
    extent: Extent,
    git: str,
    round_: int = 0,
    report: Callable[[str], None] = lambda phase: None,
) -> Measured:
    """Measure one round of a case on this machine."""
    started, start_s = now(), monotonic()
    outcome = executor.measure(case, report, extent, round_)
    return Measured(outcome=outcome, host=host_name(), started=started, wall_s=monotonic() - start_s, git=git)


class Recorder:
    """Appends a record for every turn that is done, and reports it to the watcher."""

    def __init__(
        self,
        schedule: Schedule,
        store: RunWriter,
        watch: Watcher,
        history: Callable[[], History] | None = None,
    ) -> None:
        self._schedule = schedule
        self._store = store
        self._watch = watch
        self._read_history = history
        self._history: History | None = None

    def leave_out(self) -> None:
        """Write the records of cases that are not measured, unless the run has them already."""
        sweep = self._schedule.sweep
        skips: list[tuple[Status, Skip]] = [("skipped", skip) for skip in sweep.skipped]
        skips += [("unavailable", skip) for skip in sweep.unavailable]
        for status, skip in skips:
            if self._schedule.has(skip.case):
                continue
            record = Record(
                case=skip.case,
                round=0,
                sequence=self._schedule.next_sequence,
                status=status,
                reason=skip.reason,
                host=host_name(),
                started=now(),
            )
            self._schedule.next_sequence += 1
            self._store.append(record)
            if status == "unavailable":
                self._report("left out", skip.case, 0, record=record)

    def begin(self, turn: Turn) -> None:
        """Report that the turn has started."""
        self._report("started", turn.case, turn.round)

    def phase(self, turn: Turn, phase: str) -> None:
        """Report the phase that the turn has reached."""
        self._report("phase", turn.case, turn.round, phase=phase)

    def finish(self, turn: Turn, measured: Measured) -> None:
        """Write the record of a turn; it is on disk on return. A reading that cannot be stored makes it an error."""
        outcome, environment = measured.outcome, measured.outcome.environment
        if environment is not None:
            facts = {**environment.facts, "git": environment.facts.get("git", measured.git)}
            environment = Environment(facts=facts, state=environment.state)
        record = Record(
            case=turn.case,
            round=turn.round,
            sequence=turn.sequence,
            lane=turn.lane,
            status=outcome.status,
            reason=outcome.reason,
            host=measured.host,
            measurements=outcome.measurements,
            environment=environment.fingerprint if environment is not None else "",
            started=measured.started,
            wall_s=measured.wall_s,
            stop_reason=next((str(m.notes["stop"]) for m in outcome.measurements if "stop" in m.notes), ""),
            warnings=outcome.warnings,
            pilot=turn.pilot,
        )
        try:
            self._store.append(record, environment)
        except StoreError as error:
            reason = f"a reading of a meter or the model cannot be stored: {error}"
            record = replace(record, status="error", reason=reason, measurements=(), stop_reason="", warnings=())
            self._store.append(record, environment)
        self._schedule.add(record)
        if self._history is not None:
            self._history.add(record)
        self._report("finished", turn.case, turn.round, record=record)

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Inside, Ctrl-C is an InterruptedRun, and whatever stops the run says how far it came."""
        try:
            yield
        except KeyboardInterrupt:
            raise InterruptedRun("interrupted", finished=self._so_far()) from None
        except StoppedRun as stop:
            stop.finished = self._so_far()
            raise

    def _so_far(self) -> str:
        return f"{self._schedule.made} of {self._schedule.total} measured and saved"

    def _report(
        self, kind: EventKind, case: Case, round_: int, *, phase: str = "", record: Record | None = None
    ) -> None:
        done, total = self._schedule.made, self._schedule.total
        # nothing is being measured only between the end of one case and the start of the next
        left = self._left if kind == "finished" and self._read_history is not None else None
        self._watch(
            Event(
                kind=kind,
                case=case,
                round=round_,
                done=done,
                total=total,
                phase=phase,
                record=record,
                known=self._schedule.known,
                left=left,
            )
        )

    def _left(self) -> Forecast:
        if self._history is None:
            assert self._read_history is not None
            self._history = self._read_history()  # this run is a part of it
        return forecast(self._schedule.left(), self._history)


def now() -> str:
    """The current time (UTC) as records hold it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
