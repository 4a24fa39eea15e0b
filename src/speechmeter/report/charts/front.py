"""Accuracy against cost: every system with both intervals, and who is on the front, as far as the intervals show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.quality import Standing, best_score
from speechmeter.core.metrics import Metric
from speechmeter.report.charts import figure as fig
from speechmeter.report.quality import front_cost, front_groups, fronts
from speechmeter.report.sources import Source

MOST_SYSTEMS = 40
"""Every two systems are compared over all utterances: beyond this many that takes minutes."""
_HEIGHT = 300
_JUDGED = (
    "A system is dominated if another is better in one and at least as good in the other. If intervals overlap or "
    "are missing, it is marked as not resolvable."
)
_WORDS = {"yes": "on the front", "no": "dominated", "not resolvable": "not resolvable"}
_UNJUDGED: Standing | None = Standing(word="not resolvable", others=(f"not compared: over {MOST_SYSTEMS} systems",))
_SHAPES = {"on the front": "circle", "dominated": "cross", "not resolvable": "diamond"}


def figures(source: Source) -> list[fig.Figure]:
    """A figure for each input and device on which at least one system has a score and a cost."""
    groups = {key: group for key, group in source.cases.items() if group[0].status != "skipped"}
    score = best_score(list(groups.values())) if groups else None
    if score is None:
        return []
    unjudged = len(groups) > MOST_SYSTEMS
    standings: dict[str, Standing | None] = dict.fromkeys(groups, _UNJUDGED)
    if not unjudged:
        standings = fronts(groups, source.labels)
    made = []
    for keys in front_groups(groups):
        cost = front_cost([groups[key] for key in keys])
        rows = _rows(source, keys, score, cost, standings)
        if rows:
            made.append(_figure(rows, score, cost, unjudged=unjudged))
    return made


def _rows(
    source: Source, keys: Sequence[str], score: Metric, cost: Metric, standings: dict[str, Standing | None]
) -> fig.Rows:
    names = fig.shortened({key: source.labels[key] for key in keys})
    rows: fig.Rows = []
    for key in keys:
        group, standing = source.cases[key], standings.get(key)
        quality, price = estimate(group, score), estimate(group, cost)
        if quality is None or price is None or standing is None:
            continue
        spent = fig.reading(price)
        rows.append(
            {
                "label": names[key],
                "standing": _WORDS[standing.word],
                "against": ", ".join(standing.others),
                **fig.reading(quality),
                **{f"cost_{name}": spent[name] for name in ("value", "low", "high", "text")},
            }
        )
    return rows


def _figure(rows: fig.Rows, score: Metric, cost: Metric, *, unjudged: bool) -> fig.Figure:
    # which of the two intervals there are
    parts = [
        "over utterances for the score" if any(row["low"] is not None for row in rows) else "",
        "over rounds for the cost" if any(row["cost_low"] is not None for row in rows) else "",
    ]
    drawn_ones = ", ".join(filter(None, parts))
    return fig.Figure(
        title=f"{score.title} against {cost.title}",
        caption=" ".join(filter(None, [fig.sentence(f"95 % intervals {drawn_ones}") if drawn_ones else "", _JUDGED]))
        + (f" There are over {MOST_SYSTEMS} systems: they are drawn, but not compared." if unjudged else ""),
        spec=fig.drawn(_chart(rows, score, cost), rows, _HEIGHT),
        columns=tuple(_fields(score, cost).items()),
        definitions=(score, cost),
    )


def _fields(score: Metric, cost: Metric) -> dict[str, str]:
    """What a reader sees of a row, with headings."""
    titles = {"text": score.title, "cost_text": cost.title}
    return {"label": "system", **titles, "standing": "front", "against": "against"}


def _chart(rows: fig.Rows, score: Metric, cost: Metric) -> Any:
    import altair as alt

    costs = [row[name] for row in rows for name in ("cost_value", "cost_low", "cost_high") if row[name] is not None]
    scores = fig.bounds(rows)
    across, up = fig.unit_of(cost, costs).axis(costs), fig.unit_of(score, scores).axis([])
    x_scale, y_scale = fig.scale_of(costs), alt.Scale(zero=True)
    x, x_low = (alt.X(f"{field}:Q", axis=across, scale=x_scale) for field in ("cost_value", "cost_low"))
    y, y_low = (alt.Y(f"{field}:Q", axis=up, scale=y_scale) for field in ("value", "low"))
    names = list(dict.fromkeys(row["label"] for row in rows))
    colour = alt.Color("label:N", title="system", sort=names, scale=alt.Scale(domain=names))
    base = alt.Chart().encode(color=colour, tooltip=fig.tooltips(_fields(score, cost)))
    seen = [word for word in _SHAPES if any(row["standing"] == word for row in rows)]
    shapes = alt.Scale(domain=seen, range=[_SHAPES[word] for word in seen])
    line = alt.Chart().transform_filter("datum.standing === 'on the front'").encode(x=x, y=y)
    steps = line.mark_line(interpolate="step-after", strokeDash=[4, 4], strokeWidth=1.5, style="quiet-line")
    return alt.layer(
        *([steps] if "on the front" in seen else []),
        *fig.intervals(rows, base.mark_rule().encode(x=x_low, x2="cost_high:Q", y=y), "cost_low"),
        *fig.intervals(rows, base.mark_rule().encode(y=y_low, y2="high:Q", x=x)),
        base.mark_point(filled=True, size=110, opacity=1).encode(
            x=x, y=y, shape=alt.Shape("standing:N", title="front", scale=shapes)
        ),
    )
