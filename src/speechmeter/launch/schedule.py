"""What is left to measure, in which order, and how long it will take.

All cells are measured round by round, every other round backwards: A B B A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import monotonic

from speechmeter.analysis.stopping import Chosen, Rounds, choose
from speechmeter.core.errors import StoreError
from speechmeter.core.types import FAILED, Case, Limits, Pilot, Record, Skip
from speechmeter.engine.phases import processes_of
from speechmeter.launch.executors import Extent, meters_of
from speechmeter.store.run_dir import RunDir, is_run

Cell = tuple[Case, ...]
"""Cases that are measured side by side, on one device."""
Done = Mapping[tuple[str, int], Record]
_START_S = 2.5
"""The least that one process costs: interpreter, torch, plug-in (2 to 8 s were seen)."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The cases and rounds to measure, and the cases that get a record without being measured.

    After `run_s` seconds no further adaptive round is started.
    """

    cases: Sequence[Case]
    rounds: Rounds
    skipped: Sequence[Skip] = ()
    unavailable: Sequence[Skip] = ()
    retry_failed: bool = False
    run_s: float | None = None

    def finished(self, records: Iterable[Record]) -> dict[tuple[str, int], Record]:
        """The records that count as done, by (case id, round).

        An `unavailable` record counts only while its case is still unavailable, a failed one unless it is retried.
        """
        absent = {skip.case.id for skip in self.unavailable}
        done = {}
        for record in records:
            if record.status == "unavailable":
                repeat = record.case.id not in absent
            else:
                repeat = self.retry_failed and record.status in FAILED
            if not repeat:
                done[record.key] = record
        return done

    def cells(self) -> list[Cell]:
        """The cases to measure, grouped by cell."""
        left_out = {skip.case.id for skip in (*self.skipped, *self.unavailable)}
        cells: dict[str, list[Case]] = {}
        for case in self.cases:
            if case.id not in left_out:
                cells.setdefault(case.cell, []).append(case)
        return [tuple(cases) for cases in cells.values()]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One case in one round. `sequence` counts the turns of a lane, which has one turn at a time.

    In the rounds after the first stage, `pilot` is what the number of rounds was chosen from.
    """

    case: Case
    round: int
    extent: Extent
    sequence: int
    lane: str = ""
    pilot: Pilot | None = None


def pending(sweep: Sweep, finished: Done) -> Iterator[tuple[Case, int]]:
    """(case, round) pairs that will certainly be measured: adaptive rounds beyond the least number are not included."""
    for round_ in range(sweep.rounds.least):
        for cell in _in_order(sweep.cells(), round_):
            yield from ((case, round_) for case in _left_of(cell, round_, finished))


def _in_order(cells: Sequence[Cell], round_: int) -> Iterator[Cell]:
    return iter(cells) if round_ % 2 == 0 else reversed(cells)


def _left_of(cell: Cell, round_: int, done: Done) -> list[Case]:
    return [case for case in (cell if round_ % 2 == 0 else reversed(cell)) if (case.id, round_) not in done]


