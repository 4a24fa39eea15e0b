"""Two ways to draw figures: a list of dots, one line a name, and curves against a size. Both show the intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.style import CATEGORIES

SERIES = "series"
_LINE, _GAP = 11, 6
"""Pixels for each dot of a line that has several, and between lines."""
_STEP = 0.018
"""Of the axis: so far apart are lines that are moved sideways, at most."""


def dots(
    rows: fig.Rows, unit: fig.Unit, *, series: str = "", label: str = "label", ordered: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The specification. Rows hold `label`, `value`, `low`, `high`, `text`; `word` where there is no figure.

    Of `open` rows the value is a lower bound: an arrow says so.
    `series` is the legend's heading where a line has several dots, one for each value of the field `series`.
    """
    import altair as alt

    names = list(dict.fromkeys(row[label] for row in rows))
    line = alt.Y(f"{label}:N", title=None, sort=names, axis=alt.Axis(grid=True, ticks=False, domain=False))
    values = fig.bounds(rows)
    axis, scale = unit.axis(values), fig.scale_of(values)
    fields = {label: "case", **({SERIES: series} if series else {}), "text": "figure"}
    tooltip = fig.tooltips(fields)
    colour: dict[str, Any] = {}
    if series:
        kinds = list(ordered) or list(dict.fromkeys(row[SERIES] for row in rows))
        colour["color"] = alt.Color(f"{SERIES}:N", title=series, sort=kinds, scale=alt.Scale(domain=kinds))
        colour["yOffset"] = alt.YOffset(f"{SERIES}:N", sort=kinds, scale=alt.Scale(domain=kinds))
    base = alt.Chart().encode(y=line, tooltip=tooltip, **colour)
    shown = base.transform_filter("isValid(datum.value)")
    shape = {"shape": alt.Shape(f"{SERIES}:N", title=series, scale=alt.Scale(domain=kinds))} if series else {}
    value, low = (alt.X(f"{field}:Q", scale=scale, axis=axis) for field in ("value", "low"))
    layers = [
        *fig.intervals(rows, base.mark_rule(strokeWidth=2, opacity=0.7).encode(x=low, x2="high:Q")),
        shown.mark_point(filled=True, size=60, opacity=1).encode(x=value, **shape),
        *fig.arrows(rows, base.encode(x=value), "right", xOffset=11),
    ]
    if any(row.get("word") for row in rows):
        words = alt.Chart().transform_filter("isValid(datum.word)").encode(y=line, text="word:N", tooltip=tooltip)
        layers.append(words.mark_text(align="left", style="quiet-text", dx=4).encode(x=alt.XValue(0)))
    lines = len({row[SERIES] for row in rows}) if series else 1
    return fig.drawn(alt.layer(*layers), rows, max(fig.STEP, _LINE * lines + _GAP) * max(1, len(names)))


def cut(rows: Iterable[dict[str, Any]], label: str = "label") -> tuple[fig.Rows, str]:
    """The rows of the first lines, and a sentence where there are more: those are never looked at."""
    kept: fig.Rows = []
    names: set[str] = set()
    for row in rows:
        if row[label] not in names and len(names) == fig.MOST_LINES:
            return kept, f" The first {fig.MOST_LINES} are drawn; the summary has all."
        names.add(row[label])
        kept.append(row)
    return kept, ""


def curves(rows: fig.Rows, name: str, heading: str, unit: fig.Unit, what: str) -> Any:
    """A chart of rows with `line`, the field `name`, `value`, `low`, `high` and `text`.

    `heading` is the title of the axis of sizes, `what` is said before the text of a dot. Rows without a value are not
    drawn. Of `open` rows the value is a lower bound: an arrow says so. Rows by `side_by_side` are drawn where it says.
    """
    import altair as alt

    places, lines = sorted({row[name] for row in rows}), list(dict.fromkeys(row["line"] for row in rows))
    drawn_at = "place" if any("place" in row for row in rows) else name
    scale_across = fig.scale_of(places)
    if drawn_at != name:
        kind = "log" if fig.far_apart(places) else "linear"
        scale_across = alt.Scale(type=kind, nice=False, zero=False, padding=14)
    values = fig.bounds(rows)
    axis, scale = unit.axis(values), fig.scale_of(values)
    across = alt.Axis(title=heading, values=places, labelExpr="'' + datum.value", grid=False)
    tooltip = [
        alt.Tooltip("line:N", title="line"),
        alt.Tooltip(f"{name}:Q", title=heading),
        alt.Tooltip("text:N", title=what),
    ]
    legend = {"title": None, "sort": lines, "scale": alt.Scale(domain=lines)}
    legend |= {"legend": None} if len(lines) == 1 else {}
    x = alt.X(f"{drawn_at}:Q", scale=scale_across, axis=across)
    base = alt.Chart().encode(x=x, color=alt.Color("line:N", **legend), tooltip=tooltip)
    some = any(row["value"] is None for row in rows)
    shown = base.transform_filter("isValid(datum.value)") if some else base
    y, low = (alt.Y(f"{field}:Q", scale=scale, axis=axis) for field in ("value", "low"))
    shape = alt.Shape("line:N", **legend)
    if len(lines) > len(CATEGORIES):  # colours begin again: with these shapes no two lines have both in common
        shapes = [fig.SHAPES[place % len(fig.SHAPES)] for place in range(len(lines))]
        shape = alt.Shape("line:N", **{**legend, "scale": alt.Scale(domain=lines, range=shapes)})
    return alt.layer(
        shown.mark_line(strokeWidth=1.5, opacity=0.6).encode(y=y),
        *fig.intervals(rows, base.mark_rule(strokeWidth=2).encode(y=low, y2="high:Q")),
        shown.mark_point(filled=True, size=55, opacity=1).encode(y=y, shape=shape),
        *fig.arrows(rows, base.encode(y=y), "up", yOffset=-11),
    )


def side_by_side(rows: fig.Rows, name: str) -> fig.Rows:
    """The rows with a `place` on the axis of sizes, where no bar covers that of another line.

    Lines of one size are beside each other, within a third of the least gap between sizes.
    """
    places, lines = sorted({row[name] for row in rows}), list(dict.fromkeys(row["line"] for row in rows))
    log = fig.far_apart(places)
    at = {place: math.log(place) if log else place for place in places}
    gaps = [after - before for before, after in pairwise(at.values())]
    step = min(min(gaps) / 3 / len(lines), (at[places[-1]] - at[places[0]]) * _STEP) if gaps else 0.0

    def moved(row: dict[str, Any]) -> float:
        place = at[row[name]] + (lines.index(row["line"]) - (len(lines) - 1) / 2) * step
        return fig.six(math.exp(place) if log else place)

    return [{**row, "place": moved(row)} for row in rows]
