"""Heat maps over seconds × batch: real-time factors and memory, with the cells that were skipped or failed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from speechmeter.analysis.metric_names import memory_metric
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.charts.figure import (
    Figure,
    Rows,
    caveats_of,
    drawn,
    interval_words,
    names_of,
    sentence,
    six,
    tooltips,
)
from speechmeter.report.charts.letters import wide_px
from speechmeter.report.charts.style import BLACK, RAMP, RAMP_TURN, WHITE
from speechmeter.report.frontier import searched
from speechmeter.report.grids import ordered, row_label
from speechmeter.report.labels import Group, grid_groups, label, position
from speechmeter.report.numbers import figure
from speechmeter.report.sources import Source
from speechmeter.report.tables import NOT_MEASURED, Cell, cell_of, in_one_unit

_LOW_PX, _HIGH_PX = 26, 40
"""A row of figures alone, and with their intervals."""
_NARROWEST_PX, _AXIS_PX, _ROOM_PX = 310, 62, 6
_SIZES = (11.0, 10.0, 9.0, 8.0)
"""Of letters, in pixels: the largest that fits into a cell."""
_SMALL = 1.0
_TOO_NARROW = "×"
_AXES = {"row": "length of audio [s]", "column": "batch size"}


def figures(source: Source, metric: Metric | None = None) -> Iterator[Figure]:
    """For each model on each device a heat map of the real-time factor and of memory; latency where there is no audio.

    With a metric, of that one alone.
    """
    groups = grid_groups(source.records)
    names = names_of(groups)
    for title, group in groups.items():
        records = [record for rounds in group for record in rounds]
        for one in [metric] if metric is not None else _usual(records):
            cells = [cell_of(rounds, one) for rounds in group]
            if any(cell.estimate is not None for cell in cells):
                made = _figure(names[title], group, one, in_one_unit(cells), caveats_of(records))
                # what a search tried is in the chart of what fits
                line = len({position(rounds[0].case)[0] for rounds in group}) == 1
                yield replace(made, trivial=made.trivial or (line and all(map(searched, records))))


def _usual(records: Sequence[Record]) -> tuple[Metric, Metric]:
    heard = any(record.find(metrics.AUDIO_SECONDS.id) for record in records)
    return metrics.RTF if heard else metrics.LATENCY, memory_metric(records)


def _figure(name: str, group: Group, metric: Metric, cells: Sequence[Cell], caveats: tuple[str, ...]) -> Figure:
    found = dict(zip((position(rounds[0].case) for rounds in group), cells, strict=True))
    cells = list(found.values())
    unit, texts = _texts(cells, metric)
    sides = tuple(map(row_label, ordered(row for row, _ in found))), tuple(map(label, ordered(c for _, c in found)))
    rows = _rows({(row_label(row), label(column)): cell for (row, column), cell in found.items()}, texts)
    layout = _layout(rows, sides)
    rows = [{**row, "word": layout.word(row["word"])} if row.get("word") else row for row in rows]
    return Figure(
        title=_title(name, metric, cells, unit),
        caption=sentence(
            interval_words(rows, "± is half the 95 % interval over rounds", "interval"),
            f"{_TOO_NARROW}: no figure" if any(row.get("word") == _TOO_NARROW for row in rows) else "",
            "empty positions were not measured" if len(rows) < len(sides[0]) * len(sides[1]) else "",
        ),
        spec=drawn(_chart(layout, metric), rows, layout.height_px),
        columns=(("row", "seconds"), ("column", "batch"), ("text", "figure")),
        definitions=(metric,),
        caveats=caveats,
        trivial=len(rows) == 1,
    )


def _title(name: str, metric: Metric, cells: Sequence[Cell], unit: str) -> str:
    """What the cells show: from where to where, and for a real-time factor whether it is below 1."""
    known = sorted((cell for cell in cells if cell.estimate is not None), key=lambda cell: cell.estimate.value)  # type: ignore[union-attr]
    ends = list(dict.fromkeys(map(_bare, (known[0], known[-1])) if len(known) > 1 else [known[0].text()]))
    first = ends[0].removesuffix(f" {unit}") if len(ends) > 1 else ends[0]
    verdicts = [cell.verdict for cell in known]
    real = ""
    if metric.id == metrics.RTF.id:
        slow = sum(word != "real-time" for word in verdicts)
        real = ", faster than real time" if not slow else f", not faster than real time in {slow} of {len(known)} cells"
        real = ", not faster than real time" if slow == len(known) else real
    return f"{name}: {metric.title} {' to '.join([first, *ends[1:]])}{real}"


def _bare(cell: Cell) -> str:
    """The figure without its interval."""
    return cell.text().partition(" ±")[0] if cell.estimate is not None else cell.word


def _texts(cells: Sequence[Cell], metric: Metric) -> tuple[str, list[str]]:
    """(the unit that all figures have, the figures without it); an empty unit where they have several."""
    texts = [_bare(cell) for cell in cells]
    units = {_bare(cell).partition(" ")[2] for cell in cells if cell.estimate is not None}
    unit = next(iter(units))
    if metric.unit == "1" or len(units) > 1 or not unit:
        return "", texts
    return unit, [text.removesuffix(f" {unit}") for text in texts]


def _rows(cells: Mapping[tuple[str, str], Cell], texts: Sequence[str]) -> Rows:
    """A row a cell: its texts, and where its figure lies between the least and the most, on a logarithmic ramp."""
    values = [cell.estimate.value for cell in cells.values() if cell.estimate is not None]
    log = min(values) > 0
    low, high = (math.log(min(values)), math.log(max(values))) if log else (min(values), max(values))
    rows: Rows = []
    for ((row, column), cell), text in zip(cells.items(), texts, strict=True):
        if cell.estimate is None:
            word = "" if cell.word == NOT_MEASURED else cell.word
            rows.append({"row": row, "column": column, "text": cell.word, "word": word, "why": cell.reason})
            continue
        _, _, interval = figure(cell.estimate, scale=cell.scale).partition(" ±")
        at = math.log(cell.estimate.value) if log else cell.estimate.value
        shade = round((at - low) / (high - low), 4) if high > low else 0.0
        shown = {"text": cell.text(), "number": text, "interval": f"±{interval}" if interval else ""}
        colours = {"value": six(cell.estimate.value), "shade": shade, "ink": WHITE if shade < RAMP_TURN else BLACK}
        rows.append({"row": row, "column": column, **shown, **colours})
    return rows


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """How a heat map is drawn so that every text fits into its cell in a column of a paper."""

    across: str
    down: str
    columns: tuple[str, ...]
    lines: tuple[str, ...]
    cell_px: float
    size: float | None
    """Of the letters; None where no figure fits."""
    with_intervals: bool
    small: float

    @property
    def height_px(self) -> int:
        """Of the drawing."""
        return (_HIGH_PX if self.with_intervals else _LOW_PX) * len(self.lines)

    def word(self, word: str) -> str:
        """What became of a cell: the word, or a sign where it does not fit."""
        return word if wide_px(word, self.small) <= self.cell_px else _TOO_NARROW


def _layout(rows: Rows, sides: tuple[tuple[str, ...], tuple[str, ...]]) -> _Layout:
    """Batches across, where their figures fit; else lengths across where these are fewer."""
    choices = [_placed(rows, "column", "row", sides[1], sides[0])]
    if len(sides[1]) > len(sides[0]):
        choices.append(_placed(rows, "row", "column", sides[0], sides[1]))
    return max(choices, key=lambda one: (one.size or 0.0) >= _SIZES[1])


def _placed(rows: Rows, across: str, down: str, columns: tuple[str, ...], lines: tuple[str, ...]) -> _Layout:
    cell_px = (_NARROWEST_PX - _AXIS_PX) / len(columns) - _ROOM_PX
    numbers = [row["number"] for row in rows if "number" in row]
    size = next((s for s in _SIZES if all(wide_px(text, s, bold=True) <= cell_px for text in numbers)), None)
    small = max(_SIZES[-1], (size or _SIZES[0]) - _SMALL)
    intervals = [row["interval"] for row in rows if row.get("interval")]
    fit = size is not None and bool(intervals) and all(wide_px(text, small) <= cell_px for text in intervals)
    return _Layout(across=across, down=down, columns=columns, lines=lines, cell_px=cell_px, size=size,
                   with_intervals=fit, small=small)  # fmt: skip


def _chart(layout: _Layout, metric: Metric) -> Any:
    import altair as alt

    number_px = layout.size
    base = alt.Chart().encode(x=_side(layout, layout.across), y=_side(layout, layout.down))
    fields = {"row": "seconds", "column": "batch", "text": metric.title}
    tooltip = tooltips(fields)
    measured, gaps = base.transform_filter("isValid(datum.value)"), base.transform_filter("!isValid(datum.value)")
    ink = alt.Color("ink:N", scale=None)
    colour = alt.Color("shade:Q", scale=alt.Scale(scheme=RAMP, domain=[0, 1]), legend=None)
    number, interval = measured.encode(text="number:N", color=ink), measured.encode(text="interval:N", color=ink)
    texts = []
    if number_px is not None:
        up = -7 if layout.with_intervals else 0
        texts.append(number.mark_text(dy=up, fontSize=number_px, fontWeight="bold", tooltip=None))
    if layout.with_intervals:
        texts.append(interval.mark_text(dy=8, fontSize=layout.small, tooltip=None))
    return alt.layer(
        measured.mark_rect(strokeWidth=0).encode(color=colour, tooltip=tooltip),
        *texts,
        gaps.mark_rect(style="gap").encode(tooltip=[*tooltip, alt.Tooltip("why:N", title="why")]),
        gaps.mark_text(style="gap-text", fontSize=layout.small, tooltip=None).encode(text="word:N"),
    ).resolve_scale(color="independent")  # the ink is a colour already, not a value on a scale


def _side(layout: _Layout, field: str) -> Any:
    """The axis of lengths or of batches."""
    import altair as alt

    across = field == layout.across
    values = layout.columns if across else layout.lines
    title = _AXES[field] if len(values) > 1 or field == "column" else None
    seconds = field == "row" and all(value.endswith(" s") for value in values)
    if field == "row" and not seconds:
        title = None
    labels = {"labelExpr": "replace(datum.label, / s$/, '')"} if seconds and title else {}
    if field == "row" and values == ("all",):
        labels = {"labelExpr": "''"}
    if field == "column" and all(value.isdigit() for value in values):
        labels = {"labelExpr": "format(datum.label, ',')"}
    axis = alt.Axis(title=title, labelAngle=0, orient="top" if across else "left", ticks=False, domain=False, **labels)
    channel = alt.X if across else alt.Y
    return channel(f"{field}:O", sort=list(values), axis=axis, scale=alt.Scale(padding=0.03))
