"""A run on many machines: every device takes its turns one by one, all of them into one book.

The driver keeps the run: it plans, appends each record as it comes, and may be stopped and resumed. What is lost with
a process or a machine is measured again on the same kind of machine, twice at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import monotonic, sleep

from speechmeter.core.errors import InterruptedRun
from speechmeter.engine.measure import Outcome
from speechmeter.launch.agenda import Agenda, Sweep, Turn
from speechmeter.launch.booking import Book, Told, Watcher, now
from speechmeter.launch.cluster import Answer, Lane, Lost, Member
from speechmeter.launch.lanes import Claims, cells_by_machine, lanes_of
from speechmeter.launch.muster import Crew, ask
from speechmeter.launch.node import told
from speechmeter.launch.parcels import unpack
from speechmeter.store.run_dir import RunWriter

TRIES = 3
"""How often a measurement is begun before its loss is recorded."""
PATIENCE_S = 30.0
"""How long a run with nothing under way waits for a machine to come (back)."""
_LOOK_S = 5.0
_NAP_S = 1.0


def run_spread(
    sweep: Sweep,
    crew: Crew,
    store: RunWriter,
    watch: Watcher = lambda event: None,
    patience_s: float = PATIENCE_S,
) -> None:
    """Measure what the store does not hold yet.

    Raises StoppedRun on Ctrl-C, and when no machine is left for a case; finished records are kept.
    """
    records = store.records()
    agenda = Agenda(sweep, records, cells_by_machine(sweep.cells(), crew.members, crew.wishes))
    book = Book(agenda, store, watch)
    spread = _Spread(agenda, crew, book, Claims(crew.wishes, records), store.artifacts_path)
    try:
        with book.stopping():
            book.leave_out()
            spread.run(patience_s)
    finally:
        spread.close()


@dataclass(kw_only=True)
class _Work:
    """A lane with the turns it is given, and the one that is under way. `stale`: there may be more to claim."""

    lane: Lane
    sequence: Iterator[int]
    turns: Iterator[Turn] = field(default_factory=lambda: iter(()))
    turn: Turn | None = None
    started: str = ""
    begun_s: float = 0.0
    stale: bool = True


class _Spread:
    def __init__(self, agenda: Agenda, crew: Crew, book: Book, claims: Claims, artifacts: Path) -> None:
        self._agenda = agenda
        self._crew = crew
        self._book = book
        self._claims = claims
        self._artifacts = artifacts
        self._works: dict[int, _Work] = {}
        self._numbered = 0
        self._asked = {member.node.id for member in crew.members}
        self._losses: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        for member in crew.members:
            self._join(member)

    def run(self, patience_s: float) -> None:
        """Until nothing is left to do."""
        last_busy_s = monotonic()
        while True:
            for work in self._works.values():
                if work.turn is None:
                    self._next(work)
            if any(work.turn for work in self._works.values()):
                for number, answer in self._crew.cluster.wait(_LOOK_S):
                    self._take(self._works[number], answer)
                last_busy_s = monotonic()
            elif (left := next(self._agenda.turns(), None)) is None:
                return
            elif monotonic() - last_busy_s > patience_s:
                raise InterruptedRun(f"no machine is left for {left.case.label}; add one and --resume")
            else:
                sleep(_NAP_S)
            self._look_around()

    def close(self) -> None:
        """Give every device back."""
        for work in self._works.values():
            self._crew.cluster.release(work.lane)

    def _next(self, work: _Work) -> None:
        turn = next(work.turns, None)
        if turn is None and work.stale:
            work.stale = False
            work.turns = self._agenda.turns(partial(self._claims.claim, work.lane), work.sequence, work.lane.key)
            turn = next(work.turns, None)
        if turn is None:
            self._crew.cluster.release(work.lane)
        else:
            self._book.begin(turn)
            self._submit(work, turn)

    def _submit(self, work: _Work, turn: Turn) -> None:
        work.turn, work.started, work.begun_s = turn, now(), monotonic()
        setting = {**self._crew.wishes.setting(), "cores": list(work.lane.cores)}
        self._crew.cluster.submit(work.lane, setting, {"case": turn.case.to_json(), "extent": turn.extent})
        self._book.phase(turn, f"on {work.lane.name}")

    def _take(self, work: _Work, answer: Answer) -> None:
        turn = work.turn
        assert turn is not None
        if isinstance(answer, Lost):
            self._lose(work, turn, answer)
            return
        work.turn = None
        found = told(answer)
        again = [f"begun again after a loss: {reason}" for reason in self._losses[turn.case.id, turn.round]]
        warnings = (*found.outcome.warnings, *again, *unpack(answer["files"], self._artifacts))
        self._book.close(turn, replace(found, outcome=replace(found.outcome, warnings=warnings)))

    def _lose(self, work: _Work, turn: Turn, lost: Lost) -> None:
        """Try again: here, where the machine is still there, else wherever its cell goes."""
        here = work.lane.member.node.id in {node.id for node in self._crew.cluster.nodes()}
        losses = self._losses[turn.case.id, turn.round]
        if lost.began or here:
            losses.append(f"{work.lane.name}: {lost.reason}")
        work.turn = None
        if len(losses) >= TRIES:
            self._book.close(turn, _given_up(work, losses))
        elif here:
            self._submit(work, turn)
        if not here:
            self._leave(work)

    def _look_around(self) -> None:
        """Machines that went while they had nothing to do, and machines that came."""
        nodes = {node.id: node for node in self._crew.cluster.nodes()}
        for work in list(self._works.values()):
            if work.turn is None and work.lane.member.node.id not in nodes:
                self._leave(work)
        fresh = [node for key, node in nodes.items() if key not in self._asked]
        self._asked |= {node.id for node in fresh}
        for member in ask(self._crew.cluster, self._crew.wishes, fresh):
            if not member.unfit and member.host not in self._claims.hosts:
                self._join(member)

    def _join(self, member: Member) -> None:
        for lane in lanes_of(member, self._crew.wishes, self._numbered):
            self._works[lane.number] = _Work(lane=lane, sequence=self._agenda.new_sequence())
            self._numbered += 1
        self._stir()

    def _leave(self, work: _Work) -> None:
        self._crew.cluster.release(work.lane)
        self._claims.free(work.lane)
        del self._works[work.lane.number]
        self._stir()

    def _stir(self) -> None:
        self._claims.hosts = frozenset(work.lane.member.host for work in self._works.values())
        for work in self._works.values():
            work.stale = True


def _given_up(work: _Work, losses: list[str]) -> Told:
    reason = f"lost {len(losses)} times, with the process or machine that measured: {losses[-1]}"
    outcome = Outcome(status="crashed", reason=reason, warnings=tuple(losses[:-1]))
    return Told(outcome=outcome, host=work.lane.member.host, started=work.started, wall_s=monotonic() - work.begun_s)
