"""Raw samples of one case in the order they were taken, round by round: drift and outliers show.

The page fills in the rows of the case that is chosen; the figure's own interval stands behind them as a band.
"""

from __future__ import annotations

from typing import Any

from speechmeter.core import metrics
from speechmeter.report.charts.figure import drawn, unit_of

HEIGHT = 240


def strip() -> dict[str, Any]:
    """The specification; rows hold `order`, `round`, `value`, and one of them `mean`, `low` and `high`."""
    import altair as alt

    axis = unit_of(metrics.LATENCY, []).axis([])
    scale = alt.Scale(zero=False, padding=6)
    across = alt.Axis(tickMinStep=1, grid=False, format="d", title="samples in the order they were taken")
    x = alt.X("order:Q", axis=across, scale=alt.Scale(zero=False, padding=8))
    told = [alt.Tooltip("round:N", title="round"), alt.Tooltip("text:N", title="sample")]
    samples = alt.Chart().transform_filter("isValid(datum.value)").encode(x=x, tooltip=told)
    whole = alt.Chart().transform_filter("isValid(datum.mean)")
    return drawn(
        alt.layer(
            whole.mark_rect(opacity=0.18, style="quiet").encode(y=alt.Y("low:Q", scale=scale, axis=axis), y2="high:Q"),
            whole.mark_rule(strokeDash=[4, 4], style="quiet").encode(y=alt.Y("mean:Q", scale=scale, axis=axis)),
            samples.mark_point(filled=True, size=30, opacity=0.9).encode(
                y=alt.Y("value:Q", scale=scale, axis=axis),
                color=alt.Color("round:N", title="round", sort=None, legend=alt.Legend(columns=6)),
                shape=alt.Shape("round:N", title="round", sort=None),
            ),
        ),
        [],
        HEIGHT,
    )
