"""The run itself: rounds of all cases, interleaved, each record on disk before the next case starts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import count
from time import monotonic
from typing import Literal

from speechmeter.analysis.stopping import Rounds, group_settled
from speechmeter.core.errors import InterruptedRun
from speechmeter.core.machine import host_name
from speechmeter.core.types import FAILED, Case, Environment, Record, Skip
from speechmeter.engine.measure import Outcome
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
class Sweep:
    """What is to be done: cases, rounds, and the cells that get a record without being measured.

    After `run_s` seconds no further adaptive round is begun.
    """

    cases: Sequence[Case]
    rounds: Rounds
    skipped: Sequence[Skip] = ()
    unavailable: Sequence[Skip] = ()
    retry_failed: bool = False
    run_s: float | None = None

    def finished(self, records: Iterable[Record]) -> dict[tuple[str, int], Record]:
        """The records that count as done, by (case id, round)."""
        return {r.key: r for r in records if not (self.retry_failed and r.status in FAILED)}


def run_sweep(sweep: Sweep, place: Place, store: RunWriter, watch: Watcher = lambda event: None) -> None:
    """Measure what the store does not hold yet. Raises InterruptedRun on Ctrl-C, finished records kept."""
    progress = _Progress()
    try:
        _run_sweep(sweep, place, store, watch, progress)
    except KeyboardInterrupt:
        raise InterruptedRun(f"{progress.made} of {progress.total} measured, all kept") from None


@dataclass
class _Progress:
    made: int = 0
    total: int = 0


def _run_sweep(sweep: Sweep, place: Place, store: RunWriter, watch: Watcher, progress: _Progress) -> None:
    before = store.records()
    done = sweep.finished(before)
    sequence = count(max((r.sequence for r in before), default=-1) + 1)
    planned = progress.total = sum(len(list(round_cases(sweep, round_, done))) for round_ in range(sweep.rounds.least))
    for record in _unmeasured(sweep, done, sequence):
        store.append(record)
        if record.status == "unavailable":
            watch(Event(kind="left out", case=record.case, round=0, done=0, total=planned, record=record))
    git, begun = git_state(), monotonic()
    for round_ in range(sweep.rounds.most):
        if round_ >= sweep.rounds.least and sweep.run_s is not None and monotonic() - begun > sweep.run_s:
            break
        todo = list(round_cases(sweep, round_, done))
        for place_in_round, case in enumerate(todo):
            progress.total = max(planned, progress.made + len(todo) - place_in_round)
            event = Event(kind="started", case=case, round=round_, done=progress.made, total=progress.total)
            watch(event)
            record, environment = _measured(event, place, watch, next(sequence), git, _extent(round_, sweep.rounds))
            store.append(record, environment)
            done[record.key] = record
            progress.made += 1
            watch(replace(event, kind="finished", done=progress.made, record=record))


def _measured(
    event: Event, place: Place, watch: Watcher, sequence: int, git: str, extent: Extent
) -> tuple[Record, Environment | None]:
    started, start = _now(), monotonic()
    outcome = place.measure(event.case, lambda phase: watch(replace(event, kind="phase", phase=phase)), extent)
    record, environment = _record(event.case, event.round, sequence, outcome, git)
    return replace(record, started=started, wall_s=monotonic() - start), environment


def _extent(round_: int, rounds: Rounds) -> Extent:
    """Rounds beyond the least are added for the precision of timing alone."""
    if round_ == 0:
        return "all"
    return "repeat" if round_ < rounds.least else "timing"


def pending(sweep: Sweep, finished: Mapping[tuple[str, int], Record]) -> Iterator[tuple[Case, int]]:
    """(case, round) pairs that are sure to be measured: adaptive rounds beyond the least number are not in it."""
    for round_ in range(sweep.rounds.least):
        yield from ((case, round_) for case in round_cases(sweep, round_, finished))


def round_cases(sweep: Sweep, round_: int, done: Mapping[tuple[str, int], Record]) -> Iterator[Case]:
    """Cases to measure in one round, those of one cell side by side; every other round runs backwards: A B B A.

    A cell is left alone once the rounds before this one have settled all of its cases.
    """
    left_out = {skip.case.id for skip in (*sweep.skipped, *sweep.unavailable)}
    cells: dict[str, list[Case]] = {}
    for case in sweep.cases:
        if case.id not in left_out:
            cells.setdefault(case.cell, []).append(case)
    ordered = [case for cases in cells.values() if _needs_round(cases, round_, done, sweep.rounds) for case in cases]
    for case in ordered if round_ % 2 == 0 else reversed(ordered):
        if (case.id, round_) not in done:
            yield case


def _needs_round(cases: Sequence[Case], round_: int, done: Mapping[tuple[str, int], Record], rounds: Rounds) -> bool:
    if round_ < rounds.least:
        return True
    earlier = [[done[case.id, r] for r in range(round_) if (case.id, r) in done] for case in cases]
    return not group_settled(earlier, rounds)


def _unmeasured(sweep: Sweep, finished: Mapping[tuple[str, int], Record], sequence: Iterator[int]) -> Iterator[Record]:
    cells = [("skipped", skip) for skip in sweep.skipped] + [("unavailable", skip) for skip in sweep.unavailable]
    fresh = [(status, skip) for status, skip in cells if (skip.case.id, 0) not in finished]
    for status, skip in fresh:
        yield Record(
            case=skip.case,
            round=0,
            sequence=next(sequence),
            status="skipped" if status == "skipped" else "unavailable",
            reason=skip.reason,
            host=host_name(),
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
        host=host_name(),
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


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
