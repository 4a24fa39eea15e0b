"""What is left to measure, and in which order: all cells round by round, every other round backwards: A B B A."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count
from time import monotonic

from speechmeter.analysis.stopping import Chosen, Rounds, choose
from speechmeter.core.types import FAILED, Case, Pilot, Record, Skip
from speechmeter.launch.places import Extent

Cell = tuple[Case, ...]
"""Cases that are measured side by side, on one device."""
Done = Mapping[tuple[str, int], Record]


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
        """The records that count as done, by (case id, round).

        One of a case that could not be had is no measurement: it stands for as long as the case cannot be had.
        """
        absent = {skip.case.id for skip in self.unavailable}
        return {r.key: r for r in records if not self._to_repeat(r, absent)}

    def _to_repeat(self, record: Record, absent: Set[str]) -> bool:
        if record.status == "unavailable":
            return record.case.id not in absent
        return self.retry_failed and record.status in FAILED

    def cells(self, apart: Callable[[Case], str] = lambda case: "") -> list[Cell]:
        """The cases to measure, those of one cell together unless `apart` tells them from each other."""
        left_out = {skip.case.id for skip in (*self.skipped, *self.unavailable)}
        cells: dict[tuple[str, str], list[Case]] = {}
        for case in self.cases:
            if case.id not in left_out:
                cells.setdefault((case.cell, apart(case)), []).append(case)
        return [tuple(cases) for cases in cells.values()]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One case in one round. `sequence` counts the turns of a lane, which has one turn at a time.

    `pilot` is from what the number of rounds was chosen, in the rounds after a first stage.
    """

    case: Case
    round: int
    extent: Extent
    sequence: int
    lane: str = ""
    pilot: Pilot | None = None


def pending(sweep: Sweep, finished: Done) -> Iterator[tuple[Case, int]]:
    """(case, round) pairs that are sure to be measured: adaptive rounds beyond the least number are not in it."""
    for round_ in range(sweep.rounds.least):
        for cell in in_order(sweep.cells(), round_):
            yield from ((case, round_) for case in left_of(cell, round_, finished))


def in_order(cells: Sequence[Cell], round_: int) -> Iterator[Cell]:
    """The cells as they come in a round: every other one backwards."""
    return iter(cells) if round_ % 2 == 0 else reversed(cells)


def left_of(cell: Cell, round_: int, done: Done) -> list[Case]:
    """Cases of a cell that are not measured yet in a round, in the order in which they come."""
    return [case for case in (cell if round_ % 2 == 0 else reversed(cell)) if (case.id, round_) not in done]


class Agenda:
    """The turns of a sweep, for one device that takes all of them or for several that share the cells."""

    def __init__(self, sweep: Sweep, records: Sequence[Record], cells: Sequence[Cell] | None = None) -> None:
        self.sweep = sweep
        self.cells = sweep.cells() if cells is None else list(cells)
        self.made = 0
        self.next_sequence = max((r.sequence for r in records), default=-1) + 1
        self._done = sweep.finished(records)
        self._known = {(case.id, round_) for case, round_ in pending(sweep, self._done)}
        self._chosen: dict[str, Chosen] = {}
        self._begun = monotonic()

    @property
    def total(self) -> int:
        """How many turns are known by now, those that were taken among them; adaptive rounds may add more."""
        return len(self._known)

    def has(self, case: Case, round_: int = 0) -> bool:
        """Whether this round of the case is done."""
        return (case.id, round_) in self._done

    def take(self, record: Record) -> None:
        """A turn is done: this is what came of it."""
        self._done[record.key] = record
        self.made += 1

    def turns(
        self, mine: Callable[[Cell], bool] = lambda cell: True, sequence: Iterator[int] | None = None, lane: str = ""
    ) -> Iterator[Turn]:
        """The turns of one device, each given once the one before it is done.

        `mine` is asked about a cell that has something left. Several devices have a lane each, and each lane counts its
        own turns: `sequence` goes on where an earlier call for the same lane ended.
        """
        sequence = self.new_sequence() if sequence is None else sequence
        rounds = self.sweep.rounds
        for round_ in range(rounds.most):
            if round_ >= rounds.least and self._out_of_time():
                return
            self._foresee(round_)
            for cell in in_order(self.cells, round_):
                left = self._left_of(cell, round_)
                for case in left if left and mine(cell) else ():
                    yield Turn(
                        case=case,
                        round=round_,
                        extent=_extent(round_, rounds),
                        sequence=next(sequence),
                        lane=lane,
                        pilot=self._pilot_of(case) if round_ >= rounds.least else None,
                    )

    def new_sequence(self) -> Iterator[int]:
        """Numbers for the turns of one lane, after all records of earlier calls of the command."""
        return count(self.next_sequence)

    def _left_of(self, cell: Cell, round_: int) -> list[Case]:
        """What is left of a cell in a round. Cases of one cell go on together, so that they can be paired."""
        if round_ >= self.sweep.rounds.least:
            self._choose()
            chosen = [self._chosen.get(case.id) for case in cell]
            if all(chosen) and round_ >= max(one.rounds for one in chosen if one is not None):
                return []
        return left_of(cell, round_, self._done)

    def _pilot_of(self, case: Case) -> Pilot | None:
        chosen = self._chosen.get(case.id)
        return chosen.pilot if chosen is not None else None

    def _choose(self) -> None:
        """Choose the number of rounds of the cases whose first stage is complete by now; what is chosen stays."""
        cases = [case.id for cell in self.cells for case in cell]
        if all(case in self._chosen for case in cases):
            return
        records: dict[str, list[Record]] = {case: [] for case in cases}
        for (case_id, _), record in self._done.items():
            if case_id in records:
                records[case_id].append(record)
        self._chosen = {**choose(records, self.sweep.rounds), **self._chosen}

    def _foresee(self, round_: int) -> None:
        """Count the turns of an adaptive round for those cells whose earlier rounds are done."""
        rounds = self.sweep.rounds
        if round_ >= rounds.least:
            ready = [cell for cell in self.cells if all(self.has(case, round_ - 1) for case in cell)]
            self._known |= {(c.id, round_) for cell in ready for c in self._left_of(cell, round_)}

    def _out_of_time(self) -> bool:
        return self.sweep.run_s is not None and monotonic() - self._begun > self.sweep.run_s


def _extent(round_: int, rounds: Rounds) -> Extent:
    """Rounds beyond the least are added for the precision of timing alone."""
    if round_ == 0:
        return "all"
    return "repeat" if round_ < rounds.least else "timing"
