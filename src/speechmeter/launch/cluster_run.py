"""A run on many machines: every device measures one turn at a time, and one recorder writes all records.

The driver keeps the run: it plans, appends each record as it comes, and may be stopped and resumed. A measurement that
is lost with a process or a machine is repeated on the same kind of machine, twice at most.

A measurement on the CPU has all cores that its machine declares: a neighbour would spoil the figure. GPUs of one
machine run side by side, each with cores of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from speechmeter.core.errors import InterruptedRun
from speechmeter.core.types import Case, Record
from speechmeter.engine.measure import Outcome
from speechmeter.launch.cluster import Answer, Lane, Lost, Machine, Machines, Requirements, ask
from speechmeter.launch.node import measured_from, unpack
from speechmeter.launch.recorder import Measured, Recorder, Watcher, now
from speechmeter.launch.schedule import Cell, Schedule, Sweep, Turn
from speechmeter.store.run_dir import RunWriter

TRIES = 3
"""How often a measurement is started before its loss is recorded."""
PATIENCE_S = 30.0
"""How long a run with no measurement in progress waits for a machine to join or to come back."""
_LOOK_S = 5.0
_PAUSE_S = 1.0


def run_on_cluster(
    sweep: Sweep,
    machines: Machines,
    store: RunWriter,
    watch: Watcher = lambda event: None,
    patience_s: float = PATIENCE_S,
) -> None:
    """Measure what the store does not hold yet.

    Raises StoppedRun on Ctrl-C, and when no machine is left for a case; finished records are kept.
    """
    records = store.records()
    schedule = Schedule(sweep, records, cells_by_machine(sweep.cells(), machines.machines, machines.requirements))
    recorder = Recorder(schedule, store, watch)
    assignment = Assignment(machines.requirements, records)
    run = _ClusterRun(schedule, machines, recorder, assignment, store.artifacts_path)
    try:
        with recorder.stopping():
            recorder.leave_out()
            run.run(patience_s)
    finally:
        run.close()


def lanes_of(machine: Machine, requirements: Requirements, first: int) -> list[Lane]:
    """The lanes that a machine needs for the cases that it can measure, numbered from `first`."""
    able = [case for case in requirements.cases if requirements.obstacle(machine, case) is None]
    on_cpu = [case for case in able if not case.device.is_cuda]
    on_gpu = [case for case in able if case.device.is_cuda]
    node = machine.node
    lanes = []
    if on_cpu:
        memory = max(requirements.memory_bytes(case) for case in on_cpu)
        lanes.append(Lane(number=first, machine=machine, cores=machine.cores, cpus=node.cpus, memory_bytes=memory))
    if on_gpu:
        # as many GPUs as there are cores for; each has an equal share of the cores
        usable = machine.cores[: node.cpus]
        count = max(1, min(node.gpus, len(usable) // max(case.axes.cores for case in on_gpu)))
        share = len(usable) // count
        for i in range(count):
            cores = usable[i * share : (i + 1) * share]
            lanes.append(Lane(number=first + len(lanes), machine=machine, cores=cores, cpus=share, gpus=1))
    return lanes


def cells_by_machine(cells: Sequence[Cell], machines: Sequence[Machine], requirements: Requirements) -> list[Cell]:
    """The cells; one whose cases do not all fit the same machines is split."""
    split: list[Cell] = []
    for cell in cells:
        groups: dict[frozenset[str], list[Case]] = {}
        for case in cell:
            able = frozenset(m.node.id for m in machines if requirements.obstacle(m, case) is None)
            groups.setdefault(able, []).append(case)
        split += [tuple(cases) for cases in groups.values()]
    return split


class Assignment:
    """Which lane measures which cell. A cell stays on its lane for all rounds.

    If the machine is lost, another of the same kind takes over; the records of the two differ by their host.
    A resumed cell goes back to the host of its records, if that is in the cluster.
    """

    def __init__(self, requirements: Requirements, records: Iterable[Record]) -> None:
        self._requirements = requirements
        self._lanes: dict[str, Lane] = {}
        self._alike: dict[str, tuple[Any, ...]] = {}
        self._homes = {record.case.id: record.host for record in records if record.environment}
        self.hosts: frozenset[str] = frozenset()
        """The hosts that are in the cluster now."""

    def takes(self, lane: Lane, cell: Cell) -> bool:
        """Whether the cell is this lane's; an unassigned cell is assigned to it, if the lane can measure it."""
        key = cell[0].id
        if key in self._lanes:
            return self._lanes[key].number == lane.number
        if not self._fits(lane, cell):
            return False
        self._lanes[key] = lane
        self._alike[key] = lane.machine.node.alike
        return True

    def free(self, lane: Lane) -> None:
        """The lane is gone: other machines of its kind may take its cells."""
        self._lanes = {key: owner for key, owner in self._lanes.items() if owner.number != lane.number}

    def _fits(self, lane: Lane, cell: Cell) -> bool:
        homes = {self._homes[case.id] for case in cell if case.id in self._homes} & self.hosts
        if homes and lane.machine.host not in homes:
            return False
        if self._alike.get(cell[0].id, lane.machine.node.alike) != lane.machine.node.alike:
            return False
        return all(
            bool(lane.gpus) == case.device.is_cuda and not self._requirements.obstacle(lane.machine, case)
            for case in cell
        )


