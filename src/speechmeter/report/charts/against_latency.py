"""Size against time: parameters and FLOPs of every model with its latency, models as labelled points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.leading import lead
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.colours import models_of
from speechmeter.report.charts.findings import headline, in_all
from speechmeter.report.charts.placing import WIDE_PX, Point, named_beside, names_layer
from speechmeter.report.charts.style import CATEGORIES
from speechmeter.report.labels import cell_names, grid_groups
from speechmeter.report.numbers import number
from speechmeter.report.sources import Source

_HEIGHT = 240
_MOST_POINTS = 500
"""Cases that are looked at: beyond that it is a cloud, and slow."""
_MOST_SIZES = 6
"""With more sizes of input than this their marks are alike, and only lines join them."""


def figures(source: Source) -> list[fig.Figure]:
    """Parameters against latency, then FLOPs against latency, where there are two models or two sizes to compare."""
    return _figures(source, spread=False)


def figures_on_paper(source: Source) -> list[fig.Figure]:
    """The same; a case of one round is the mean of its samples, with their standard deviation as its bar."""
    return _figures(source, spread=True)


def _figures(source: Source, *, spread: bool) -> list[fig.Figure]:
    made = (_figure(source, metric, spread=spread) for metric in (metrics.PARAMETERS, metrics.FLOPS))
    return [figure for figure in made if figure is not None]


def _figure(source: Source, size: Metric, *, spread: bool) -> fig.Figure | None:
    found, times = _rows(source, size, spread=spread)
    rows, below = fig.above_zero(found)
    models, inputs = ({row[name] for row in rows} for name in ("model", "input"))
    if len({row["size"] for row in rows}) < 2 or (size == metrics.PARAMETERS and len(models) < 2):
        return None
    covering = size == metrics.PARAMETERS and len(inputs) > 1
    bars = [fig.bars_words(rows, drawn=not covering), "" if covering else below] if spread else []
    if covering:  # all sizes of a model have the same parameters: their bars would cover each other
        rows = [{**row, "low": None, "high": None} for row in rows]
    rows = _named(rows)
    only = f", {next(iter(inputs))}" if len(inputs) == 1 else ""
    count = len(source.cases)
    left_out = f" Of {count:,} cases the first {_MOST_POINTS}." if count > _MOST_POINTS else ""
    return fig.Figure(
        title=headline(_finding(rows, times, size), f"latency against {size.title}{only}"),
        caption=fig.sentence(
            "each point is a case",
            "the shape of a mark shows the input size" if 1 < len(inputs) <= _MOST_SIZES else "",
            "a line joins the sizes of one model" if len(inputs) > 1 else "",
            *(bars or [fig.interval_words(rows, "with the 95 % interval of its latency")]),
            "cases on a line of slope 1 have the same FLOP/s" if size == metrics.FLOPS else "",
        )
        + left_out,
        spec=fig.drawn(_chart(rows, size, models_of(source.records)), rows, _HEIGHT),
        columns=(("model", "model"), ("input", "input"), ("size_text", size.title), ("text", "latency")),
        definitions=(size, metrics.LATENCY),
        caveats=(*filter(None, bars), *fig.caveats_of(source.records, sampled=False)) if spread else None,
    )


def _finding(rows: fig.Rows, times: Mapping[tuple[str, str], Estimate], size: Metric) -> str:
    """Whether the model with the fewest parameters is also the fastest; empty where the intervals do not show that."""
    small = {row["model"] for row in rows if row["size"] == min(other["size"] for other in rows)}
    if size != metrics.PARAMETERS or len(small) != 1:
        return ""
    by_input: dict[str, dict[str, Estimate]] = {}
    for (model, fed), time in times.items():
        by_input.setdefault(fed, {})[model] = time
    fastest, limit = in_all([lead(own) for own in by_input.values() if len(own) > 1])
    (smallest,) = small
    if not fastest:
        return ""
    if smallest == fastest:
        return f"{smallest} has the fewest parameters and the lowest latency{limit}"
    return f"{smallest} has the fewest parameters, {fastest} the lowest latency{limit}"


def _rows(source: Source, size: Metric, *, spread: bool) -> tuple[fig.Rows, dict[tuple[str, str], Estimate]]:
    """(the rows, the latency of each model and input)."""
    groups = grid_groups(source.records)
    names = fig.shortened({title: title for title in groups})
    cases = [(names[title], group) for title, those in groups.items() for group in those]
    inputs = cell_names([group[0].case for _, group in cases])
    rows: fig.Rows = []
    times: dict[tuple[str, str], Estimate] = {}
    for (model, group), fed in islice(zip(cases, inputs, strict=True), _MOST_POINTS):
        found, time = estimate(group, size), estimate(group, metrics.LATENCY)
        if found is not None and time is not None and (size == metrics.PARAMETERS or found.value > 0):
            of_size = {"size": fig.six(found.value), "size_text": number(found.value, size.unit)}
            read = fig.spread_reading(group, metrics.LATENCY) if spread else None
            times[model, fed] = time
            rows.append({"model": model, "input": fed.partition(" · ")[0], **of_size, **(read or fig.reading(time))})
    return rows, times


def _named(rows: fig.Rows) -> fig.Rows:
    """The rows with the names of the models beside their points; without where a legend has to have them."""
    sizes, times = [row["size"] for row in rows], fig.bounds(rows)

    def up(value: float) -> float:
        return _HEIGHT - fig.pixel(value, times, _HEIGHT)

    points = [
        Point(name=row["model"], x=at, y=up(row["value"]), left=at, right=at,
              top=up(row["high"] or row["value"]), bottom=up(row["low"] or row["value"]))
        for row, at in zip(rows, _pixels(sizes), strict=True)
    ]  # fmt: skip
    return named_beside(rows, points, _HEIGHT)


def _across(size: Metric, sizes: Sequence[float]) -> dict[str, Any]:
    """Scale and axis of sizes: logarithmic where they are far apart, also where a front-end without parameters is."""
    import altair as alt

    unit, from_size = fig.unit_of(size, sizes), fig.with_zero(sizes)
    if from_size is None:
        # a front-end without parameters is not on the axis itself
        room: dict[str, Any] = {} if fig.far_apart(sizes) else {"padding": 10}
        return {"scale": fig.scale_of(sizes, **room), "axis": unit.axis(sizes, grid=False)}
    marks = [0.0, *fig.ticks([value for value in sizes if value > 0])]
    axis = alt.Axis(title=unit.heading, labelExpr=unit.labels, values=marks, grid=False)
    return {"scale": alt.Scale(type="symlog", constant=from_size, nice=False, padding=8), "axis": axis}


def _pixels(sizes: Sequence[float]) -> list[float]:
    """Where sizes are across, by the rules of `_across`."""
    from_size = fig.with_zero(sizes)
    if from_size is None:
        return [fig.pixel(size, sizes, WIDE_PX) for size in sizes]
    most = math.log1p(max(sizes) / from_size)
    return [math.log1p(size / from_size) / most * WIDE_PX for size in sizes]


def _chart(rows: fig.Rows, size: Metric, every: Sequence[str]) -> Any:
    import altair as alt

    sizes, times = [row["size"] for row in rows], fig.bounds(rows)
    models, inputs = (list(dict.fromkeys(row[name] for row in rows)) for name in ("model", "input"))
    x = alt.X("size:Q", **_across(size, sizes))
    axis, scale = fig.unit_of(metrics.LATENCY, times).axis(times), fig.scale_of(times)
    y, low = (alt.Y(f"{field}:Q", scale=scale, axis=axis) for field in ("value", "low"))
    fields = {"model": "model", "input": "input", "size_text": size.title, "text": "latency"}
    with_names = any("name" in row for row in rows)
    legend = None if with_names or len(models) == 1 else alt.Legend(title="model", values=models)
    domain = list(every) if set(models) <= set(every) and len(every) <= len(CATEGORIES) else models
    few = with_names or len(models) <= len(CATEGORIES)
    colour = {"color": alt.Color("model:N", scale=alt.Scale(domain=domain), legend=legend)} if few else {}
    base = alt.Chart().encode(x=x, tooltip=fig.tooltips(fields), **colour)
    marked = 1 < len(inputs) <= _MOST_SIZES
    shapes = alt.Scale(domain=inputs, range=list(fig.SHAPES[: len(inputs)]))
    shape = {"shape": alt.Shape("input:N", title="input", sort=inputs, scale=shapes)} if marked else {}
    lines = [base.mark_line(strokeWidth=1, opacity=0.5).encode(y=y, detail="model:N")] if len(inputs) > 1 else []
    return alt.layer(
        *lines,
        *fig.intervals(rows, base.mark_rule(strokeWidth=1.5).encode(y=low, y2="high:Q")),
        base.mark_point(filled=True, size=55, opacity=1).encode(y=y, **shape),
        *([names_layer(x, y)] if with_names else []),
    )
