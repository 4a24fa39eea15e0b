"""Where the time of a call goes, stage by stage: the models of a cascade, the stages of a plain model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.readings import part_names
from speechmeter.core import metrics
from speechmeter.core.scope import PART, STAGE, Scope
from speechmeter.core.types import Record
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.marks import SERIES, cut
from speechmeter.report.sources import Source


def figures(source: Source) -> list[fig.Figure]:
    """One figure with a bar a case, of the stages inside the clock."""
    labels = fig.shortened(source.labels)
    rows, left_out = cut(
        {"label": labels[key], SERIES: name, "place": place, **fig.reading(found)}
        for key, group in source.cases.items()
        for place, (name, scope) in enumerate(_parts(group))
        if (found := estimate(group, metrics.LATENCY, scope)) is not None
    )
    if not rows:
        return []
    return [
        fig.Figure(
            title="time of a call by stage",
            caption=fig.sentence(
                "stages inside the clock, in the order of the chain",
                fig.interval_words(rows, "their intervals are in the table"),
            )
            + left_out,
            spec=fig.drawn(_chart(rows), rows, fig.STEP * len({row["label"] for row in rows})),
            columns=(("label", "case"), (SERIES, "stage"), ("text", "latency")),
            definitions=(metrics.LATENCY,),
            trivial=len({row[SERIES] for row in rows}) == 1,
        )
    ]


def _parts(group: Sequence[Record]) -> list[tuple[str, str]]:
    """(name, scope) of the models of a cascade; of a plain model, of its stages inside the clock."""
    roles = part_names(group)
    if roles:
        return [(role, Scope.of(PART, role)) for role in roles]
    timed = [m for record in group for m in record.measurements if m.metric == metrics.LATENCY.id]
    clocked = dict.fromkeys(Scope.parse(m.scope) for m in timed if m.notes.get("clocked", True))
    return [(scope.path, scope) for scope in clocked if scope.kind == STAGE]


def _chart(rows: fig.Rows) -> Any:
    import altair as alt

    names = list(dict.fromkeys(row["label"] for row in rows))
    stages = list(dict.fromkeys(row[SERIES] for row in sorted(rows, key=lambda row: int(row["place"]))))
    return (
        alt.Chart()
        .mark_bar(height=14)
        .encode(
            x=alt.X("value:Q", axis=fig.unit_of(metrics.LATENCY, []).axis([]), stack="zero"),
            y=alt.Y("label:N", title=None, sort=names, axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color(f"{SERIES}:N", title="stage", sort=stages, scale=alt.Scale(domain=stages)),
            order=alt.Order("place:Q"),
            tooltip=fig.tooltips({"label": "case", SERIES: "stage", "text": "latency"}),
        )
    )
