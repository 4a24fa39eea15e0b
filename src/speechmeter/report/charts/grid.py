"""Heat maps over seconds × batch: real-time factors and memory, with the cells that were skipped or failed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.analysis.metric_names import memory_metric
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.charts.figure import Figure, Rows, caveats_of, drawn, interval_words, sentence, six
from speechmeter.report.charts.style import BLACK, RAMP, RAMP_TURN, WHITE
from speechmeter.report.grids import grid_groups, grid_table
from speechmeter.report.sources import Source
from speechmeter.report.tables import NOT_MEASURED, Cell, Table

_ROW_HEIGHT = 40
_COLUMNS = (("row", "seconds"), ("column", "batch"), ("text", "figure"))


def figures(source: Source) -> Iterator[Figure]:
    """For each model on each device a heat map of each metric; latency where there is no audio."""
    for title, group in grid_groups(source.records).items():
        for metric in _metrics(group):
            table = grid_table(title, group, metric)
            if any(cell.estimate is not None for row in table.rows for cell in row.cells):
                records = [record for rounds in group for record in rounds]
                yield replace(_figure(table, metric), caveats=caveats_of(records))


def _metrics(group: Sequence[Sequence[Record]]) -> list[Metric]:
    """Times first; memory as the device has it."""
    heard = any(record.find(metrics.AUDIO_SECONDS.id) for records in group for record in records)
    memory = memory_metric([record for records in group for record in records])
    return [*((metrics.RTF, metrics.RTFX) if heard else (metrics.LATENCY,)), memory]


def _figure(table: Table, metric: Metric) -> Figure:
    rows = _rows(table)
    return Figure(
        title=table.title,
        caption=sentence(
            interval_words(rows, "each cell with its 95 % interval over rounds", "interval"),
            "dashed cells have no figure" if any("value" not in row for row in rows) else "",
        ),
        spec=drawn(_chart(table, metric), rows, _ROW_HEIGHT * len(table.rows)),
        columns=_COLUMNS,
        definitions=(metric,),
    )


def _rows(table: Table) -> Rows:
    cells = [
        (row.labels[0], column, cell)
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]
    shades = _shades([cell for _, _, cell in cells])
    return [
        {"row": row, "column": column, **_texts(cell), **({} if shade is None else shade)}
        for (row, column, cell), shade in zip(cells, shades, strict=True)
    ]


def _texts(cell: Cell) -> dict[str, Any]:
    if cell.estimate is None:
        word = "" if cell.word == NOT_MEASURED else cell.word
        return {"text": cell.word, "word": word, "why": cell.reason}
    number, _, interval = cell.text().partition(" ±")
    return {"text": cell.text(), "number": number, "interval": f"±{interval}" if interval else ""}


def _shades(cells: Sequence[Cell]) -> list[dict[str, Any] | None]:
    """Where each figure stands between the least and the most, on a logarithmic ramp."""
    values = [cell.estimate.value for cell in cells if cell.estimate is not None]
    log = min(values) > 0
    low, high = (math.log(min(values)), math.log(max(values))) if log else (min(values), max(values))

    def shade(value: float) -> dict[str, Any]:
        place = math.log(value) if log else value
        shade = round((place - low) / (high - low), 4) if high > low else 0.0
        return {"value": six(value), "shade": shade, "ink": WHITE if shade < RAMP_TURN else BLACK}

    return [None if cell.estimate is None else shade(cell.estimate.value) for cell in cells]


def _chart(table: Table, metric: Metric) -> Any:
    import altair as alt

    top = alt.Axis(labelAngle=0, orient="top", ticks=False, domain=False)
    x = alt.X("column:O", sort=list(table.columns), title="batch", axis=top)
    y = alt.Y("row:O", sort=[row.labels[0] for row in table.rows], title=None, axis=alt.Axis(ticks=False, domain=False))
    fields = {"row": "seconds", "column": "batch", "text": metric.title}
    told = [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]
    base = alt.Chart().encode(x=x, y=y)
    measured, gaps = base.transform_filter("isValid(datum.value)"), base.transform_filter("!isValid(datum.value)")
    ink = alt.Color("ink:N", scale=None)
    colour = alt.Color("shade:Q", scale=alt.Scale(scheme=RAMP, domain=[0, 1]), legend=None)
    number, interval = measured.encode(text="number:N", color=ink), measured.encode(text="interval:N", color=ink)
    return alt.layer(
        measured.mark_rect(stroke="white", strokeWidth=1).encode(color=colour, tooltip=told),
        number.mark_text(dy=-7, fontWeight="bold", tooltip=None),
        interval.mark_text(dy=8, fontSize=10, tooltip=None),
        gaps.mark_rect(style="gap", fill="transparent").encode(tooltip=[*told, alt.Tooltip("why:N", title="why")]),
        gaps.mark_text(style="gap-text", tooltip=None).encode(text="word:N"),
    ).resolve_scale(color="independent")  # the ink is a colour as it stands