@dataclass(kw_only=True)
class _Work:
    """A lane with the turns it is given, and the one in progress. `stale`: it may be able to take more cells."""

    lane: Lane
    sequence: Iterator[int]
    turns: Iterator[Turn] = field(default_factory=lambda: iter(()))
    turn: Turn | None = None
    started: str = ""
    started_s: float = 0.0
    stale: bool = True


class _ClusterRun:
    def __init__(
        self, schedule: Schedule, machines: Machines, recorder: Recorder, assignment: Assignment, artifacts: Path
    ) -> None:
        self._schedule = schedule
        self._cluster = machines.cluster
        self._requirements = machines.requirements
        self._recorder = recorder
        self._assignment = assignment
        self._artifacts = artifacts
        self._works: dict[int, _Work] = {}
        self._numbered = 0
        self._asked = {machine.node.id for machine in machines.machines}
        self._losses: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        for machine in machines.machines:
            self._join(machine)

    def run(self, patience_s: float) -> None:
        """Measure until nothing is left to do."""
        last_busy_s = monotonic()
        while True:
            for work in self._works.values():
                if work.turn is None:
                    self._next(work)
            if any(work.turn for work in self._works.values()):
                for number, answer in self._cluster.wait(_LOOK_S):
                    self._take(self._works[number], answer)
                last_busy_s = monotonic()
            elif (left := next(self._schedule.turns(), None)) is None:
                return
            elif monotonic() - last_busy_s > patience_s:
                raise InterruptedRun(
                    f"no machine is left that can measure {left.case.label}; add one, then use `resume` to continue"
                )
            else:
                sleep(_PAUSE_S)
            self._update_machines()

    def close(self) -> None:
        """Release every device."""
        for work in self._works.values():
            self._cluster.release(work.lane)

    def _next(self, work: _Work) -> None:
        turn = next(work.turns, None)
        if turn is None and work.stale:
            work.stale = False
            work.turns = self._schedule.turns(partial(self._assignment.takes, work.lane), work.sequence, work.lane.key)
            turn = next(work.turns, None)
        if turn is None:
            self._cluster.release(work.lane)
        else:
            self._recorder.begin(turn)
            self._submit(work, turn)

    def _submit(self, work: _Work, turn: Turn) -> None:
        work.turn, work.started, work.started_s = turn, now(), monotonic()
        setting = {**self._requirements.setting(), "cores": list(work.lane.cores)}
        self._cluster.submit(
            work.lane, setting, {"case": turn.case.to_json(), "extent": turn.extent, "round": turn.round}
        )
        self._recorder.phase(turn, f"on {work.lane.machine.host}")

    def _take(self, work: _Work, answer: Answer) -> None:
        turn = work.turn
        assert turn is not None
        if isinstance(answer, Lost):
            self._lose(work, turn, answer)
            return
        work.turn = None
        found = measured_from(answer)
        again = [
            f"measured again, because the first attempt was lost: {reason}"
            for reason in self._losses[turn.case.id, turn.round]
        ]
        warnings = (*found.outcome.warnings, *again, *unpack(answer["files"], self._artifacts))
        self._recorder.finish(turn, replace(found, outcome=replace(found.outcome, warnings=warnings)))

    def _lose(self, work: _Work, turn: Turn, lost: Lost) -> None:
        """Try again: on this lane if its machine is still there, else on the lane that its cell is assigned to."""
        here = work.lane.machine.node.id in {node.id for node in self._cluster.nodes()}
        host = work.lane.machine.host
        losses = self._losses[turn.case.id, turn.round]
        if lost.began or here:
            losses.append(f"{host}: {lost.reason}")
        work.turn = None
        if len(losses) >= TRIES:
            reason = f"lost {len(losses)} times, because the measuring process or its machine failed: {losses[-1]}"
            outcome = Outcome(status="crashed", reason=reason, warnings=tuple(losses[:-1]))
            wall_s = monotonic() - work.started_s
            self._recorder.finish(turn, Measured(outcome=outcome, host=host, started=work.started, wall_s=wall_s))
        elif here:
            self._submit(work, turn)
        if not here:
            self._leave(work)

    def _update_machines(self) -> None:
        """Drop idle machines that left the cluster, and add machines that joined it."""
        nodes = {node.id: node for node in self._cluster.nodes()}
        for work in list(self._works.values()):
            if work.turn is None and work.lane.machine.node.id not in nodes:
                self._leave(work)
        fresh = [node for key, node in nodes.items() if key not in self._asked]
        self._asked |= {node.id for node in fresh}
        for machine in ask(self._cluster, self._requirements, fresh):
            if not machine.unfit and machine.host not in self._assignment.hosts:
                self._join(machine)

    def _join(self, machine: Machine) -> None:
        for lane in lanes_of(machine, self._requirements, self._numbered):
            self._works[lane.number] = _Work(lane=lane, sequence=self._schedule.new_sequence())
            self._numbered += 1
        self._reassign()

    def _leave(self, work: _Work) -> None:
        self._cluster.release(work.lane)
        self._assignment.free(work.lane)
        del self._works[work.lane.number]
        self._reassign()

    def _reassign(self) -> None:
        self._assignment.hosts = frozenset(work.lane.machine.host for work in self._works.values())
        for work in self._works.values():
            work.stale = True
