"""Delays against the level of load, with the limit of the SLO: flat up to the edge, steep beyond it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from speechmeter.analysis.live.capacity import RATE, Capacity, capacities
from speechmeter.analysis.live.resampling import percentile
from speechmeter.analysis.live.samples import samples_of
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.slo import Bound, Slo
from speechmeter.report.capacity import heading, sentence, without_level
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.findings import headline
from speechmeter.report.charts.marks import SERIES
from speechmeter.report.labels import case_labels
from speechmeter.report.live import Groups
from speechmeter.report.numbers import number
from speechmeter.report.sources import Source

_HEIGHT = 240
_LIMIT = "limit"
_BEYOND = "an answer that never came is drawn at its timeout"
_TYPICAL, _MEAN = "p50", "mean"


def hockey_sticks(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    """A figure for each system that was measured at several levels; none of a run without an SLO."""
    slo = source.slo
    if slo is None:
        return
    for one in capacities(source.records, slo):
        bound = _drawn_bound(one, slo)
        rows = [] if bound is None or len(one.levels) < 2 else _rows(one, bound)
        if bound is None or not rows:
            continue
        records = [record for level in one.levels for record in level.records]
        name = without_level(next(iter(case_labels(records[:1]).values())))
        yield fig.Figure(
            title=headline(sentence(one, short=True), f"{bound.metric.title} against load: {name}"),
            caption=fig.sentence(f"SLO: {slo.text}", f"limit: {heading(bound)}", _BEYOND),
            spec=_lines(rows, one.axis, bound.metric),
            columns=(("level", _axis_title(one.axis)), (SERIES, "of all conversations"), ("text", bound.metric.title)),
            definitions=(bound.metric,),
        )


def _drawn_bound(one: Capacity, slo: Slo) -> Bound | None:
    """The first bound on a delay, else on a slope, that has values."""
    drawn = [bound for bound in slo.bounds if not bound.on_completeness]
    records = [record for level in one.levels for record in level.records]
    return next((bound for bound in drawn if samples_of(records, bound.metric) is not None), None)


def _rows(one: Capacity, bound: Bound) -> fig.Rows:
    rows: fig.Rows = []
    for level in one.levels:
        samples = samples_of(level.records, bound.metric)
        if samples is None:
            continue
        late_s = samples.timeout_s or 0.0
        values = [late_s if math.isinf(value) else float(value) for value in samples.values]
        shares = {_MEAN: None} if bound.share is None else {_TYPICAL: 0.5, f"p{100 * bound.share:g}": bound.share}
        points = {
            name: sum(values) / len(values) if share is None else percentile(values, share)
            for name, share in shares.items()
        }
        for name, value in {**points, _LIMIT: bound.limit}.items():
            rows.append({
                "level": fig.six(level.level), SERIES: name, "value": fig.six(value), "verdict": level.word,
                "text": number(value, bound.metric.unit),
            })  # fmt: skip
    return rows


def _axis_title(axis: str) -> str:
    return "conversations per second" if axis == RATE else "streams"


def _lines(rows: fig.Rows, axis: str, metric: Metric) -> dict[str, Any]:
    import altair as alt

    names = list(dict.fromkeys(row[SERIES] for row in rows))
    up = fig.unit_of(metric, [row["value"] for row in rows]).axis([])
    chart = alt.Chart().encode(
        x=alt.X("level:Q", axis=alt.Axis(title=_axis_title(axis)), scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", axis=up, scale=alt.Scale(zero=metric != metrics.KEEP_UP)),
        color=alt.Color(f"{SERIES}:N", title=None, scale=alt.Scale(domain=names)),
        tooltip=fig.tooltips(
            {"level": _axis_title(axis), SERIES: "figure", "text": metric.title, "verdict": "verdict"}
        ),
    )
    dash = alt.condition(f"datum['{SERIES}'] === '{_LIMIT}'", alt.value([5, 4]), alt.value([1, 0]))
    lines = chart.mark_line(strokeWidth=1.8).encode(strokeDash=dash)
    points = chart.mark_point(filled=True, size=30).transform_filter(f"datum['{SERIES}'] !== '{_LIMIT}'")
    return fig.drawn(alt.layer(lines, points), rows, _HEIGHT)
