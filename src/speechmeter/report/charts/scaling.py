"""Latency against the length of the input and the size of the batch, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.types import Record
from speechmeter.report.charts.curves import curves
from speechmeter.report.charts.figure import Figure, Rows, bounds, drawn, reading, shortened, unit_of
from speechmeter.report.grids import grid_groups
from speechmeter.report.sources import Source

_HEIGHT = 260
_MOST_LINES = 8
_AXES = {"seconds": "seconds of audio", "batch": "batch"}


def figures(source: Source) -> Iterator[Figure]:
    """Models side by side at their smallest batch first; then each model against seconds and against batch."""
    groups = grid_groups(source.records)
    if 1 < len(groups) <= _MOST_LINES:
        yield from _side_by_side({title: _points(group) for title, group in groups.items()})
    for title, group in groups.items():
        yield from _of_model(title, _points(group))


def _points(group: Sequence[Sequence[Record]]) -> Rows:
    rows = []
    for records in group:
        axes = records[0].case.axes
        found = estimate(records, metrics.LATENCY)
        if found is not None and all(isinstance(axes.get(name), int | float) for name in _AXES):
            rows.append({name: axes[name] for name in _AXES} | reading(found))
    return rows


def _of_model(title: str, rows: Rows) -> list[Figure]:
    """Against each axis that varies; lines are told apart by the other one."""
    return [
        _figure(f"{title}: latency against {name}", rows, name, other, f"{other} ")
        for name, other in (("seconds", "batch"), ("batch", "seconds"))
        if len({row[name] for row in rows}) > 1
    ]


def _side_by_side(groups: dict[str, Rows]) -> list[Figure]:
    """All models over seconds at the smallest batch that they share, or over batch where seconds do not vary."""
    told = {title: rows for title, rows in groups.items() if rows}
    if len(told) < 2:
        return []
    names = shortened({title: title for title in told})
    for name, other in (("seconds", "batch"), ("batch", "seconds")):
        shared = set.intersection(*({row[other] for row in rows} for rows in told.values()))
        if not shared:
            continue
        least = min(shared)
        rows = [{**row, "line": names[title]} for title, those in told.items() for row in those if row[other] == least]
        if len({row[name] for row in rows}) > 1:
            return [_figure(f"models side by side: latency against {name}, {other} {least:g}", rows, name, "line", "")]
    return []


def _figure(title: str, rows: Rows, name: str, other: str, prefix: str) -> Figure:
    order = sorted(rows, key=lambda row: row[other]) if prefix else rows
    made = [{**row, "line": f"{prefix}{row[other]:g}" if prefix else row[other]} for row in order]
    unit = unit_of(metrics.LATENCY, bounds(made))
    return Figure(
        title=title,
        caption="Geometric mean over rounds with its 95 % interval; axes are logarithmic where values are far apart.",
        spec=drawn(curves(made, name, _AXES[name], unit, "latency"), made, _HEIGHT),
        columns=(("line", "line"), (name, _AXES[name]), ("text", "latency")),
        definitions=(metrics.LATENCY,),
    )
