"""Figures against a size, one line a name: dots with their intervals, joined."""

from __future__ import annotations

from typing import Any

from speechmeter.report.charts.figure import Rows, Unit, arrows, bounds, intervals, scale_of


def curves(rows: Rows, name: str, heading: str, unit: Unit, what: str) -> Any:
    """A chart of rows with `line`, the field `name`, `value`, `low`, `high` and `text`.

    `heading` stands below the axis of sizes, `what` before the text of a dot. Rows without a value are not drawn. Of
    `open` rows the value is a lower bound: an arrow says so.
    """
    import altair as alt

    places, lines = sorted({row[name] for row in rows}), list(dict.fromkeys(row["line"] for row in rows))
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
    base = alt.Chart().encode(
        x=alt.X(f"{name}:Q", scale=scale_of(places), axis=across), color=alt.Color("line:N", **legend), tooltip=told
    )
    some = any(row["value"] is None for row in rows)
    shown = base.transform_filter("isValid(datum.value)") if some else base
    y, low = (alt.Y(f"{field}:Q", scale=scale, axis=axis) for field in ("value", "low"))
    shape = alt.Shape("line:N", **legend)
    return alt.layer(
        shown.mark_line(strokeWidth=1.5, opacity=0.6).encode(y=y),
        *intervals(rows, base.mark_rule(strokeWidth=2).encode(y=low, y2="high:Q")),
        shown.mark_point(filled=True, size=55, opacity=1).encode(y=y, shape=shape),
        *arrows(rows, base.encode(y=y), "up", yOffset=-11),
    )
