"""What is left to measure, and in which order.

All cells are measured round by round, every other round backwards: A B B A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from time import monotonic

from speechmeter.analysis.stopping import Chosen, Rounds, choose
from speechmeter.core.types import FAILED, Case, Pilot, Record, Skip
from speechmeter.launch.executors import Extent

Cell = tuple[Case, ...]
"""Cases that are measured side by side, on one device."""
Done = Mapping[tuple[str, int], Record]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The cases and rounds to measure, and the cases that get a record without being measured.

    After `run_s` seconds no further adaptive round is started. Rounds before `first_round` are left alone.
    """

    cases: Sequence[Case]
    rounds: Rounds
    skipped: Sequence[Skip] = ()
    unavailable: Sequence[Skip] = ()
    retry_failed: bool = False
    run_s: float | None = None
    first_round: int = 0

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


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is still to come: measurements that are certain, and the cases of those that precision may add."""

    certain: Sequence[tuple[Case, Extent]]
    possible: Sequence[Case] = ()


def pending(sweep: Sweep, finished: Done) -> Iterator[tuple[Case, int]]:
    """(case, round) pairs that will certainly be measured: adaptive rounds beyond the least number are not included."""
    for round_ in range(sweep.first_round, sweep.rounds.least):
        for cell in _in_order(sweep.cells(), round_):
            yield from ((case, round_) for case in _left_of(cell, round_, finished))


def _in_order(cells: Sequence[Cell], round_: int) -> Iterator[Cell]:
    return iter(cells) if round_ % 2 == 0 else reversed(cells)


def _left_of(cell: Cell, round_: int, done: Done) -> list[Case]:
    return [case for case in (cell if round_ % 2 == 0 else reversed(cell)) if (case.id, round_) not in done]


def extent_of(round_: int, rounds: Rounds) -> Extent:
    """What is measured in a round: those beyond the least are added for the precision of timing alone."""
    if round_ == 0:
        return "all"
    return "repeat" if round_ < rounds.least else "timing"


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

    def known(self) -> list[Record]:
        """The records that count as done, in the order of their measurement."""
        return sorted(self._done.values(), key=lambda record: record.sequence)

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
        for round_ in range(self.sweep.first_round, rounds.most):
            adaptive = round_ >= rounds.least
            if adaptive:
                run_s = self.sweep.run_s
                if run_s is not None and monotonic() - self._started_s > run_s:
                    return
                # only cells whose earlier rounds are done can be counted in the total
                ready = [cell for cell in self.cells if all(self.has(case, round_ - 1) for case in cell)]
                self._known |= {(case.id, round_) for cell in ready for case in self._left_in(cell, round_)}
            for cell in _in_order(self.cells, round_):
                left = self._left_in(cell, round_)
                for case in left if left and mine(cell) else ():
                    chosen = self._chosen.get(case.id) if adaptive else None
                    yield Turn(
                        case=case,
                        round=round_,
                        extent=self._extent(case, round_),
                        sequence=next(sequence),
                        lane=lane,
                        pilot=None if chosen is None else chosen.pilot,
                    )

    def _extent(self, case: Case, round_: int) -> Extent:
        """All of a case whose first round this is, where a sweep begins with a later one."""
        if self.sweep.first_round and not any(held == case.id for held, _ in self._done):
            return "all"
        return extent_of(round_, self.sweep.rounds)

    def new_sequence(self) -> Iterator[int]:
        """Numbers for the turns of one lane, above those of all records that were in the run before."""
        return count(self.next_sequence)

    def left(self) -> Left:
        """What is still to come."""
        certain: list[tuple[Case, Extent]] = []
        possible: list[Case] = []
        rounds = self.sweep.rounds
        for cell in self.cells:
            chosen = [self._chosen.get(case.id) for case in cell]
            last = max((one.rounds for one in chosen if one is not None), default=0) if all(chosen) else 0
            for round_ in range(self.sweep.first_round, rounds.most):
                left = _left_of(cell, round_, self._done)
                if round_ < max(rounds.least, last):
                    certain += [(case, extent_of(round_, rounds)) for case in left]
                elif not last:
                    possible += left
        return Left(certain=certain, possible=possible)

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
