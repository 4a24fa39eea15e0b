"""Figures against a size, one line a name: dots with their intervals, joined."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from speechmeter.report.charts.figure import SHAPES, Rows, Unit, arrows, bounds, far_apart, intervals, scale_of, six
from speechmeter.report.charts.style import CATEGORIES

_STEP = 0.018
"""Of the axis: so far apart are lines that are moved sideways, at most."""


def curves(rows: Rows, name: str, heading: str, unit: Unit, what: str) -> Any:
    """A chart of rows with `line`, the field `name`, `value`, `low`, `high` and `text`.

    `heading` is the title of the axis of sizes, `what` is said before the text of a dot. Rows without a value are not
    drawn. Of `open` rows the value is a lower bound: an arrow says so. Rows by `side_by_side` are drawn at their place.
    """
    import altair as alt

    places, lines = sorted({row[name] for row in rows}), list(dict.fromkeys(row["line"] for row in rows))
    drawn_at = "place" if any("place" in row for row in rows) else name
    scale_across = scale_of(places)
    if drawn_at != name:
        kind = "log" if far_apart(places) else "linear"
        scale_across = alt.Scale(type=kind, nice=False, zero=False, padding=14)
    values = bounds(rows)
    axis, scale = unit.axis(values), scale_of(values)
    across = alt.Axis(title=heading, values=places, labelExpr="'' + datum.value", grid=False)
    told = [
        alt.Tooltip("line:N", title="line"),
        alt.Tooltip(f"{name}:Q", title=heading),
        alt.Tooltip("text:N", title=what),
    ]
    legend = {"title": None, "sort": lines, "scale": alt.Scale(domain=lines)}
    legend |= {"legend": None} if len(lines) == 1 else {}
    x = alt.X(f"{drawn_at}:Q", scale=scale_across, axis=across)
    base = alt.Chart().encode(x=x, color=alt.Color("line:N", **legend), tooltip=told)
    some = any(row["value"] is None for row in rows)
    shown = base.transform_filter("isValid(datum.value)") if some else base
    y, low = (alt.Y(f"{field}:Q", scale=scale, axis=axis) for field in ("value", "low"))
    shape = alt.Shape("line:N", **legend)
    if len(lines) > len(CATEGORIES):  # colours begin again: with these shapes no two lines have both in common
        shapes = [SHAPES[place % len(SHAPES)] for place in range(len(lines))]
        shape = alt.Shape("line:N", **{**legend, "scale": alt.Scale(domain=lines, range=shapes)})
    return alt.layer(
        shown.mark_line(strokeWidth=1.5, opacity=0.6).encode(y=y),
        *intervals(rows, base.mark_rule(strokeWidth=2).encode(y=low, y2="high:Q")),
        shown.mark_point(filled=True, size=55, opacity=1).encode(y=y, shape=shape),
        *arrows(rows, base.encode(y=y), "up", yOffset=-11),
    )


def side_by_side(rows: Rows, name: str) -> Rows:
    """The rows with a `place` on the axis of sizes, where no bar covers that of another line.

    Lines of one size are beside each other, within a third of the least gap between sizes.
    """
    places, lines = sorted({row[name] for row in rows}), list(dict.fromkeys(row["line"] for row in rows))
    log = far_apart(places)
    at = {place: math.log(place) if log else place for place in places}
    gaps = [after - before for before, after in pairwise(at.values())]
    step = min(min(gaps) / 3 / len(lines), (at[places[-1]] - at[places[0]]) * _STEP) if gaps else 0.0

    def moved(row: dict[str, Any]) -> float:
        place = at[row[name]] + (lines.index(row["line"]) - (len(lines) - 1) / 2) * step
        return six(math.exp(place) if log else place)

    return [{**row, "place": moved(row)} for row in rows]
