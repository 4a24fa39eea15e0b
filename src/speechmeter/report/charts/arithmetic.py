"""Size and arithmetic: parameters, FLOPs, and FLOPs against latency."""

from __future__ import annotations

from itertools import islice
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts.dots import cut, dots
from speechmeter.report.charts.figure import (
    Figure,
    Rows,
    bounds,
    drawn,
    intervals,
    reading,
    scale_of,
    shortened,
    six,
    unit_of,
)
from speechmeter.report.sources import Source

_HEIGHT = 280
_MOST_COLOURS = 8
_MOST_POINTS = 500
"""Cases that are looked at for the scatter: beyond that it is a cloud, and slow."""


def figures(source: Source) -> list[Figure]:
    """Parameters by model, FLOPs by case, and both costs of a call against each other."""
    return [*_parameters(source), *_flops(source), *_against_latency(source)]


def _parameters(source: Source) -> list[Figure]:
    """Parameters do not depend on what a model is fed: one line a model."""
    firsts: dict[str, dict[str, Any]] = {}
    for group in source.cases.values():
        name = group[0].case.subject.name
        if name not in firsts and (found := estimate(group, metrics.PARAMETERS)) is not None:
            firsts[name] = reading(found)
    rows, left_out = cut({"label": name, **figure} for name, figure in firsts.items())
    some = any(row["value"] for row in rows)
    return [_list("parameters", metrics.PARAMETERS, rows, "model", left_out)] if some else []


def _flops(source: Source) -> list[Figure]:
    labels = shortened(source.labels)
    rows, left_out = cut(
        {"label": labels[key], **reading(found)}
        for key, group in source.cases.items()
        if (found := estimate(group, metrics.FLOPS)) is not None
    )
    return [_list("FLOPs of one call", metrics.FLOPS, rows, "case", left_out)] if rows else []


def _list(title: str, metric: Metric, rows: Rows, heading: str, left_out: str) -> Figure:
    return Figure(
        title=title,
        caption=f"Counted, not sampled: there is no interval.{left_out}",
        spec=dots(rows, unit_of(metric, bounds(rows))),
        columns=(("label", heading), ("text", metric.title)),
        definitions=(metric,),
    )


def _against_latency(source: Source) -> list[Figure]:
    rows: Rows = []
    for key, group in islice(source.cases.items(), _MOST_POINTS):
        work, time = estimate(group, metrics.FLOPS), estimate(group, metrics.LATENCY)
        if work is not None and time is not None and work.value > 0:
            model = group[0].case.subject.name
            rows.append({"label": source.labels[key], "model": model, "flop": six(work.value), **reading(time)})
    if len(rows) < 2:
        return []
    count = len(source.cases)
    left_out = f" Of {count:,} cases the first {_MOST_POINTS}." if count > _MOST_POINTS else ""
    return [
        Figure(
            title="FLOPs against latency",
            caption="A case a point, with the interval of its latency. On a line of slope 1 all calls run at one rate."
            + left_out,
            spec=drawn(_scatter(rows), rows, _HEIGHT),
            columns=(("label", "case"), ("flop", "FLOPs"), ("text", "latency")),
            definitions=(metrics.FLOPS, metrics.LATENCY),
        )
    ]


def _scatter(rows: Rows) -> Any:
    import altair as alt

    work, time = [row["flop"] for row in rows], bounds(rows)
    models = list(dict.fromkeys(row["model"] for row in rows))
    x = alt.X("flop:Q", scale=scale_of(work), axis=unit_of(metrics.FLOPS, work).axis(work))
    axis, scale = unit_of(metrics.LATENCY, time).axis(time), scale_of(time)
    y, low = (alt.Y(f"{field}:Q", scale=scale, axis=axis) for field in ("value", "low"))
    told = [alt.Tooltip("label:N", title="case"), alt.Tooltip("text:N", title="latency")]
    base = alt.Chart().encode(x=x, tooltip=told)
    points = base.mark_point(filled=True, size=55, opacity=1).encode(y=y)
    if len(models) <= _MOST_COLOURS:
        legend = {"title": None, "sort": models, "scale": alt.Scale(domain=models)}
        base = base.encode(color=alt.Color("model:N", **legend))
        points = points.encode(color=alt.Color("model:N", **legend), shape=alt.Shape("model:N", **legend))
    return alt.layer(*intervals(rows, base.mark_rule(strokeWidth=2).encode(y=low, y2="high:Q")), points)
