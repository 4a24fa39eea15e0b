"""Two ways to draw figures: a list of dots, one line a name, and curves against a size. Both show the intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from speechmeter.core.printable import one_line
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.colours import by_line, by_model
from speechmeter.report.charts.letters import wide_px
from speechmeter.report.charts.placing import WIDE_PX, Point, named_beside, names_layer
from speechmeter.report.charts.style import CATEGORIES

SERIES = "series"
_LINE, _GAP = 11, 6
"""Pixels for each dot of a line that has several, and between lines."""
_STEP = 0.018
"""Of the axis: so far apart are lines that are moved sideways, at most."""
_EDGE_PX, _PARTS = 8, 8
"""Beside the outermost points of a chart, and the steps in which a line is looked at."""
_MOST_HEADING_PX = 100
_LABEL_PX, _MOST_MOVED_PX, _MOST_NAME_PX = 13, 16, 110
"""Between names at the ends of lines, from the end of a line to its name, and for a name itself."""


def dots(
    rows: fig.Rows,
    unit: fig.Unit,
    *,
    series: str = "",
    label: str = "label",
    ordered: tuple[str, ...] = (),
    models: Sequence[str] = (),
) -> dict[str, Any]:
    """The specification. Rows hold `label`, `value`, `low`, `high`, `text`; `word` where there is no figure.

    Of `open` rows the value is a lower bound: an arrow says so. With `models`, rows have the colour of their `model`.
    `series` is the legend's heading where a line has several dots, one for each value of the field `series`. Where a
    line has one dot, its figure is at the right.
    """
    import altair as alt

    names = list(dict.fromkeys(row[label] for row in rows))
    values = fig.bounds(rows)
    # a long heading reaches to the left, below the names
    far = {"titleAnchor": "end"} if wide_px(unit.heading) > _MOST_HEADING_PX else {}
    axis, scale = unit.axis(values, **far), fig.scale_of(values)
    fields = {label: "case", **({SERIES: series} if series else {}), "text": "figure"}
    tooltip = fig.tooltips(fields)
    channels: dict[str, Any] = {"y": _line(label, names), **by_model(models)} if models else {"y": _line(label, names)}
    shape = {}
    if series:
        kinds = list(ordered) or list(dict.fromkeys(row[SERIES] for row in rows))
        channels["yOffset"] = alt.YOffset(f"{SERIES}:N", sort=kinds, scale=alt.Scale(domain=kinds))
        shapes = alt.Scale(domain=kinds, range=[fig.SHAPES[index % len(fig.SHAPES)] for index in range(len(kinds))])
        seen = [kind for kind in kinds if any(row[SERIES] == kind for row in rows)]
        legend = alt.Legend(values=seen) if len(seen) > 1 else None
        shape = {"shape": alt.Shape(f"{SERIES}:N", title=series, scale=shapes, legend=legend)}
    base = alt.Chart().encode(tooltip=tooltip, **channels)
    shown = base.transform_filter("isValid(datum.value)")
    value, low = (alt.X(f"{field}:Q", scale=scale, axis=axis) for field in ("value", "low"))
    layers = [
        *fig.intervals(rows, base.mark_rule(strokeWidth=2, opacity=0.7).encode(x=low, x2="high:Q")),
        shown.mark_point(filled=True, size=60, opacity=1).encode(x=value, **shape),
        *fig.arrows(rows, base.encode(x=value), "right", xOffset=11),
    ]
    if any(row.get("word") for row in rows):
        words = alt.Chart().transform_filter("isValid(datum.word)")
        words = words.encode(y=_line(label, names), text="word:N", tooltip=tooltip)
        layers.append(words.mark_text(align="left", style="quiet-text", dx=4).encode(x=alt.XValue(0)))
    chart = alt.layer(*layers) if series else _with_figures(layers, rows, label, names)
    lines = len({row[SERIES] for row in rows}) if series else 1
    return fig.drawn(chart, rows, max(fig.STEP, _LINE * lines + _GAP) * max(1, len(names)))


def _line(label: str, names: Sequence[str], **axis: Any) -> Any:
    import altair as alt

    return alt.Y(f"{label}:N", title=None, sort=list(names), axis=fig.names_axis(names, **{"grid": True, **axis}))


def _with_figures(layers: list[Any], rows: fig.Rows, label: str, names: Sequence[str]) -> Any:
    """The layers, and the figure of each line at the right."""
    import altair as alt

    shown = {one_line(row[label]): str(row.get("short", row["text"])) for row in rows if not row.get("word")}
    if len(shown) < sum(not row.get("word") for row in rows):  # two lines of one name
        return alt.layer(*layers)
    right = _line(label, names, grid=False, orient="right", labelExpr=lookup(shown))
    first, *others = layers
    without = [layer.encode(y=alt.Y(f"{label}:N", sort=list(names), axis=None)) for layer in others]
    figures = alt.Chart().mark_point(opacity=0, size=0, tooltip=None).encode(y=right)
    return alt.layer(first, *without, figures).resolve_axis(y="independent")


def lookup(texts: Mapping[str, str]) -> str:
    """An expression for labels of an axis: the text of each value, and none for another."""
    return f"{json.dumps(dict(texts), ensure_ascii=False)}[datum.value] || ''"


def cut(rows: Iterable[dict[str, Any]], label: str = "label") -> tuple[fig.Rows, str]:
    """The rows of the first lines, and a sentence where there are more: those are never looked at."""
    kept: fig.Rows = []
    names: set[str] = set()
    for row in rows:
        if row[label] not in names and len(names) == fig.MOST_LINES:
            return kept, f" Only the first {fig.MOST_LINES} are drawn; the summary table of speechmeter show has all."
        names.add(row[label])
        kept.append(row)
    return kept, ""


def curves(
    rows: fig.Rows, name: str, heading: str, unit: fig.Unit, what: str, models: Sequence[str], height: int
) -> dict[str, Any]:
    """The specification of rows with `line`, `model`, the field `name`, `value`, `low`, `high` and `text`.

    `heading` is the title of the axis of sizes, `what` is said before the text of a dot. Rows without a value are not
    drawn. Of `open` rows the value is a lower bound: an arrow says so. Rows by `side_by_side` are drawn where it says.
    A line has its name at its end, or in a legend where the ends are too close.
    """
    import altair as alt

    lines = list(dict.fromkeys(row["line"] for row in rows))
    values = fig.bounds(rows)
    scale = fig.scale_of(values)
    tooltip = [
        alt.Tooltip("line:N", title="line"),
        alt.Tooltip(f"{name}:Q", title=heading),
        alt.Tooltip("text:N", title=what),
    ]
    at_ends = _names_at_ends(rows, name, height)
    rows = _named(rows, name, height) if at_ends is None and len(lines) > 1 else rows
    beside = any("name" in row for row in rows)
    colour, shape = _look(rows, lines, models, legend=at_ends is None and not beside and len(lines) > 1)
    base = alt.Chart().encode(x=_sizes(rows, name, heading), tooltip=tooltip, **colour)
    some = any(row["value"] is None for row in rows)
    shown = base.transform_filter("isValid(datum.value)") if some else base

    def up(field: str, axis: Any = None) -> Any:
        return alt.Y(f"{field}:Q", scale=scale, axis=axis)

    left = unit.axis(values)
    inner = None if at_ends else left
    layers = [
        shown.mark_line(strokeWidth=1.5, opacity=0.6).encode(y=up("value", left), detail="line:N"),
        *fig.intervals(rows, base.mark_rule(strokeWidth=2).encode(y=up("low", inner), y2="high:Q")),
        shown.mark_point(filled=True, size=55, opacity=1).encode(y=up("value", inner), **shape),
        *fig.arrows(rows, base.encode(y=up("value", inner)), "up", yOffset=-11),
        *([names_layer(_sizes(rows, name, heading), up("value", inner))] if beside else []),
    ]
    if not at_ends:
        return fig.drawn(alt.layer(*layers), rows, height)
    chosen = " : ".join(f"datum.value === {json.dumps(at)} ? {json.dumps(one_line(line), ensure_ascii=False)}"
                        for at, line in at_ends.items())  # fmt: skip
    names = alt.Axis(orient="right", values=list(at_ends), labelExpr=f"{chosen} : ''", grid=False, ticks=False,
                     domain=False, title=None, labelPadding=8, labelOverlap=False)  # fmt: skip
    ends = alt.Chart().mark_point(opacity=0, size=0, tooltip=None).encode(y=up("value", names))
    return fig.drawn(alt.layer(*layers, ends).resolve_axis(y="independent"), rows, height)


def _sizes(rows: fig.Rows, name: str, heading: str) -> Any:
    """The axis of sizes, each with its label."""
    import altair as alt

    sizes = sorted({row[name] for row in rows})
    across = alt.Axis(title=heading, values=sizes, labelExpr="'' + datum.value", grid=False)
    if not any("position" in row for row in rows):
        return alt.X(f"{name}:Q", scale=fig.scale_of(sizes), axis=across)
    kind = "log" if fig.far_apart(sizes) else "linear"
    return alt.X("position:Q", scale=alt.Scale(type=kind, nice=False, zero=False, padding=14), axis=across)


def _look(
    rows: fig.Rows, lines: Sequence[str], models: Sequence[str], *, legend: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the channel of colour, that of shape): a line has the colour of its model where the colours suffice."""
    import altair as alt

    key: dict[str, Any] = {"legend": alt.Legend(title=None, values=list(lines)) if legend else None}
    domain = by_line(models, {row["line"]: row["model"] for row in rows})
    shapes = [fig.SHAPES[index % len(fig.SHAPES)] for index in range(len(lines))]
    shape = {"shape": alt.Shape("line:N", title=None, scale=alt.Scale(domain=list(lines), range=shapes), **key)}
    if domain is not None:
        return {"color": alt.Color("line:N", title=None, scale=alt.Scale(domain=domain), **key)}, shape
    if len(models) <= len(CATEGORIES):
        return by_model(models), shape
    return {"color": alt.Color("line:N", title=None, scale=alt.Scale(domain=list(lines)), **key)}, shape


