"""Latency against the length of the input and the size of the batch, with intervals.

The page shows all models side by side and then each of them. A plot is one chart of any metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.metric_names import find_metric, metric_names
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.plugins import nearest
from speechmeter.core.types import FAILED, Record
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.marks import curves, side_by_side
from speechmeter.report.labels import grid_groups
from speechmeter.report.sources import Source

_HEIGHT = 260
_PLOT_HEIGHT = 210
_MOST_LINES = 8
_MOST_PLOTTED = 16
"""More lines than this cannot be followed."""
_AXES = {"seconds": "seconds of audio", "batch": "batch"}


def figures(source: Source) -> Iterator[fig.Figure]:
    """Models side by side at their smallest batch first; then each model against seconds and against batch."""
    groups = grid_groups(source.records)
    if 1 < len(groups) <= _MOST_LINES:
        yield from _side_by_side({title: _points(group) for title, group in groups.items()})
    for title, group in groups.items():
        caveats = fig.caveats_of([record for rounds in group for record in rounds])
        yield from (replace(figure, caveats=caveats) for figure in _of_model(title, _points(group)))


def _points(group: Sequence[Sequence[Record]]) -> fig.Rows:
    rows = []
    for records in group:
        axes = records[0].case.axes
        found = estimate(records, metrics.LATENCY)
        if found is not None and all(isinstance(axes.get(name), int | float) for name in _AXES):
            rows.append({name: axes[name] for name in _AXES} | fig.reading(found))
    return rows


def _of_model(title: str, rows: fig.Rows) -> list[fig.Figure]:
    """Against each axis that varies; each line is a value of the other one."""
    return [
        _figure(f"{title}: latency against {name}", rows, name, other, f"{other} ")
        for name, other in (("seconds", "batch"), ("batch", "seconds"))
        if len({row[name] for row in rows}) > 1
    ]


def _side_by_side(groups: dict[str, fig.Rows]) -> list[fig.Figure]:
    """All models over seconds at the smallest batch that they share, or over batch where seconds do not vary."""
    known = {title: rows for title, rows in groups.items() if rows}
    if len(known) < 2:
        return []
    names = fig.shortened({title: title for title in known})
    for name, other in (("seconds", "batch"), ("batch", "seconds")):
        shared = set.intersection(*({row[other] for row in rows} for rows in known.values()))
        if not shared:
            continue
        least = min(shared)
        rows = [{**row, "line": names[title]} for title, those in known.items() for row in those if row[other] == least]
        if len({row[name] for row in rows}) > 1:
            return [_figure(f"models side by side: latency against {name}, {other} {least:g}", rows, name, "line", "")]
    return []


def _figure(title: str, rows: fig.Rows, name: str, other: str, prefix: str) -> fig.Figure:
    order = sorted(rows, key=lambda row: row[other]) if prefix else rows
    made = [{**row, "line": f"{prefix}{row[other]:g}" if prefix else row[other]} for row in order]
    unit = fig.unit_of(metrics.LATENCY, fig.bounds(made))
    return fig.Figure(
        title=title,
        caption=fig.sentence(
            fig.interval_words(made, "geometric mean over rounds with its 95 % interval"),
            "axes are logarithmic where values are far apart",
        ),
        spec=fig.drawn(curves(made, name, _AXES[name], unit, "latency"), made, _HEIGHT),
        columns=(("line", "line"), (name, _AXES[name]), ("text", "latency")),
        definitions=(metrics.LATENCY,),
    )


def plotted(sources: Sequence[Source], words: Sequence[str]) -> list[fig.Figure]:
    """One chart for a paper: all models in it, against seconds, or against batch where seconds do not vary.

    `words` may name the axis (`seconds`, `batch`) and a metric; latency otherwise. One model alone has a line for each
    value of the other axis. Raises InputError for another word, and for more lines than can be followed.
    """
    records = [record for source in sources for record in source.records]
    axis, metric = _asked(words, records)
    groups: dict[str, list[list[Record]]] = {}
    for source in sources:
        for title, group in grid_groups(source.records).items():
            groups[f"{title} · {source.name}" if len(sources) > 1 else title] = group
    names = fig.shortened({title: title for title in groups})
    rows = [
        {"group": names[title], **{name: rounds[0].case.axes.get(name) for name in _AXES}, **found}
        for title, group in groups.items()
        for rounds in group
        if (found := fig.spread_reading(rounds, metric) or _failure(rounds)) is not None
    ]
    for name in [axis] if axis else _AXES:
        made = _lines(rows, name)
        if len({row[name] for row in made if row["value"] is not None}) > 1:
            return [_plotted(made, name, metric, records)]
    return []


def _asked(words: Sequence[str], records: Sequence[Record]) -> tuple[str, Metric]:
    """(the axis, the metric) that these words name; an empty axis where none does."""
    axes = [word for word in words if word in _AXES]
    others = [word for word in words if word not in _AXES]
    if len(axes) > 1 or len(others) > 1:
        raise InputError(
            f"scaling takes one axis and one metric, not {':'.join(words)}", key="kind", fix="scaling:batch:memory"
        )
    metric = find_metric(others[0], records) if others else metrics.LATENCY
    if metric is None:
        choices = [*_AXES, *metric_names(records)]
        raise InputError(f"there is no kind scaling:{others[0]}", key="kind", fix=nearest(others[0], choices))
    return axes[0] if axes else "", metric


def _failure(rounds: Sequence[Record]) -> dict[str, Any] | None:
    """The row of a case that failed; None for one that was left out, or that has no such figure."""
    status = rounds[-1].status
    return {"value": None, "low": None, "high": None, "text": status} if status in FAILED else None


def _lines(rows: fig.Rows, name: str) -> fig.Rows:
    """The rows of one chart with their lines.

    Several models are compared at the least value of the other axis that all of them have. One model has a line for
    each of its values.
    """
    (other,) = (axis for axis in _AXES if axis != name)
    rows = [row for row in rows if isinstance(row[name], int | float)]
    held: dict[str, set[Any]] = {}
    for row in rows:
        if row["value"] is not None:
            held.setdefault(row["group"], set()).add(row[other])
    shared = set.intersection(*held.values()) if held else set()
    if len(held) == 1 and len(shared) > 1:
        made = [{**row, "line": f"{other} {row[other]:g}"} for row in rows if row["group"] in held]
        return sorted(made, key=lambda row: float(row[other]))
    least = min((value for value in shared if value is not None), default=None)
    return [{**row, "line": row["group"]} for row in rows if shared and row["group"] in held and row[other] == least]


def _plotted(rows: fig.Rows, name: str, metric: Metric, records: Sequence[Record]) -> fig.Figure:
    (other,) = (axis for axis in _AXES if axis != name)
    lines, models, at = (dict.fromkeys(row[key] for row in rows) for key in ("line", "group", other))
    if len(lines) > _MOST_PLOTTED:
        raise InputError(
            f"{len(lines)} lines are too many for one chart", key="kind", fix="choose some of them: RUN@model=…"
        )
    fixed = "".join(f", {other} {value:g}" for value in at if value is not None) if len(at) == 1 else ""
    unit = fig.unit_of(metric, fig.bounds(rows))
    bars, failed = fig.bars_words(rows), [f"{row['line']} at {name} {row[name]:g}: {row['text']}" for row in rows
                                      if row["value"] is None]  # fmt: skip
    missing = f"not drawn: {', '.join(failed)}" if failed else ""
    made, below = fig.above_zero([_divided(row, unit.factor) for row in side_by_side(rows, name)])
    return fig.Figure(
        title=f"{metric.title} against {_AXES[name]}{fixed}" + (f": {next(iter(models))}" if len(models) == 1 else ""),
        caption=fig.sentence(bars, below, missing, "axes are logarithmic where values are far apart"),
        spec=fig.drawn(curves(made, name, _AXES[name], unit, metric.title), made, _PLOT_HEIGHT),
        columns=(("line", "line"), (name, _AXES[name]), ("text", metric.title)),
        definitions=(metric,),
        caveats=tuple(filter(None, [bars, below, missing, *fig.caveats_of(records, sampled=False)])),
    )


def _divided(row: dict[str, Any], factor: float) -> dict[str, Any]:
    """A row in the unit of the axis."""
    return row | {key: None if row[key] is None else fig.six(row[key] / factor) for key in ("value", "low", "high")}
