"""Size and arithmetic: parameters and FLOPs, and both against latency."""

from __future__ import annotations

from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts import against_latency
from speechmeter.report.charts.dots import cut, dots
from speechmeter.report.charts.figure import Figure, Rows, bounds, reading, shortened, unit_of
from speechmeter.report.sources import Source


def figures(source: Source) -> list[Figure]:
    """Parameters by model, FLOPs by case, and both against latency."""
    return [*_parameters(source), *_flops(source), *against_latency.figures(source)]


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
        sampled=False,
        spec=dots(rows, unit_of(metric, bounds(rows))),
        columns=(("label", heading), ("text", metric.title)),
        definitions=(metric,),
    )