def _names_at_ends(rows: fig.Rows, name: str, height: int) -> dict[float, str] | None:
    """Where on the axis of values the name of each line is, beside its end; None where that cannot be.

    Names are moved apart until they can be read. Where one is then far from its line, a legend is better.
    """
    ends: dict[str, float] = {}
    for row in sorted((row for row in rows if row["value"] is not None), key=lambda row: float(row[name])):
        ends[row["line"]] = row["value"]
    last = max((row[name] for row in rows if row["value"] is not None), default=0)
    finished = {row["line"] for row in rows if row["value"] is not None and row[name] == last}
    lines = {row["line"] for row in rows}
    if len(ends) < 2 or finished != lines or any(wide_px(line) > _MOST_NAME_PX for line in ends):
        return None
    at = {line: fig.pixel(value, fig.bounds(rows), height) for line, value in ends.items()}
    moved = _moved_apart(at, height)
    if max(abs(moved[line] - at[line]) for line in at) > _MOST_MOVED_PX:
        return None
    return {fig.six(fig.at_pixel(position, fig.bounds(rows), height)): line for line, position in moved.items()}


def _named(rows: fig.Rows, name: str, height: int) -> fig.Rows:
    """The rows with the names of the lines beside their last points, where these have room."""
    sizes, values = [row["position" if "position" in row else name] for row in rows], fig.bounds(rows)
    low, high = min(sizes), max(sizes)
    if low == high:
        return rows
    log = fig.far_apart(sorted({row[name] for row in rows}))
    shown = [(row, size) for row, size in zip(rows, sizes, strict=True) if row["value"] is not None]

    def across(size: float) -> float:
        share = math.log(size / low) / math.log(high / low) if log else size / high
        return _EDGE_PX + share * (WIDE_PX - 2 * _EDGE_PX)

    def up(value: float | None, row: dict[str, Any]) -> float:
        return height - fig.pixel(row["value"] if value is None else value, values, height)

    points = [
        Point(name=row["line"], x=across(size), y=up(None, row), left=across(size), right=across(size),
              top=up(row["high"], row), bottom=up(row["low"], row))
        for row, size in shown
    ]  # fmt: skip
    ends = {point.name: index for index, point in enumerate(points)}
    between = [_between(first, second, part / _PARTS)
               for line in ends
               for first, second in pairwise(sorted((p for p in points if p.name == line), key=lambda p: p.x))
               for part in range(1, _PARTS)]  # fmt: skip
    named = named_beside([row for row, _ in shown], points, height, between, set(ends.values()))
    return [*named, *(row for row in rows if row["value"] is None)]


