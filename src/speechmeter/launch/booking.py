"""From what became of a turn to a record on disk: the one way in which a run is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from time import monotonic
from typing import Literal

from speechmeter.core.errors import InterruptedRun, StoppedRun, StoreError
from speechmeter.core.machine import host_name
from speechmeter.core.types import Case, Environment, Record, Skip, Status
from speechmeter.engine.measure import Outcome
from speechmeter.launch.agenda import Agenda, Turn
from speechmeter.launch.places import Extent, Place
from speechmeter.store.run_dir import RunWriter

EventKind = Literal["left out", "started", "phase", "finished"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """What a watcher is told: a case is left out, or a (case, round) started, changed phase, finished with a record."""

    kind: EventKind
    case: Case
    round: int
    done: int
    total: int
    phase: str = ""
    record: Record | None = None


Watcher = Callable[[Event], None]


@dataclass(frozen=True, kw_only=True)
class Told:
    """What became of a turn, with host, time (UTC) and commit of the machine that measured."""

    outcome: Outcome
    host: str
    started: str
    wall_s: float
    git: str = ""


def measured_at(place: Place, case: Case, extent: Extent, git: str, report: Callable[[str], None]) -> Told:
    """Measure one round of a case on this machine."""
    started, start = now(), monotonic()
    outcome = place.measure(case, report, extent)
    return Told(outcome=outcome, host=host_name(), started=started, wall_s=monotonic() - start, git=git)


class Book:
    """Appends a record for every turn that is done, and tells the watcher."""

    def __init__(self, agenda: Agenda, store: RunWriter, watch: Watcher) -> None:
        self._agenda = agenda
        self._store = store
        self._watch = watch

    def leave_out(self) -> None:
        """Write the cells that get a record without being measured, unless they have one."""
        sweep = self._agenda.sweep
        skips: list[tuple[Status, Skip]] = [("skipped", skip) for skip in sweep.skipped]
        skips += [("unavailable", skip) for skip in sweep.unavailable]
        for status, skip in skips:
            if not self._agenda.has(skip.case):
                record = _left_out(status, skip, self._agenda.next_sequence)
                self._agenda.next_sequence += 1
                self._store.append(record)
                if status == "unavailable":
                    self._tell("left out", skip.case, 0, record=record)

    def begin(self, turn: Turn) -> None:
        """The turn is under way."""
        self._tell("started", turn.case, turn.round)

    def phase(self, turn: Turn, phase: str) -> None:
        """The turn has come so far."""
        self._tell("phase", turn.case, turn.round, phase=phase)

    def close(self, turn: Turn, told: Told) -> None:
        """The turn is over: its record is on disk on return; an error where a plug-in gave what no record holds."""
        record, environment = _record(turn, told)
        try:
            self._store.append(record, environment)
        except StoreError as error:
            record = _refused(record, error)
            self._store.append(record, environment)
        self._agenda.take(record)
        self._tell("finished", turn.case, turn.round, record=record)

    @property
    def so_far(self) -> str:
        """What a run that is stopped now leaves, in words."""
        return f"{self._agenda.made} of {self._agenda.total} measured, all kept"

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Inside, Ctrl-C is an InterruptedRun, and whatever stops the run says how far it came."""
        try:
            yield
        except KeyboardInterrupt:
            raise InterruptedRun("interrupted", finished=self.so_far) from None
        except StoppedRun as stop:
            stop.finished = self.so_far
            raise

    def _tell(self, kind: EventKind, case: Case, round_: int, *, phase: str = "", record: Record | None = None) -> None:
        agenda = self._agenda
        self._watch(
            Event(kind=kind, case=case, round=round_, done=agenda.made, total=agenda.total, phase=phase, record=record)
        )


def _record(turn: Turn, told: Told) -> tuple[Record, Environment | None]:
    outcome, environment = told.outcome, told.outcome.environment
    if environment is not None:
        environment = Environment(facts={**environment.facts, "git": told.git}, state=environment.state)
    stop = next((str(m.notes["stop"]) for m in outcome.measurements if "stop" in m.notes), "")
    record = Record(
        case=turn.case,
        round=turn.round,
        sequence=turn.sequence,
        lane=turn.lane,
        status=outcome.status,
        reason=outcome.reason,
        host=told.host,
        measurements=outcome.measurements,
        environment=environment.fingerprint if environment is not None else "",
        started=told.started,
        wall_s=told.wall_s,
        stop_reason=stop,
        warnings=outcome.warnings,
        pilot=turn.pilot,
    )
    return record, environment


def _refused(record: Record, error: StoreError) -> Record:
    reason = f"what a meter or the model gave cannot be kept: {error}"
    return replace(record, status="error", reason=reason, measurements=(), stop_reason="", warnings=())


def _left_out(status: Status, skip: Skip, sequence: int) -> Record:
    return Record(
        case=skip.case,
        round=0,
        sequence=sequence,
        status=status,
        reason=skip.reason,
        host=host_name(),
        started=now(),
    )


def now() -> str:
    """This moment as records write it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
