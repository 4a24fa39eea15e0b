"""The same cell on several machines: what is matched, and the ratio with its interval.

Rounds on two machines cannot be paired, so ratios are those of independent rounds (see `compare`). A cell is the same
where model, input, protocol and every axis are, apart from those that name the machine: device, threads and cores.
Where a machine has several of these, they count too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.analysis.compare import Verdict, verdict
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Case, Record

_OF_THE_MACHINE = ("device", "threads", "cores")
_MIN_EFFECT = 0.05


@dataclass(frozen=True, kw_only=True)
class SharedCell:
    """One cell by machine: the rounds of its case on each, in the order of the machines."""

    case: Case
    rounds: Mapping[str, Sequence[Record]]

    def verdicts(self, metric: Metric) -> dict[str, Verdict]:
        """Every machine after the first against the first."""
        (_, base), *others = self.rounds.items()
        return {name: verdict(base, new, metric, _MIN_EFFECT, together=False) for name, new in others}


def shared_cells(machines: Mapping[str, Sequence[Sequence[Record]]]) -> list[SharedCell]:
    """The cells that at least two machines have, in the order in which the first of them has them.

    `machines` holds for each machine the groups of records of its cases.
    """
    if len(machines) < 2:
        return []
    cells: dict[str, list[tuple[str, Sequence[Record]]]] = {}
    for name, groups in machines.items():
        for group in groups:
            cells.setdefault(_key(group[0].case), []).append((name, group))
    return [
        SharedCell(case=next(iter(rounds.values()))[0].case, rounds=rounds)
        for cell in cells.values()
        for rounds in _one_each(cell)
        if len(rounds) > 1
    ]


def _one_each(cell: Sequence[tuple[str, Sequence[Record]]]) -> list[dict[str, Sequence[Record]]]:
    """A cell by machine; apart by device, threads and cores where a machine has it more than once."""
    together = dict(cell)
    if len(together) == len(cell):
        return [together]
    apart: dict[tuple[Any, ...], dict[str, Sequence[Record]]] = {}
    for name, group in cell:
        apart.setdefault(tuple(group[0].case.axes.get(axis) for axis in _OF_THE_MACHINE), {})[name] = group
    return list(apart.values())


def _key(case: Case) -> str:
    axes = {name: value for name, value in case.axes.items() if name not in _OF_THE_MACHINE}
    subject = [case.subject.plugin, case.subject.name, dict(case.subject.options)]
    workload = [case.workload.plugin, case.workload.name, dict(case.workload.options)]
    return json.dumps([subject, workload, axes, dict(case.protocol)], sort_keys=True)
