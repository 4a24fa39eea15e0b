"""Heat maps over seconds × batch: real-time factors and memory, with the cells that were skipped or failed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from speechmeter.analysis.metric_names import memory_metric
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts.figure import Figure, Rows, caveats_of, drawn, interval_words, sentence, six, tooltips
from speechmeter.report.charts.style import BLACK, RAMP, RAMP_TURN, WHITE
from speechmeter.report.grids import ordered, row_label
from speechmeter.report.labels import Group, grid_groups, label, position
from speechmeter.report.sources import Source
from speechmeter.report.tables import NOT_MEASURED, Cell, cell_of, in_one_unit

_ROW_HEIGHT = 40


def figures(source: Source) -> Iterator[Figure]:
    """For each model on each device a heat map of each metric; latency where there is no audio."""
    for title, group in grid_groups(source.records).items():
        records = [record for rounds in group for record in rounds]
        heard = any(record.find(metrics.AUDIO_SECONDS.id) for record in records)
        times = (metrics.RTF, metrics.RTFX) if heard else (metrics.LATENCY,)
        for metric in (*times, memory_metric(records)):
            cells = [cell_of(rounds, metric) for rounds in group]
            if any(cell.estimate is not None for cell in cells):
                yield _figure(f"{title}: {metric.title}", group, metric, in_one_unit(cells), caveats_of(records))


def _figure(title: str, group: Group, metric: Metric, cells: Sequence[Cell], caveats: tuple[str, ...]) -> Figure:
    found = dict(zip((position(rounds[0].case) for rounds in group), cells, strict=True))
    sides = ordered(row for row, _ in found), ordered(column for _, column in found)
    every = {
        (row_label(row), label(column)): found.get((row, column), Cell(word=NOT_MEASURED))
        for row in sides[0]
        for column in sides[1]
    }
    rows = _rows(every)
    names = tuple(dict.fromkeys(row for row, _ in every)), tuple(dict.fromkeys(column for _, column in every))
    return Figure(
        title=title,
        caption=sentence(
            interval_words(rows, "each cell with its 95 % interval over rounds", "interval"),
            "dashed cells have no figure" if any("value" not in row for row in rows) else "",
        ),
        spec=drawn(_chart(*names, metric), rows, _ROW_HEIGHT * len(names[0])),
        columns=(("row", "seconds"), ("column", "batch"), ("text", "figure")),
        definitions=(metric,),
        caveats=caveats,
        trivial=len(rows) == 1,
    )


def _rows(cells: dict[tuple[str, str], Cell]) -> Rows:
    """A row a cell: its texts, and where its figure lies between the least and the most, on a logarithmic ramp."""
    values = [cell.estimate.value for cell in cells.values() if cell.estimate is not None]
    log = min(values) > 0
    low, high = (math.log(min(values)), math.log(max(values))) if log else (min(values), max(values))
    rows: Rows = []
    for (row, column), cell in cells.items():
        if cell.estimate is None:
            word = "" if cell.word == NOT_MEASURED else cell.word
            rows.append({"row": row, "column": column, "text": cell.word, "word": word, "why": cell.reason})
            continue
        number, _, interval = cell.text().partition(" ±")
        at = math.log(cell.estimate.value) if log else cell.estimate.value
        shade = round((at - low) / (high - low), 4) if high > low else 0.0
        texts = {"text": cell.text(), "number": number, "interval": f"±{interval}" if interval else ""}
        colours = {"value": six(cell.estimate.value), "shade": shade, "ink": WHITE if shade < RAMP_TURN else BLACK}
        rows.append({"row": row, "column": column, **texts, **colours})
    return rows


def _chart(rows: Sequence[str], columns: Sequence[str], metric: Metric) -> Any:
    import altair as alt

    top = alt.Axis(labelAngle=0, orient="top", ticks=False, domain=False)
    x = alt.X("column:O", sort=list(columns), title="batch", axis=top)
    y = alt.Y("row:O", sort=list(rows), title=None, axis=alt.Axis(ticks=False, domain=False))
    fields = {"row": "seconds", "column": "batch", "text": metric.title}
    tooltip = tooltips(fields)
    base = alt.Chart().encode(x=x, y=y)
    measured, gaps = base.transform_filter("isValid(datum.value)"), base.transform_filter("!isValid(datum.value)")
    ink = alt.Color("ink:N", scale=None)
    colour = alt.Color("shade:Q", scale=alt.Scale(scheme=RAMP, domain=[0, 1]), legend=None)
    number, interval = measured.encode(text="number:N", color=ink), measured.encode(text="interval:N", color=ink)
    return alt.layer(
        measured.mark_rect(stroke="white", strokeWidth=1).encode(color=colour, tooltip=tooltip),
        number.mark_text(dy=-7, fontWeight="bold", tooltip=None),
        interval.mark_text(dy=8, fontSize=10, tooltip=None),
        gaps.mark_rect(style="gap", fill="transparent").encode(tooltip=[*tooltip, alt.Tooltip("why:N", title="why")]),
        gaps.mark_text(style="gap-text", tooltip=None).encode(text="word:N"),
    ).resolve_scale(color="independent")  # the ink is a colour already, not a value on a scale
