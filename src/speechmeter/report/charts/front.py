"""Accuracy against cost: every system with both intervals, and who is on the front, as far as the intervals show."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.live.samples import is_live
from speechmeter.analysis.quality import Standing
from speechmeter.core.metrics import Metric
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.colours import models_of
from speechmeter.report.charts.findings import headline, named
from speechmeter.report.charts.scatter import ON_FRONT, Axis, scatter
from speechmeter.report.quality import Cost, front_cost, front_groups, front_score, fronts
from speechmeter.report.sources import Source

MOST_SYSTEMS = 40
"""Every two systems are compared over all utterances: beyond this many that takes minutes."""
_JUDGED = (
    "A system is dominated if another is better in score or cost and no worse in the other. If intervals overlap or "
    "are missing, it is marked as not resolvable."
)
_WORDS = {"yes": ON_FRONT, "no": "dominated", "not resolvable": "not resolvable"}
_UNJUDGED: Standing | None = Standing(
    word="not resolvable", others=(f"not compared: more than {MOST_SYSTEMS} systems",)
)
_SHAPES = {ON_FRONT: "circle", "dominated": "cross", "not resolvable": "diamond"}


def figures(source: Source) -> list[fig.Figure]:
    """A figure for each input and device on which at least one system has a score and a cost."""
    groups = {key: group for key, group in source.cases.items() if group[0].status != "skipped"}
    scores: dict[str, Metric | None] = {}
    for keys in front_groups(groups):
        scores |= dict.fromkeys(keys, front_score([groups[key] for key in keys]))  # once for all: a study may be large
    groups = {key: group for key, group in groups.items() if scores[key] is not None}
    unjudged = len(groups) > MOST_SYSTEMS
    standings: dict[str, Standing | None] = dict.fromkeys(groups, _UNJUDGED)
    if not unjudged:
        standings = fronts(groups, source.labels)
    made = []
    for keys in front_groups(groups):
        score, cost = scores[keys[0]], front_cost([groups[key] for key in keys])
        rows = _rows(source, keys, score, cost, standings) if score is not None else []
        if rows and score is not None:
            made.append(_figure(rows, score, cost, models_of(source.records), unjudged=unjudged))
    return made


def _rows(
    source: Source, keys: Sequence[str], score: Metric, cost: Cost, standings: dict[str, Standing | None]
) -> fig.Rows:
    names = fig.shortened({key: source.labels[key] for key in keys})
    rows: fig.Rows = []
    for key in keys:
        group, standing = source.cases[key], standings.get(key)
        quality, price = estimate(group, score), cost.of(group)
        if quality is None or price is None or standing is None:
            continue
        spent = fig.reading(price)
        rows.append(
            {
                "label": names[key],
                "model": group[0].case.subject.name,
                "standing": _WORDS[standing.word],
                "against": ", ".join(standing.others),
                **fig.reading(quality),
                **{f"cost_{name}": spent[name] for name in ("value", "low", "high", "text")},
            }
        )
    return rows


def _figure(rows: fig.Rows, score: Metric, cost: Cost, models: Sequence[str], *, unjudged: bool) -> fig.Figure:
    drawn_ones = _intervals(rows, cost)
    of, judged = (f": {rows[0]['label']}", "") if len(rows) == 1 else ("", _JUDGED)  # one system has no front
    return fig.Figure(
        title=headline("" if unjudged else _standing(rows), f"{score.title} against {cost.title}{of}"),
        caption=" ".join(filter(None, [fig.sentence(f"95 % intervals {drawn_ones}") if drawn_ones else "", judged]))
        + (f" There are more than {MOST_SYSTEMS} systems: they are drawn, but not compared." if unjudged else ""),
        spec=scatter(
            rows, Axis(metric=score), Axis(metric=cost.metric, title=cost.title), models, _fields(score, cost), _SHAPES
        ),
        columns=tuple(_fields(score, cost).items()),
        definitions=(score, cost.metric),
        trivial=len(rows) == 1,
    )


def _intervals(rows: fig.Rows, cost: Cost) -> str:
    """What the intervals are over, as far as some are drawn."""
    score, spent = (any(row[low] is not None for row in rows) for low in ("low", "cost_low"))
    if is_live(cost.metric):
        return "by resampling utterances, and rounds from 5 on" if score or spent else ""
    return ", ".join(
        filter(None, ["over utterances for the score" if score else "", "over rounds for the cost" if spent else ""])
    )


def _fields(score: Metric, cost: Cost) -> dict[str, str]:
    """What a reader sees of a row, with headings."""
    titles = {"text": score.title, "cost_text": cost.title}
    return {"label": "system", **titles, "standing": "front", "against": "against"}


def _standing(rows: fig.Rows) -> str:
    """Who is on the front; where nobody can be said to be, that."""
    on = [row["label"] for row in rows if row["standing"] == _WORDS["yes"]]
    unclear = [row["label"] for row in rows if row["standing"] == _WORDS["not resolvable"]]
    if len(rows) == 1:
        return ""
    if not on:
        return "The intervals are too wide to show which systems are on the Pareto front" if unclear else ""
    verb = "is" if len(on) == 1 else "are"
    rest = f"; {named(unclear)} may be" if unclear else ""
    return f"{named(on)} {verb} on the Pareto front{rest}"
