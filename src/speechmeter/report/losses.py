"""Transducer losses side by side, fastest first, the loss alone and the step apart."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.protocol import ScheduleProtocol
from speechmeter.core.types import Record
from speechmeter.report.grids import batching, varying_axes
from speechmeter.report.lists import list_table, measured
from speechmeter.report.tables import NOT_MEASURED, UNAVAILABLE, Cell, Row, Table, by_case, cell_of

_PLUGIN = "transducer-loss"
_PARTS = {"loss": "loss alone", "step": "whole step"}
_MEMORY = (metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_CUDA_ALLOCATED, metrics.MEMORY_CPU_PEAK)
_MICRO, _MEBI = 1e6, 2**20

Groups = list[list[Record]]


def is_loss(record: Record) -> bool:
    """Whether the record is of a transducer loss."""
    return record.case.subject.plugin == _PLUGIN


def losses(records: Sequence[Record]) -> list[Table]:
    """A table a part and cell, ranked by time; what disagrees with the oracle or is absent stands last, unranked."""
    cases = list(by_case(records).values())
    found: dict[tuple[str, str], Groups] = {}
    for group in cases:
        case = group[0].case
        if case.axes.get("part") in _PARTS:
            found.setdefault((str(case.axes["part"]), _cell(group, records)), []).append(group)
    return [_ranking(f"{_PARTS[part]}{cell and f' · {cell}'}", groups) for (part, cell), groups in found.items()]


def _cell(group: Sequence[Record], records: Sequence[Record]) -> str:
    """What else tells this cell from the others of the run."""
    case = group[0].case
    axes = [name for name in varying_axes([record.case for record in records]) if name != "part"]
    found = [f"{name} {case.axes[name]}" for name in axes if case.axes.get(name) is not None]
    several = len({batching(record.case) for record in records}) > 1
    return " · ".join([*found, batching(case)] if several else found)


def _ranking(title: str, groups: Groups) -> Table:
    everything = [record for group in groups for record in group]
    shown = [m for m in (metrics.LATENCY, metrics.FLOOR_RATIO, *_MEMORY) if m == metrics.LATENCY or _any(groups, m)]
    shown += [m for m in (metrics.LOSS_DEVIATION, metrics.GRADIENT_DEVIATION) if measured(everything, m)]
    published = _published(everything)
    ranked = sorted((group for group in groups if _time(group) is not None), key=lambda group: _time(group) or 0.0)
    rest = [group for group in groups if _time(group) is None]
    rows = tuple(
        Row(
            labels=(group[0].case.subject.name, str(place + 1) if place < len(ranked) else NOT_MEASURED),
            cells=(*(cell_of(group, metric) for metric in shown), *(_as_published(group) if published else ())),
        )
        for place, group in enumerate([*ranked, *rest])
    )
    columns = (*(metric.title for metric in shown), *(("mean step [µs]", "peak [MiB]") if published else ()))
    notes = [*_notes(ranked), *([] if set(shown) & set(_MEMORY) else _no_memory(ranked))]
    return list_table(title, ("loss", "rank"), shown, rows, notes, columns=columns)


def _any(groups: Groups, metric: Metric) -> bool:
    return any(estimate(group, metric) is not None for group in groups)


def _time(group: Sequence[Record]) -> float | None:
    found = estimate(group, metrics.LATENCY)
    return found.value if found is not None else None


def _published(records: Sequence[Record]) -> bool:
    """Whether the original's schedule was kept; its figures are shown as it prints them."""
    return any(isinstance(record.case.protocol, ScheduleProtocol) for record in records)


def _as_published(group: Sequence[Record]) -> tuple[Cell, Cell]:
    mean = estimate(group, metrics.LATENCY, statistic="mean-sd")
    peak = next((e for metric in _MEMORY[1:] if (e := estimate(group, metric, statistic="max")) is not None), None)
    return (
        Cell(word=NOT_MEASURED if mean is None else f"{mean.value * _MICRO:,.0f}"),
        Cell(word=NOT_MEASURED if peak is None else f"{peak.value / _MEBI:,.0f}"),
    )


def _no_memory(ranked: Groups) -> list[str]:
    """Why there is no column of memory, where it was asked for; each reason once."""
    cells = [cell_of(group, metric) for group in ranked for metric in (*_MEMORY, metrics.MEMORY_CPU_TOTAL)]
    return [f"memory: {why}" for why in dict.fromkeys(cell.reason for cell in cells if cell.word == UNAVAILABLE)]


def _notes(ranked: Groups) -> list[str]:
    """How the rank is made, and how much of the padded lattice is real; conventions of each loss are caveats."""
    lines = ["ranked by latency; a loss that disagrees with the oracle is reported and has no rank."]
    waste = next((e for group in ranked if (e := estimate(group, metrics.CELL_WASTE)) is not None), None)
    lines += [f"valid cells: {1 - waste.value:.1%} of the padded lattice."] if waste is not None else []
    return lines