class Schedule:
    """The turns of a sweep, for one device that takes all of them or for several that share the cells."""

    def __init__(self, sweep: Sweep, records: Sequence[Record], cells: Sequence[Cell] | None = None) -> None:
        self.sweep = sweep
        self.cells = sweep.cells() if cells is None else list(cells)
        self.made = 0
        self.next_sequence = max((r.sequence for r in records), default=-1) + 1
        self._done = sweep.finished(records)
        self._known = {(case.id, round_) for case, round_ in pending(sweep, self._done)}
        self._chosen: dict[str, Chosen] = {}
        self._started_s = monotonic()

    @property
    def total(self) -> int:
        """How many turns are known so far, finished ones included; adaptive rounds may add more."""
        return len(self._known)

    def has(self, case: Case, round_: int = 0) -> bool:
        """Whether this round of the case is done."""
        return (case.id, round_) in self._done

    def add(self, record: Record) -> None:
        """Note that a turn is done, with this record."""
        self._done[record.key] = record
        self.made += 1

    def turns(
        self, mine: Callable[[Cell], bool] = lambda cell: True, sequence: Iterator[int] | None = None, lane: str = ""
    ) -> Iterator[Turn]:
        """The turns of one device, each given once the one before it is done.

        `mine` is asked about each cell that is unfinished. Several devices have a lane each, and each lane counts its
        own turns: `sequence` continues where an earlier call for the same lane ended.
        """
        sequence = self.new_sequence() if sequence is None else sequence
        rounds = self.sweep.rounds
        for round_ in range(rounds.most):
            adaptive = round_ >= rounds.least
            if adaptive:
                run_s = self.sweep.run_s
                if run_s is not None and monotonic() - self._started_s > run_s:
                    return
                # only cells whose earlier rounds are done can be counted in the total
                ready = [cell for cell in self.cells if all(self.has(case, round_ - 1) for case in cell)]
                self._known |= {(case.id, round_) for cell in ready for case in self._left_in(cell, round_)}
            # rounds beyond the least are added for the precision of timing alone
            extent: Extent = "all" if round_ == 0 else "timing" if adaptive else "repeat"
            for cell in _in_order(self.cells, round_):
                left = self._left_in(cell, round_)
                for case in left if left and mine(cell) else ():
                    chosen = self._chosen.get(case.id) if adaptive else None
                    yield Turn(
                        case=case,
                        round=round_,
                        extent=extent,
                        sequence=next(sequence),
                        lane=lane,
                        pilot=None if chosen is None else chosen.pilot,
                    )

    def new_sequence(self) -> Iterator[int]:
        """Numbers for the turns of one lane, above those of all records that were in the run before."""
        return count(self.next_sequence)

    def _left_in(self, cell: Cell, round_: int) -> list[Case]:
        """The cases of a cell that this round still needs. All cases of a cell continue together, to be paired."""
        if round_ >= self.sweep.rounds.least:
            self._choose()
            chosen = [self._chosen.get(case.id) for case in cell]
            if all(chosen) and round_ >= max(one.rounds for one in chosen if one is not None):
                return []
        return _left_of(cell, round_, self._done)

    def _choose(self) -> None:
        """Choose the number of rounds of each case whose first stage is complete; a choice is never changed."""
        cases = [case.id for cell in self.cells for case in cell]
        if all(case in self._chosen for case in cases):
            return
        records: dict[str, list[Record]] = {case: [] for case in cases}
        for (case_id, _), record in self._done.items():
            if case_id in records:
                records[case_id].append(record)
        self._chosen = {**choose(records, self.sweep.rounds), **self._chosen}


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Seconds at least and at most (None: no limit), and how many (case, round) pairs are known from earlier runs."""

    least_s: float
    most_s: float | None
    known: int
    total: int


def forecast(pairs: Sequence[tuple[Case, int]], limits: Limits, earlier: Mapping[str, float]) -> Forecast:
    """The time that (case, round) pairs will take. `earlier` has seconds by case id, from `earlier_walls`."""
    known = sum(earlier[case.id] for case, _ in pairs if case.id in earlier)
    unknown = [case for case, _ in pairs if case.id not in earlier]
    starts = _START_S * sum(len(processes_of(case, meters_of(case))) for case in unknown)
    bounded = not unknown or limits.time_s is not None
    return Forecast(
        least_s=known + starts,
        most_s=known + len(unknown) * (limits.time_s or 0.0) if bounded else None,
        known=len(pairs) - len(unknown),
        total=len(pairs),
    )


def earlier_walls(folders: Iterable[Path]) -> dict[str, float]:
    """Median wall seconds by case id, from every readable run in the given folders."""
    walls: dict[str, list[float]] = {}
    for folder in folders:
        for run in sorted(folder.iterdir()) if folder.is_dir() else ():
            try:
                records = RunDir(run).records() if is_run(run) else []
            except (StoreError, OSError):
                continue
            for record in records:
                if record.wall_s:
                    walls.setdefault(record.case.id, []).append(record.wall_s)
    return {case_id: median(values) for case_id, values in walls.items()}
