"""Transducer losses: time, memory and the ratio to the least time possible, fastest first."""

from __future__ import annotations

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts.dots import cut, dots
from speechmeter.report.charts.figure import Figure, Rows, bounds, interval_words, reading, sentence, unit_of
from speechmeter.report.losses import losses
from speechmeter.report.sources import Source
from speechmeter.report.tables import Table

_SHOWN = (
    metrics.LATENCY,
    metrics.FLOOR_RATIO,
    metrics.MEMORY_CUDA_GROWTH,
    metrics.MEMORY_CPU_PEAK,
)


def figures(source: Source) -> list[Figure]:
    """For the loss alone and for the whole step: a figure of each cost, losses that gave none named as well."""
    return [
        _figure(table, metric, rows)
        for table in losses(source.records)
        for metric in _SHOWN
        if bounds(rows := _rows(table, metric))
    ]


def _rows(table: Table, metric: Metric) -> Rows:
    if metric.title not in table.columns:
        return []
    column = table.columns.index(metric.title)
    found = [(row.labels[0], row.cells[column]) for row in table.rows]
    factor = unit_of(metric, [cell.estimate.value for _, cell in found if cell.estimate is not None]).factor
    return [
        {"label": name, **reading(cell.estimate, factor)}
        if cell.estimate is not None
        else {"label": name, "word": cell.word, "text": cell.word}
        for name, cell in found
    ]


def _figure(table: Table, metric: Metric, rows: Rows) -> Figure:
    kept, left_out = cut(rows)
    values = [value for _, value in _estimated(table, metric)]
    return Figure(
        title=f"{table.title}: {metric.title}",
        caption=sentence(
            "fastest first",
            interval_words(kept, "with 95 % intervals over rounds"),
            "a loss without a figure is listed last" if any(row.get("word") for row in kept) else "",
        )
        + left_out,
        spec=dots(kept, unit_of(metric, values)),
        columns=(("label", "loss"), ("text", metric.title)),
        definitions=(metric,),
    )


def _estimated(table: Table, metric: Metric) -> list[tuple[str, float]]:
    column = table.columns.index(metric.title)
    return [(row.labels[0], e.value) for row in table.rows if (e := row.cells[column].estimate) is not None]
