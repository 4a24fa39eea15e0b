"""Devices of a cluster on which measurements run one at a time, and which of them has which cell.

A measurement on the CPU has all cores that its machine declares: a neighbour would spoil the figure. GPUs of one
machine run side by side, each with cores of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from speechmeter.core.types import Case, Record
from speechmeter.launch.agenda import Cell
from speechmeter.launch.cluster import Lane, Member
from speechmeter.launch.muster import Wishes, memory_of, obstacle_at


def lanes_of(member: Member, wishes: Wishes, first: int) -> list[Lane]:
    """The lanes that a machine's own cases need, numbered from `first`."""
    able = [case for case in wishes.cases if obstacle_at(member, case, wishes) is None]
    on_cpu = [case for case in able if not case.device.is_cuda]
    on_gpu = [case for case in able if case.device.is_cuda]
    lanes = []
    if on_cpu:
        memory = max(memory_of(case, wishes.limits) for case in on_cpu)
        node = member.node
        lanes.append(Lane(number=first, member=member, cores=member.cores, cpus=node.cpus, memory_bytes=memory))
    if on_gpu:
        lanes += _gpu_lanes(member, max(case.axes["cores"] for case in on_gpu), first + len(lanes))
    return lanes


def _gpu_lanes(member: Member, cores_each: int, first: int) -> list[Lane]:
    """As many GPUs as there are cores for; each has an equal part of them, or more."""
    usable = member.cores[: member.node.cpus]
    count = max(1, min(member.node.gpus, len(usable) // cores_each))
    share = len(usable) // count
    return [
        Lane(number=first + i, member=member, cores=usable[i * share : (i + 1) * share], cpus=share, gpus=1)
        for i in range(count)
    ]


class Claims:
    """Which lane measures which cell. A cell stays on its lane, all rounds of it.

    Where the machine is lost, another of the same kind takes over; the records of the two stay apart by their host.
    A resumed cell goes back to the host of its records, if that is in the cluster.
    """

    def __init__(self, wishes: Wishes, records: Iterable[Record]) -> None:
        self._wishes = wishes
        self._lanes: dict[str, Lane] = {}
        self._alike: dict[str, tuple[Any, ...]] = {}
        self._homes = {record.case.id: record.host for record in records if record.environment}
        self.hosts: frozenset[str] = frozenset()
        """The hosts that are in the cluster now."""

    def claim(self, lane: Lane, cell: Cell) -> bool:
        """Whether the cell is this lane's; one that nobody has becomes so, if the lane may have it."""
        key = cell[0].id
        if key in self._lanes:
            return self._lanes[key].number == lane.number
        if not self._may(lane, cell):
            return False
        self._lanes[key] = lane
        self._alike[key] = lane.member.node.alike
        return True

    def free(self, lane: Lane) -> None:
        """The lane is gone: others of its kind may have its cells."""
        self._lanes = {key: owner for key, owner in self._lanes.items() if owner.number != lane.number}

    def _may(self, lane: Lane, cell: Cell) -> bool:
        homes = {self._homes[case.id] for case in cell if case.id in self._homes} & self.hosts
        if homes and lane.member.host not in homes:
            return False
        if self._alike.get(cell[0].id, lane.member.node.alike) != lane.member.node.alike:
            return False
        return all(
            bool(lane.gpus) == case.device.is_cuda and not obstacle_at(lane.member, case, self._wishes) for case in cell
        )


def cells_by_machine(cells: Sequence[Cell], members: Sequence[Member], wishes: Wishes) -> list[Cell]:
    """The cells, those taken apart whose cases do not all fit the same machines."""
    parted: list[Cell] = []
    for cell in cells:
        groups: dict[frozenset[str], list[Case]] = {}
        for case in cell:
            able = frozenset(m.node.id for m in members if obstacle_at(m, case, wishes) is None)
            groups.setdefault(able, []).append(case)
        parted += [tuple(cases) for cases in groups.values()]
    return parted
