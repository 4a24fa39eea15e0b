"""Where the time of a call goes, stage by stage: the models of a cascade, the stages of a plain model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.leading import lead
from speechmeter.analysis.readings import part_names
from speechmeter.core import metrics
from speechmeter.core.scope import PART, STAGE, Scope
from speechmeter.core.types import Record
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.findings import ONE_ROUND, headline
from speechmeter.report.charts.marks import SERIES, cut
from speechmeter.report.charts.style import TINT_LINE, TINTS
from speechmeter.report.sources import Source

_WHOLE = 0.99
_VISIBLE = 20
"""Times the shortest bar that is still seen."""


def figures(source: Source) -> list[fig.Figure]:
    """One figure with a bar a case, of the stages inside the clock."""
    labels = fig.shortened(source.labels)
    rows, left_out = cut(
        {"label": labels[key], "key": key, SERIES: name, "position": position, **fig.reading(found)}
        for key, group in source.cases.items()
        for position, (name, scope) in enumerate(_parts(group))
        if (found := estimate(group, metrics.LATENCY, scope)) is not None
    )
    if not rows:
        return []
    cases = list(dict.fromkeys(row["label"] for row in rows))
    shares = _far_apart(rows, cases)
    return [
        fig.Figure(
            title=headline(
                _longest(source, list(dict.fromkeys(row["key"] for row in rows))),
                f"time of a call by stage{', as shares' if shares else ''}",
            ),
            caption=fig.sentence(
                "the timed stages, in the order in which they run",
                "the time of each stage is in the table" if shares else "",
                fig.interval_words(rows, "their intervals are in the table"),
            )
            + left_out,
            spec=fig.drawn(_chart(rows, shares), rows, fig.STEP * len(cases)),
            columns=(("label", "case"), (SERIES, "stage"), ("text", "latency")),
            definitions=(metrics.LATENCY,),
            trivial=all(_is_whole(rows, case) for case in cases),
        )
    ]


def _is_whole(rows: fig.Rows, case: str) -> bool:
    """Whether one stage is all that can be seen of a case."""
    times = [row["value"] for row in rows if row["label"] == case]
    longest, whole = float(max(times)), float(sum(times))
    return longest >= _WHOLE * whole


def _far_apart(rows: fig.Rows, cases: Sequence[str]) -> bool:
    """Whether the stages of some case could not be seen beside those of another."""
    longest = [max(float(row["value"]) for row in rows if row["label"] == case) for case in cases]
    return min(longest) > 0 and max(longest) / min(longest) > _VISIBLE


def _longest(source: Source, keys: Sequence[str]) -> str:
    """The stage that takes longest in most cases, where the intervals do not leave it open."""
    leads = []
    for key in keys:
        group = source.cases[key]
        times = {name: estimate(group, metrics.LATENCY, scope) for name, scope in _parts(group)}
        leads.append(lead({name: found for name, found in times.items() if found is not None}, largest=True))
    known = [one for one in leads if one is not None and not one.close]
    if not known:
        return ""
    (stage, count), total = Counter(one.best for one in known).most_common(1)[0], sum(one is not None for one in leads)
    where = "" if total == 1 else " in every case" if count == total else f" in {count} of {total} cases"
    certain = all(one.certain for one in known)
    return f"The longest stage is {stage!r}{where}{'' if certain else ONE_ROUND}"


def _parts(group: Sequence[Record]) -> list[tuple[str, str]]:
    """(name, scope) of the models of a cascade; of a plain model, of its stages inside the clock."""
    roles = part_names(group)
    if roles:
        return [(role, Scope.of(PART, role)) for role in roles]
    timed = [m for record in group for m in record.measurements if m.metric == metrics.LATENCY.id]
    clocked = dict.fromkeys(Scope.parse(m.scope) for m in timed if m.notes.get("clocked", True))
    return [(scope.path, scope) for scope in clocked if scope.kind == STAGE]


def _chart(rows: fig.Rows, shares: bool) -> Any:
    import altair as alt

    names = list(dict.fromkeys(row["label"] for row in rows))
    last = {row[SERIES]: int(row["position"]) for row in sorted(rows, key=lambda row: int(row["position"]))}
    stages = sorted(last, key=lambda stage: last[stage])  # some cases lack the stages at the beginning
    totals = [sum(row["value"] for row in rows if row["label"] == name) for name in names]
    axis = fig.unit_of(metrics.LATENCY, totals).axis([])
    if shares:
        axis = alt.Axis(title="share of the call [%]", labelExpr="'' + round(datum.value * 100)", tickCount=5)
    tints = [TINTS[1 + position % (len(TINTS) - 1)] for position in range(len(stages))]
    legend = alt.Legend() if len(stages) > 1 else None
    return (
        alt.Chart()
        .mark_bar(height=14, stroke=TINT_LINE, strokeWidth=0.5)
        .encode(
            x=alt.X("value:Q", axis=axis, stack="normalize" if shares else "zero"),
            y=alt.Y("label:N", title=None, sort=names, axis=fig.names_axis(names)),
            color=alt.Color(f"{SERIES}:N", title="stage", sort=stages, legend=legend,
                            scale=alt.Scale(domain=stages, range=tints)),
            order=alt.Order("position:Q"),
            tooltip=fig.tooltips({"label": "case", SERIES: "stage", "text": "latency"}),
        )
    )  # fmt: skip