def _between(first: Point, second: Point, share: float) -> Point:
    """A point on the line from one point to the next."""
    x, y = (a + (b - a) * share for a, b in ((first.x, second.x), (first.y, second.y)))
    return Point(name=first.name, x=x, y=y, left=x, right=x, top=y, bottom=y)


def _moved_apart(at: Mapping[str, float], height: float) -> dict[str, float]:
    """Positions along an axis, in their order, with room for a line of text between each two."""
    ordered = sorted(at, key=lambda line: at[line])
    positions = [at[line] for line in ordered]
    for _ in range(50):
        for index, (below, above) in enumerate(pairwise(positions)):
            lack = _LABEL_PX - (above - below)
            if lack > 0:
                positions[index] -= lack / 2
                positions[index + 1] += lack / 2
    lowest = min(positions[0] - 1, 0.0)
    highest = max(positions[-1] + 1 - height, 0.0)
    return {line: position - lowest - highest for line, position in zip(ordered, positions, strict=True)}


def side_by_side(rows: fig.Rows, name: str) -> fig.Rows:
    """The rows with a `position` on the axis of sizes, where no bar covers that of another line.

    Lines of one size are beside each other, within a third of the least gap between sizes.
    """
    sizes, lines = sorted({row[name] for row in rows}), list(dict.fromkeys(row["line"] for row in rows))
    log = fig.far_apart(sizes)
    at = {size: math.log(size) if log else size for size in sizes}
    gaps = [after - before for before, after in pairwise(at.values())]
    step = min(min(gaps) / 3 / len(lines), (at[sizes[-1]] - at[sizes[0]]) * _STEP) if gaps else 0.0

    def moved(row: dict[str, Any]) -> float:
        position = at[row[name]] + (lines.index(row["line"]) - (len(lines) - 1) / 2) * step
        return fig.six(math.exp(position) if log else position)

    return [{**row, "position": moved(row)} for row in rows]
