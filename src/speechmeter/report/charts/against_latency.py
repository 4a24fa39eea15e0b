"""Size against time: parameters and FLOPs of every model with its latency, models as labelled points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.style import CATEGORIES
from speechmeter.report.labels import cell_names, grid_groups
from speechmeter.report.numbers import number
from speechmeter.report.sources import Source

_HEIGHT = 240
_MOST_POINTS = 500
"""Cases that are looked at: beyond that it is a cloud, and slow."""
_MOST_SIZES = 6
"""With more sizes of input than this their marks are alike, and only lines join them."""
_MOST_MODELS = 16
"""With more models than this none has its name beside its points: the names would not be read."""
_MOST_LETTERS = 18
_WIDE_PX, _HIGH_PX, _LETTER_PX, _LINE_PX = 230, 200, 6.4, 12
"""What a column of a paper leaves for the points, and the size of a letter, for placing names."""
_SIDES = tuple(
    (align, right, down)
    for down in (0, -13, 13)
    for align, right in (("left", 7), ("right", -7), ("center", 0))
    if down or align != "center"
)
"""Where a name may be beside its point, best first: alignment, and pixels right and down."""
_Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels from the top left."""
_MOST_TRIES = 20_000


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
    rows, below = fig.above_zero(_rows(source, size, spread=spread))
    models, inputs = ({row[name] for row in rows} for name in ("model", "input"))
    if len({(row["size"], row["value"]) for row in rows}) < 2 or (size == metrics.PARAMETERS and len(models) < 2):
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
        title=f"{size.title} against latency{only}",
        caption=fig.sentence(
            "each point is a case",
            "the shape of a mark is the size of the input" if 1 < len(inputs) <= _MOST_SIZES else "",
            "a line joins the sizes of one model" if len(inputs) > 1 else "",
            *(bars or [fig.interval_words(rows, "with the 95 % interval of its latency")]),
            "cases on a line of slope 1 have the same FLOP/s" if size == metrics.FLOPS else "",
        )
        + left_out,
        spec=fig.drawn(_chart(rows, size), rows, _HEIGHT),
        columns=(("model", "model"), ("input", "input"), ("size_text", size.title), ("text", "latency")),
        definitions=(size, metrics.LATENCY),
        caveats=(*filter(None, bars), *fig.caveats_of(source.records, sampled=False)) if spread else None,
    )


def _rows(source: Source, size: Metric, *, spread: bool) -> fig.Rows:
    groups = grid_groups(source.records)
    names = fig.shortened({title: title for title in groups})
    cases = [(names[title], group) for title, those in groups.items() for group in those]
    inputs = cell_names([group[0].case for _, group in cases])
    rows: fig.Rows = []
    for (model, group), fed in islice(zip(cases, inputs, strict=True), _MOST_POINTS):
        found, time = estimate(group, size), estimate(group, metrics.LATENCY)
        if found is not None and time is not None and (size == metrics.PARAMETERS or found.value > 0):
            of_size = {"size": fig.six(found.value), "size_text": number(found.value, size.unit)}
            read = fig.spread_reading(group, metrics.LATENCY) if spread else None
            rows.append({"model": model, "input": fed.partition(" · ")[0], **of_size, **(read or fig.reading(time))})
    return rows


