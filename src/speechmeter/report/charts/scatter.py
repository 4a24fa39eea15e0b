"""Points of two metrics against each other, with both intervals and a name beside each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.core.metrics import Metric
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.colours import MOST, by_line, by_model
from speechmeter.report.charts.placing import WIDE_PX, Point, named_beside, names_layer

ON_FRONT = "on the front"
"""The standing of points that are joined by steps."""
_HEIGHT = 260
_ACROSS = ("cost_value", "cost_low", "cost_high")


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A metric along an axis, and the heading of the axis where it is another than the metric's title."""

    metric: Metric
    title: str = ""


def scatter(
    rows: fig.Rows,
    up: Axis,
    across: Axis,
    models: Sequence[str],
    fields: Mapping[str, str],
    shapes: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The specification. Rows hold `label`, `model`, `value`, `low`, `high` and `text`; `cost_value`, … of `across`.

    `fields` are what a reader sees of a point, with headings. `shapes` are those of points by their `standing`.
    """
    import altair as alt

    rows = _named(rows)
    costs, scores = _along(rows, _ACROSS), fig.bounds(rows)
    x_axis = fig.unit_of(across.metric, costs, across.title).axis(costs)
    y_axis = fig.unit_of(up.metric, scores, up.title).axis([])
    x_scale, y_scale = fig.scale_of(costs), fig.scale_of(scores, linear=True)
    x, x_low = (alt.X(f"{field}:Q", axis=x_axis, scale=x_scale) for field in ("cost_value", "cost_low"))
    y, y_low = (alt.Y(f"{field}:Q", axis=y_axis, scale=y_scale) for field in ("value", "low"))
    base = alt.Chart().encode(color=_colour(rows, models), tooltip=fig.tooltips(fields))
    shape = {} if shapes is None else {"shape": _shape(rows, shapes)}
    line = alt.Chart().transform_filter(f"datum.standing === '{ON_FRONT}'").encode(x=x, y=y)
    steps = line.mark_line(interpolate="step-after", strokeDash=[4, 4], strokeWidth=1.5, style="quiet-line")
    chart = alt.layer(
        *([steps] if sum(row.get("standing") == ON_FRONT for row in rows) > 1 else []),
        *fig.intervals(rows, base.mark_rule().encode(x=x_low, x2="cost_high:Q", y=y), "cost_low"),
        *fig.intervals(rows, base.mark_rule().encode(y=y_low, y2="high:Q", x=x)),
        base.mark_point(filled=True, size=80, opacity=1).encode(x=x, y=y, **shape),
        *([names_layer(x, y)] if any("name" in row for row in rows) else []),
    )
    return fig.drawn(chart, rows, _HEIGHT)


def _colour(rows: fig.Rows, models: Sequence[str]) -> Any:
    """A colour for each point, with a legend where not all have their names beside them."""
    import altair as alt

    names = list(dict.fromkeys(row["label"] for row in rows))
    beside = any("name" in row for row in rows)
    domain = by_line(models, {row["label"]: row["model"] for row in rows})
    if domain is None and beside and len(models) <= MOST:
        return by_model(models)["color"]  # lines of one model have its colour, and their names tell them apart
    domain = domain or names
    legend = None if beside else alt.Legend(title="system", values=names)
    return alt.Color("label:N", scale=alt.Scale(domain=domain), legend=legend)


def _shape(rows: fig.Rows, shapes: Mapping[str, str]) -> Any:
    import altair as alt

    seen = [word for word in shapes if any(row["standing"] == word for row in rows)]
    scale = alt.Scale(domain=seen, range=[shapes[word] for word in seen])
    return alt.Shape("standing:N", title=None, scale=scale, legend=alt.Legend(columns=len(seen)))


def _named(rows: fig.Rows) -> fig.Rows:
    """The rows with their names beside them, as far as these fit; else a legend has them."""
    costs = _along(rows, _ACROSS)
    if min([*costs, *fig.bounds(rows)]) < 0:  # axes that do not begin at 0
        return rows
    points = [
        Point(
            name=row["label"],
            x=fig.pixel(row["cost_value"], costs, WIDE_PX),
            y=_HEIGHT - _up(row["value"], rows),
            left=fig.pixel(row["cost_low"] or row["cost_value"], costs, WIDE_PX),
            right=fig.pixel(row["cost_high"] or row["cost_value"], costs, WIDE_PX),
            top=_HEIGHT - _up(_or(row["high"], row["value"]), rows),
            bottom=_HEIGHT - _up(_or(row["low"], row["value"]), rows),
        )
        for row in rows
    ]
    return named_beside(rows, points, _HEIGHT)


def _up(score: float, rows: fig.Rows) -> float:
    """Where a score is on its axis, which begins at 0."""
    return fig.pixel(score, fig.bounds(rows), _HEIGHT, linear=True)


def _or(bound: float | None, value: float) -> float:
    return value if bound is None else bound


def _along(rows: fig.Rows, names: Sequence[str]) -> list[float]:
    return [row[name] for row in rows for name in names if row[name] is not None]
