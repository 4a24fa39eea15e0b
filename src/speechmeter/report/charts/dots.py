"""A list of figures as dots with their intervals, one line a name: most kinds of cost are drawn so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from speechmeter.report.charts.figure import MOST_LINES, STEP, Rows, Unit, arrows, bounds, drawn, intervals, scale_of

SERIES = "series"
_LINE, _GAP = 11, 6
"""Pixels for each dot of a line that has several, and between lines."""


def dots(
    rows: Rows, unit: Unit, *, series: str = "", label: str = "label", ordered: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The specification. Rows hold `label`, `value`, `low`, `high`, `text`; `word` where there is no figure.

    Of `open` rows the value is a lower bound: an arrow says so.
    `series` is the legend's heading where a line has several dots, told apart by the field of that name.
    """
    import altair as alt

    names = list(dict.fromkeys(row[label] for row in rows))
    line = alt.Y(f"{label}:N", title=None, sort=names, axis=alt.Axis(grid=True, ticks=False, domain=False))
    values = bounds(rows)
    axis, scale = unit.axis(values), scale_of(values)
    told = [alt.Tooltip(f"{label}:N", title="case"), alt.Tooltip("text:N", title="figure")]
    colour: dict[str, Any] = {}
    if series:
        kinds = list(ordered) or list(dict.fromkeys(row[SERIES] for row in rows))
        colour["color"] = alt.Color(f"{SERIES}:N", title=series, sort=kinds, scale=alt.Scale(domain=kinds))
        colour["yOffset"] = alt.YOffset(f"{SERIES}:N", sort=kinds, scale=alt.Scale(domain=kinds))
        told.insert(1, alt.Tooltip(f"{SERIES}:N", title=series))
    base = alt.Chart().encode(y=line, tooltip=told, **colour)
    shown = base.transform_filter("isValid(datum.value)")
    shape = {"shape": alt.Shape(f"{SERIES}:N", title=series, scale=alt.Scale(domain=kinds))} if series else {}
    place, low = (alt.X(f"{field}:Q", scale=scale, axis=axis) for field in ("value", "low"))
    layers = [
        *intervals(rows, base.mark_rule(strokeWidth=2, opacity=0.7).encode(x=low, x2="high:Q")),
        shown.mark_point(filled=True, size=60, opacity=1).encode(x=place, **shape),
        *arrows(rows, base.encode(x=place), "right", xOffset=11),
    ]
    if any(row.get("word") for row in rows):
        words = alt.Chart().transform_filter("isValid(datum.word)").encode(y=line, text="word:N", tooltip=told)
        layers.append(words.mark_text(align="left", style="quiet-text", dx=4).encode(x=alt.XValue(0)))
    lines = len({row[SERIES] for row in rows}) if series else 1
    return drawn(alt.layer(*layers), rows, max(STEP, _LINE * lines + _GAP) * max(1, len(names)))


def cut(rows: Iterable[dict[str, Any]], label: str = "label") -> tuple[Rows, str]:
    """The rows of the first lines, and a sentence where there are more: those are never looked at."""
    kept: Rows = []
    names: set[str] = set()
    for row in rows:
        if row[label] not in names and len(names) == MOST_LINES:
            return kept, f" The first {MOST_LINES} are drawn; the summary has all."
        names.add(row[label])
        kept.append(row)
    return kept, ""
