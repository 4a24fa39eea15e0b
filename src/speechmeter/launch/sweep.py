"""The run itself: rounds of all cases, interleaved, each record on disk before the next case starts."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from time import monotonic
from typing import Literal

from speechmeter.core.errors import InterruptedRun
from speechmeter.core.types import FAILED, Case, Environment, Record, Skip
from speechmeter.engine.measure import Outcome
from speechmeter.launch.places import Place
from speechmeter.store.run_dir import RunWriter

EventKind = Literal["started", "phase", "finished"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """What a watcher is told: a (case, round) started, changed phase, or finished with a record."""

    kind: EventKind
    case: Case
    round: int
    done: int
    total: int
    phase: str = ""
    record: Record | None = None


Watcher = Callable[[Event], None]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What is to be done: cases, rounds, and the cells that get a record without being measured."""

    cases: Sequence[Case]
    rounds: int
    skipped: Sequence[Skip] = ()
    unavailable: Sequence[Skip] = ()
    retry_failed: bool = False


def run_sweep(sweep: Sweep, place: Place, store: RunWriter, watch: Watcher = lambda event: None) -> list[Record]:
    """Measure what the store does not hold yet. Raises InterruptedRun on Ctrl-C, finished records kept."""
    before = store.records()
    finished = {r.key for r in before if not (sweep.retry_failed and r.status in FAILED)}
    sequence = max((r.sequence for r in before), default=-1) + 1
    made: list[Record] = []
    for record in _unmeasured(sweep, finished, sequence):
        store.append(record)
        made.append(record)
    sequence += len(made)
    todo = list(pending(sweep, finished))
    git = git_state()
    for done, (case, round_) in enumerate(todo):
        watch(Event(kind="started", case=case, round=round_, done=done, total=len(todo)))
        started, start = _now(), monotonic()
        try:
            outcome = place.measure(case, _phase_reporter(watch, case, round_, done, len(todo)))
        except KeyboardInterrupt:
            raise InterruptedRun(f"{done} of {len(todo)} measured, all kept") from None
        record, environment = _record(case, round_, sequence + done, outcome, git)
        record = replace(record, started=started, wall_s=monotonic() - start)
        store.append(record, environment)
        made.append(record)
        watch(Event(kind="finished", case=case, round=round_, done=done + 1, total=len(todo), record=record))
    return made


def pending(sweep: Sweep, finished: set[tuple[str, int]]) -> Iterator[tuple[Case, int]]:
    """(case, round) pairs still to do, every other round backwards: A B B A, so that drift hits all cases alike."""
    left_out = {skip.case.id for skip in (*sweep.skipped, *sweep.unavailable)}
    cases = [case for case in sweep.cases if case.id not in left_out]
    for round_ in range(sweep.rounds):
        for case in cases if round_ % 2 == 0 else reversed(cases):
            if (case.id, round_) not in finished:
                yield case, round_


def _unmeasured(sweep: Sweep, finished: set[tuple[str, int]], sequence: int) -> Iterator[Record]:
    cells = [("skipped", skip) for skip in sweep.skipped] + [("unavailable", skip) for skip in sweep.unavailable]
    fresh = [(status, skip) for status, skip in cells if (skip.case.id, 0) not in finished]
    for offset, (status, skip) in enumerate(fresh):
        yield Record(
            case=skip.case,
            round=0,
            sequence=sequence + offset,
            status="skipped" if status == "skipped" else "unavailable",
            reason=skip.reason,
            host=platform.node(),
            started=_now(),
        )


def _record(case: Case, round_: int, sequence: int, outcome: Outcome, git: str) -> tuple[Record, Environment | None]:
    environment = outcome.environment
    if environment is not None:
        environment = Environment(facts={**environment.facts, "git": git}, state=environment.state)
    stop = next((str(m.notes["stop"]) for m in outcome.measurements if "stop" in m.notes), "")
    record = Record(
        case=case,
        round=round_,
        sequence=sequence,
        status=outcome.status,
        reason=outcome.reason,
        host=platform.node(),
        measurements=outcome.measurements,
        environment=environment.fingerprint if environment is not None else "",
        stop_reason=stop,
        warnings=outcome.warnings,
    )
    return record, environment


def git_state() -> str:
    """The commit of the working directory, `-dirty` when it was changed; empty outside a repository."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def _phase_reporter(watch: Watcher, case: Case, round_: int, done: int, total: int) -> Callable[[str], None]:
    return lambda phase: watch(Event(kind="phase", case=case, round=round_, done=done, total=total, phase=phase))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
