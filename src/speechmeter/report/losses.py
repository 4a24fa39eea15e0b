"""Transducer losses side by side, fastest first, the loss alone and the whole step in tables of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.protocol import ScheduleProtocol
from speechmeter.core.scope import LABEL, Scope
from speechmeter.core.types import Record
from speechmeter.report.labels import batching, varying_axes
from speechmeter.report.tables import NOT_MEASURED, UNAVAILABLE, Cell, Row, Table, cell_of, list_table, measured

_PLUGIN = "transducer-loss"
PARTS = {"loss": "loss alone", "step": "whole step"}
"""What of a training step was timed, in words: titles of rankings begin with them."""
_MEMORY = (metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_CUDA_ALLOCATED, metrics.MEMORY_CPU_PEAK)
_MICRO, _MEBI = 1e6, 2**20

_SHARED = Scope.of(LABEL, metrics.SHARED_TRIAL)
_NAMED = {
    "total": "deviations: the largest of all trials. The gradient is that of the tensors that a loss is given.",
    _SHARED: "deviations: of one step with 343 frames and 80 labels. The gradient is that of encoder, predictor and "
    "joiner weight together, the same for every loss.",
}

Groups = list[list[Record]]


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Losses of one part and cell: those with a latency, fastest first, and the others.

    A loss that disagrees with the oracle has no latency.
    """

    title: str
    ranked: Groups
    others: Groups


def is_loss(record: Record) -> bool:
    """Whether the record is of a transducer loss."""
    return record.case.subject.plugin == _PLUGIN


def rankings(records: Sequence[Record]) -> list[Ranking]:
    """One for each part and cell, in the order of the records."""
    axes = [name for name in varying_axes([record.case for record in records]) if name != "part"]
    several_batches = len({batching(record.case) for record in records}) > 1
    found: dict[str, list[tuple[Estimate | None, list[Record]]]] = {}
    for group in by_case(records).values():
        case = group[0].case
        part = case.axes.get("part")
        if part in PARTS:
            names = [PARTS[part], *(f"{name} {case.axes[name]}" for name in axes if case.axes.get(name) is not None)]
            names += [batching(case)] if several_batches else []
            latency = estimate(group, metrics.LATENCY)
            found.setdefault(" · ".join(filter(None, names)), []).append((latency, group))
    made = []
    for title, those in found.items():
        timed = sorted(((time.value, group) for time, group in those if time is not None), key=lambda one: one[0])
        others = [group for time, group in those if time is None]
        made.append(Ranking(title=title, ranked=[group for _, group in timed], others=others))
    return made


def losses(records: Sequence[Record]) -> list[Table]:
    """A table a part and cell, ranked by time; what disagrees with the oracle or is absent comes last, unranked."""
    return [_table(ranking) for ranking in rankings(records)]


def _table(ranking: Ranking) -> Table:
    groups = [*ranking.ranked, *ranking.others]
    everything = [record for group in groups for record in group]
    costs = [m for m in (metrics.FLOOR_RATIO, *_MEMORY) if any(estimate(group, m) is not None for group in groups)]
    checks = [m for m in (metrics.LOSS_DEVIATION, metrics.GRADIENT_DEVIATION) if measured(everything, m)]
    scope = _compared(everything)
    shown: list[Metric] = [metrics.LATENCY, *costs, *checks]
    # with the schedule of the original study, its figures are also shown as it prints them
    published = any(isinstance(record.case.protocol, ScheduleProtocol) for record in everything)
    rows = [
        Row(
            labels=(group[0].case.subject.name, str(rank) if rank <= len(ranking.ranked) else NOT_MEASURED),
            cells=(
                *(cell_of(group, metric) for metric in (metrics.LATENCY, *costs)),
                *(cell_of(group, metric, scope) for metric in checks),
                *(_as_published(group) if published else ()),
            ),
        )
        for rank, group in enumerate(groups, 1)
    ]
    columns = [*(metric.title for metric in shown), *(("mean step [µs]", "peak [MiB]") if published else ())]
    lines = ["ranked by latency. A loss that disagrees with the float64 reference has no rank."]
    lines += [_NAMED[scope]] if checks else []
    waste = next((e for group in ranking.ranked if (e := estimate(group, metrics.CELL_WASTE)) is not None), None)
    lines += [f"cells that are not padding: {1 - waste.value:.1%} of the padded lattice."] if waste is not None else []
    if not set(shown) & set(_MEMORY):
        cells = [cell_of(group, metric) for group in ranking.ranked for metric in (*_MEMORY, metrics.MEMORY_CPU_TOTAL)]
        lines += dict.fromkeys(f"memory: {cell.reason}" for cell in cells if cell.word == UNAVAILABLE)
    return list_table(ranking.title, ("loss", "rank"), shown, rows, lines, columns=columns)


def _compared(everything: Sequence[Record]) -> str:
    """The scope of the deviations: of a whole step the trial that all losses share, if these records have it."""
    step = any(record.case.axes.get("part") == "step" for record in everything)
    own = any(m.scope == _SHARED for record in everything for m in record.measurements)
    return _SHARED if step and own else "total"


def _as_published(group: Sequence[Record]) -> tuple[Cell, Cell]:
    mean = estimate(group, metrics.LATENCY, statistic="mean-sd")
    peak = next((e for metric in _MEMORY[1:] if (e := estimate(group, metric, statistic="max")) is not None), None)
    return (
        Cell(word=NOT_MEASURED if mean is None else f"{mean.value * _MICRO:,.0f}"),
        Cell(word=NOT_MEASURED if peak is None else f"{peak.value / _MEBI:,.0f}"),
    )
