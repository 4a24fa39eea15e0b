"""Latency against the length of the input and the size of the batch, with intervals.

The page shows all models side by side and then each of them. A plot is one chart of any metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.growth import exponent, line_of
from speechmeter.analysis.leading import lead
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.types import FAILED, Record
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.colours import models_of
from speechmeter.report.charts.findings import headline, in_all, superlative
from speechmeter.report.charts.marks import curves, side_by_side
from speechmeter.report.labels import grid_groups
from speechmeter.report.sources import Source

_HEIGHT = 260
_PLOT_HEIGHT = 210
_LEAST_SIZES = 3
_MOST_LINES = 8
_MOST_PLOTTED = 16
"""More lines than this cannot be followed."""
_AXES = {"seconds": "length of audio [s]", "batch": "batch size"}
_WORDS = {"seconds": "length of audio", "batch": "batch size"}


def figures(source: Source) -> Iterator[fig.Figure]:
    """Models side by side at their smallest batch first; then each model, with a line for each batch or length."""
    groups, models = grid_groups(source.records), models_of(source.records)
    if 1 < len(groups) <= _MOST_LINES:
        yield from _side_by_side({title: _points(group) for title, group in groups.items()}, models)
    names = fig.names_of(groups)
    for title, group in groups.items():
        caveats = fig.caveats_of([record for rounds in group for record in rounds])
        yield from (replace(figure, caveats=caveats) for figure in _of_model(names[title], _points(group), models))


def _points(group: Sequence[Sequence[Record]]) -> fig.Rows:
    rows = []
    for records in group:
        axes = records[0].case.axes
        found = estimate(records, metrics.LATENCY)
        if found is not None and all(isinstance(axes.get(name), int | float) for name in _AXES):
            named = {"model": records[0].case.subject.name, "records": records}
            rows.append({name: axes[name] for name in _AXES} | named | fig.reading(found))
    return rows


def _of_model(title: str, rows: fig.Rows, models: Sequence[str]) -> list[fig.Figure]:
    """Against the first axis that varies; each line is a value of the other one."""
    for name, other in (("seconds", "batch"), ("batch", "seconds")):
        if len({row[name] for row in rows}) > 1:
            order = sorted(rows, key=lambda row: float(row[other]))
            made = [{**row, "line": _line_name(other, row[other])} for row in order]
            what = f"latency against {_WORDS[name]}: {title}"
            return [_figure(headline(_growth(made, name, metrics.LATENCY), what), made, name, models)]
    return []


def _line_name(axis: str, value: float) -> str:
    return f"{value:g} s" if axis == "seconds" else f"{axis} {value:g}"


def _side_by_side(groups: dict[str, fig.Rows], models: Sequence[str]) -> list[fig.Figure]:
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
            what = f"latency against {_WORDS[name]}, {_line_name(other, least)}"
            return [_figure(headline(_fastest(rows, name, metrics.LATENCY), what), rows, name, models)]
    return []


def _fastest(rows: fig.Rows, name: str, metric: Metric) -> str:
    """Which line is best at every size that all lines have, as far as the intervals show; empty where none is."""
    sizes = {line: {row[name] for row in rows if row["line"] == line} for line in {row["line"] for row in rows}}
    leads = []
    for size in sorted(set.intersection(*sizes.values())) if len(sizes) > 1 else ():
        found = {
            row["line"]: estimate(row["records"], metric) for row in rows if row[name] == size and "records" in row
        }
        leads.append(lead({line: one for line, one in found.items() if one is not None}))
    best, limit = in_all(leads)
    where = "every length" if name == "seconds" else "every batch size"
    return f"{best} {superlative(metric)} at {where}{limit}" if best else ""


def _growth(rows: fig.Rows, name: str, metric: Metric) -> str:
    """How the first line grows: the exponent with its interval; empty where that does not show it."""
    first = rows[0]["line"]
    line = line_of(
        [(float(row[name]), row["records"]) for row in rows if row["line"] == first and "records" in row], metric
    )
    if line is None or len(line.points) < _LEAST_SIZES:
        return ""
    found = exponent(line)
    if found.low is not None and found.low <= 0:
        return ""  # the interval does not even show that it grows
    several = f" ({first})" if len({row["line"] for row in rows}) > 1 else ""
    ends = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
    start = f"{metric.title[:1].upper()}{metric.title[1:]}"
    return f"{start} grows with {_WORDS[name]} to the power {found.value:.2f}{ends}{several}"


def _figure(title: str, rows: fig.Rows, name: str, models: Sequence[str]) -> fig.Figure:
    made = _drawn(rows)
    unit = fig.unit_of(metrics.LATENCY, fig.bounds(made))
    return fig.Figure(
        title=title,
        caption=fig.sentence(
            fig.interval_words(made, "geometric mean over rounds with its 95 % interval"),
            _log_words(made, name),
        ),
        spec=curves(made, name, _AXES[name], unit, "latency", models, _HEIGHT),
        columns=(("line", "line"), (name, _AXES[name]), ("text", "latency")),
        definitions=(metrics.LATENCY,),
    )


def _drawn(rows: fig.Rows) -> fig.Rows:
    """The rows without what is not drawn."""
    return [{key: value for key, value in row.items() if key != "records"} for row in rows]


def _log_words(rows: fig.Rows, name: str) -> str:
    """Which axes are logarithmic, for a caption."""
    across, up = fig.far_apart([row[name] for row in rows]), fig.far_apart(fig.bounds(rows))
    return "both axes are logarithmic" if across and up else "one axis is logarithmic" if across or up else ""


def plotted(source: Source, axis: str = "", metric: Metric | None = None) -> list[fig.Figure]:
    """One chart for a paper: all models in it, against seconds, or against batch where seconds do not vary.

    Latency where no metric is given. One model alone has a line for each value of the other axis. Raises InputError
    for more lines than can be followed.
    """
    metric = metric or metrics.LATENCY
    groups = grid_groups(source.records)
    names = fig.names_of(groups)
    rows = [
        {"group": names[title], "model": rounds[0].case.subject.name, "records": rounds,
         **{name: rounds[0].case.axes.get(name) for name in _AXES}, **found}
        for title, group in groups.items()
        for rounds in group
        if (found := fig.spread_reading(rounds, metric) or _failure(rounds)) is not None
    ]  # fmt: skip
    for name in [axis] if axis else _AXES:
        made = _lines(rows, name)
        if len({row[name] for row in made if row["value"] is not None}) > 1:
            return [_plotted(made, name, metric, source)]
    return []


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
        made = [{**row, "line": _line_name(other, row[other])} for row in rows if row["group"] in held]
        return sorted(made, key=lambda row: float(row[other]))
    least = min((value for value in shared if value is not None), default=None)
    return [{**row, "line": row["group"]} for row in rows if shared and row["group"] in held and row[other] == least]


def _plotted(rows: fig.Rows, name: str, metric: Metric, source: Source) -> fig.Figure:
    (other,) = (axis for axis in _AXES if axis != name)
    lines, models, at = (dict.fromkeys(row[key] for row in rows) for key in ("line", "group", other))
    if len(lines) > _MOST_PLOTTED:
        raise InputError(
            f"{len(lines)} lines are too many for one chart", key="kind", fix="choose some of them: RUN@model=…"
        )
    fixed = "".join(f", {_line_name(other, value)}" for value in at if value is not None) if len(at) == 1 else ""
    only = f": {next(iter(models))}" if len(models) == 1 else ""
    finding = _growth(rows, name, metric) if len(models) == 1 else _fastest(rows, name, metric)
    unit = fig.unit_of(metric, fig.bounds(rows))
    bars, failed = fig.bars_words(rows), [f"{row['line']} at {name} {row[name]:g}: {row['text']}" for row in rows
                                      if row["value"] is None]  # fmt: skip
    missing = f"not drawn: {', '.join(failed)}" if failed else ""
    made, below = fig.above_zero([_divided(row, unit.factor) for row in side_by_side(_drawn(rows), name)])
    return fig.Figure(
        title=headline(finding, f"{metric.title} against {_WORDS[name]}{fixed}{only}"),
        caption=fig.sentence(bars, below, missing, _log_words(made, name)),
        spec=curves(made, name, _AXES[name], unit, metric.title, models_of(source.records), _PLOT_HEIGHT),
        columns=(("line", "line"), (name, _AXES[name]), ("text", metric.title)),
        definitions=(metric,),
        caveats=tuple(filter(None, [bars, below, missing, *fig.caveats_of(source.records, sampled=False)])),
    )


def _divided(row: dict[str, Any], factor: float) -> dict[str, Any]:
    """A row in the unit of the axis."""
    return row | {key: None if row[key] is None else fig.six(row[key] / factor) for key in ("value", "low", "high")}