def _named(rows: fig.Rows) -> fig.Rows:
    """The rows, one of each model with its name and where the name is to be.

    A name is beside one of its model's points, on no other name and on no point or bar of another model. Where that
    cannot be, no row has one: a legend has them then.
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    if len(models) > _MOST_MODELS:
        return rows
    across = _pixels([row["size"] for row in rows], [row["size"] for row in rows], _WIDE_PX)
    up = _pixels([row["value"] for row in rows], fig.bounds(rows), _HIGH_PX)
    points = [(x - 5, _HIGH_PX - y - 5, x + 5, _HIGH_PX - y + 5) for x, y in zip(across, up, strict=True)]
    barred = [row for row in rows if row["low"] is not None]
    reach = [_pixels([row["low"], row["high"]], fig.bounds(rows), _HIGH_PX) for row in barred]
    middle = _pixels([row["size"] for row in barred], [row["size"] for row in rows], _WIDE_PX)
    bars = [(x - 1, _HIGH_PX - top, x + 1, _HIGH_PX - low) for x, (low, top) in zip(middle, reach, strict=True)]
    choices: list[list[tuple[int, tuple[str, int, int], _Box]]] = []
    for model in models:
        wide = len(_cut(model)) * _LETTER_PX
        others = [box for box, row in zip([*points, *bars], [*rows, *barred], strict=True) if row["model"] != model]
        own = [index for index, row in enumerate(rows) if row["model"] == model]
        at = [(index, across[index], _HIGH_PX - up[index]) for index in reversed(own)]
        boxes = [(index, side, _box(side, x, y, wide)) for index, x, y in at for side in _SIDES]
        free = [one for one in boxes if not _outside(one[2]) and not any(_overlap(one[2], other) for other in others)]
        choices.append(sorted(free, key=lambda one: sum(_overlap(one[2], points[index]) for index in own)))
    made = list(rows)
    for model, (index, (align, right, down), _) in zip(models, _apart(choices), strict=False):
        made[index] = {**rows[index], "name": _cut(model), "align": align, "right": right, "down": down}
    return made


def _cut(model: str) -> str:
    return model if len(model) <= _MOST_LETTERS else f"{model[: _MOST_LETTERS - 1]}…"


def _apart(choices: Sequence[Sequence[tuple[Any, Any, _Box]]]) -> list[tuple[Any, Any, _Box]]:
    """One choice of each, no two of whose boxes overlap; empty where none was found."""
    chosen: list[tuple[Any, Any, _Box]] = []
    tried = [0] * len(choices)
    for _ in range(_MOST_TRIES):
        index = len(chosen)
        if index == len(choices):
            return chosen
        if tried[index] == len(choices[index]):  # back to the one before
            if not chosen:
                return []
            tried[index] = 0
            chosen.pop()
            continue
        one = choices[index][tried[index]]
        tried[index] += 1
        if not any(_overlap(one[2], other[2]) for other in chosen):
            chosen.append(one)
    return []


def _across(size: Metric, sizes: Sequence[float]) -> dict[str, Any]:
    """Scale and axis of sizes: logarithmic where they are far apart, also where a front-end without parameters is."""
    import altair as alt

    unit, from_size = fig.unit_of(size, sizes), fig.with_zero(sizes)
    if from_size is None:
        # a front-end without parameters is not on the axis itself
        room = {} if fig.far_apart(sizes) else {"padding": 10}
        return {"scale": fig.scale_of(sizes, **room), "axis": unit.axis(sizes, grid=False)}
    marks = [0.0, *fig.ticks([value for value in sizes if value > 0])]
    axis = alt.Axis(title=unit.heading, labelExpr=unit.labels, values=marks, grid=False)
    return {"scale": alt.Scale(type="symlog", constant=from_size, nice=False, padding=8), "axis": axis}


def _pixels(values: Sequence[float], all_values: Sequence[float], length: float) -> list[float]:
    """Where values are on an axis of this length that holds all_values, by the rules of `scale_of` and `with_zero`."""
    log, from_value = fig.far_apart(all_values), fig.with_zero(all_values)

    def scaled(value: float) -> float:
        return math.log1p(value / from_value) if from_value else math.log(value) if log else value

    low, high = scaled(min(all_values)) if log else 0.0, scaled(max(all_values))
    return [(scaled(value) - low) / (high - low) * length if high > low else length / 2 for value in values]


def _box(side: tuple[str, int, int], x: float, y: float, wide: float) -> _Box:
    align, right, down = side
    left = x + right - {"left": 0.0, "center": wide / 2, "right": wide}[align]
    return left, y + down - _LINE_PX / 2, left + wide, y + down + _LINE_PX / 2


def _overlap(one: _Box, other: _Box) -> float:
    """Square pixels that two boxes share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def _outside(box: _Box) -> bool:
    """Whether a name would be on the axes or beyond the drawing; above it there is room for one."""
    return box[0] < 0 or box[2] > _WIDE_PX + _LETTER_PX or box[1] < -_LINE_PX or box[3] > _HIGH_PX + _LINE_PX / 2


def _chart(rows: fig.Rows, size: Metric) -> Any:
    import altair as alt

    sizes, times = [row["size"] for row in rows], fig.bounds(rows)
    models, inputs = (list(dict.fromkeys(row[name] for row in rows)) for name in ("model", "input"))
    x = alt.X("size:Q", **_across(size, sizes))
    axis, scale = fig.unit_of(metrics.LATENCY, times).axis(times), fig.scale_of(times)
    y, low = (alt.Y(f"{field}:Q", scale=scale, axis=axis) for field in ("value", "low"))
    fields = {"model": "model", "input": "input", "size_text": size.title, "text": "latency"}
    with_names = any("name" in row for row in rows)
    legend = {"legend": None} if with_names or len(models) == 1 else {"title": "model"}
    scale_of_models = alt.Scale(domain=models)
    few = len(models) <= (_MOST_MODELS if with_names else len(CATEGORIES))
    colour = {"color": alt.Color("model:N", sort=models, scale=scale_of_models, **legend)} if few else {}
    base = alt.Chart().encode(x=x, tooltip=fig.tooltips(fields), **colour)
    marked = 1 < len(inputs) <= _MOST_SIZES
    shapes = alt.Scale(domain=inputs, range=list(fig.SHAPES[: len(inputs)]))
    shape = {"shape": alt.Shape("input:N", title="input", sort=inputs, scale=shapes)} if marked else {}
    lines = [base.mark_line(strokeWidth=1, opacity=0.5).encode(y=y, detail="model:N")] if len(inputs) > 1 else []
    named = alt.Chart().transform_filter("isValid(datum.name)").encode(x=x, y=y, text="name:N")
    beside = {"align": alt.expr("datum.align"), "dx": alt.expr("datum.right"), "dy": alt.expr("datum.down")}
    return alt.layer(
        *lines,
        *fig.intervals(rows, base.mark_rule(strokeWidth=1.5).encode(y=low, y2="high:Q")),
        base.mark_point(filled=True, size=55, opacity=1).encode(y=y, **shape),
        *([named.mark_text(baseline="middle", tooltip=None, **beside)] if with_names else []),
    )
