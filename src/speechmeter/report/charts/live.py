"""Live systems: their delays with intervals, how the final delay is distributed, and lag of words against churn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.leading import lead
from speechmeter.analysis.live.figures import shares_by_delay
from speechmeter.analysis.live.resampling import LEAST_ROUNDS
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.capacity import hockey_sticks
from speechmeter.report.charts.colours import by_line, models_of
from speechmeter.report.charts.conversations import backlogs, timelines
from speechmeter.report.charts.findings import best_words, headline, named
from speechmeter.report.charts.marks import SERIES, cut, dots
from speechmeter.report.charts.scatter import Axis, scatter
from speechmeter.report.live import Groups, hearing_groups, live_names
from speechmeter.report.numbers import figure as figure_text
from speechmeter.report.numbers import number
from speechmeter.report.sources import Source

_HEIGHT = 240
_DELAYS = (
    ("first text p50", metrics.FIRST_PARTIAL_FROM_ONSET, "p50"),
    ("word lag p50", metrics.WORD_LAG, "p50"),
    ("final delay p50", metrics.FINAL_DELAY, "p50"),
    ("final delay p95", metrics.FINAL_DELAY, "p95"),
)


def figures(source: Source, axis: str = "") -> Iterator[fig.Figure]:
    """All of the page, or the one that is named by the word behind `live:`."""
    groups = hearing_groups(source.records)
    if not groups:
        return
    records = [record for group in groups.values() for record in group]
    yield from with_caveats(records, (draw(source, groups) for name, draw in _KINDS.items() if axis in ("", name)))


def with_caveats(records: Sequence[Record], drawn: Iterable[Iterator[fig.Figure]]) -> Iterator[fig.Figure]:
    """The figures, each with what a reader of live figures must know."""
    for figure in chain.from_iterable(drawn):
        caveats = (*_late_sends(records), *fig.caveats_of(records, sampled=figure.sampled and not _bounded(figure)))
        yield replace(figure, caveats=caveats)


def _late_sends(records: Sequence[Record]) -> tuple[str, ...]:
    """That the client was late, so that figures are its own too."""
    late = {record.case.subject.name for record in records if any("client-bound" in text for text in record.warnings)}
    return (
        (f"{named(sorted(late))}: audio was sent late, so the delays include the delay of the client",) if late else ()
    )


def over(found: Iterable[Estimate | None]) -> str:
    """What intervals are over, where there are any."""
    bounded = [one for one in found if one is not None and one.low is not None]
    if not bounded:
        return ""
    few = min(one.rounds for one in bounded) < LEAST_ROUNDS
    return f"95 % intervals over utterances{f' only: fewer than {LEAST_ROUNDS} rounds' if few else ' and rounds'}"


def _bounded(figure: fig.Figure) -> bool:
    """Whether intervals are drawn: over utterances there are some of a single round too."""
    return any(row.get("low") is not None for row in figure.rows)


def plotted(source: Source, axis: str = "") -> Iterator[fig.Figure]:
    """The one that is named, or the delays."""
    yield from figures(source, axis or "delays")


def _delays(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    """A line a system with its delays; a percentile that the utterances do not support is left out."""
    names = live_names(groups)
    found = {
        (key, title): estimate(group, metric, statistic=statistic)
        for key, group in groups.items()
        for title, metric, statistic in _DELAYS
    }
    rows, left_out = cut(
        {"label": names[key], "model": groups[key][0].case.subject.name, SERIES: title, **fig.reading(one)}
        for (key, title), one in found.items()
        if one is not None
    )
    if not rows:
        return
    unit = fig.unit_of(metrics.FINAL_DELAY, fig.bounds(rows), "delay")
    paces = {group[0].case.axes.get("pace") for group in groups.values()}
    led = next(
        (title for title in ("final delay p50", "word lag p50") if any(row[SERIES] == title for row in rows)), ""
    )
    leads = {
        names[key]: one
        for (key, title), one in found.items()  # audio that comes faster than speech is final sooner
        if title == led and one is not None and len(paces) == 1
    }
    yield fig.Figure(
        title=headline(_with_completeness(leads, groups, names), "delays of live systems"),
        caption=fig.sentence(over(found.values()), _beyond(found.values())) + left_out,
        spec=dots(rows, unit, series="delay", ordered=tuple(title for title, _, _ in _DELAYS),
                  models=models_of(source.records)),
        columns=(("label", "system"), (SERIES, "delay"), ("text", "figure")),
        definitions=(metrics.FINAL_DELAY, metrics.FIRST_PARTIAL_FROM_ONSET, metrics.WORD_LAG),
    )  # fmt: skip


def _first_words(leads: dict[str, Estimate]) -> str:
    """Which system is first; of a single one its delay."""
    if len(leads) != 1:
        return best_words(leads)
    ((name, one),) = leads.items()
    return f"{name} has a {one.metric.title} of {figure_text(one)}"


def _with_completeness(leads: dict[str, Estimate], groups: Groups, names: dict[str, str]) -> str:
    """Which system is first, and how complete it is where not every conversation was: losing answers is no speed."""
    best = lead(leads)
    keys = [key for key, name in names.items() if best is not None and name == best.best]
    found = [estimate(groups[key], metrics.LIVE_COMPLETENESS) for key in keys]
    part = next((one for one in found if one is not None and one.value < 100), None)
    return _first_words(leads) + (f", with {number(part.value, '%')} of its conversations complete" if part else "")


def _beyond(found: Iterable[Estimate | None]) -> str:
    """That an answer which never came is drawn at the timeout."""
    limits = {one.beyond_s for one in found if one is not None and one.beyond_s is not None}
    return f"a missing answer is drawn at {max(limits):g} s" if limits else ""


def _distribution(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    """The share of conversations whose text was final within a delay."""
    return distribution(source, groups, metrics.FINAL_DELAY, "with a final text")


def distribution(source: Source, groups: Groups, metric: Metric, what: str) -> Iterator[fig.Figure]:
    """The share of conversations whose delay was no longer, against the delay."""
    names = live_names(groups)
    rows: fig.Rows = []
    lost = False
    figures = []
    for key, group in groups.items():
        for delay_s, share, low, high in shares_by_delay(group, metric):
            bounds = {"low": low, "high": high}
            rows.append({
                "line": names[key], "model": group[0].case.subject.name, "delay": fig.six(delay_s),
                "value": fig.six(100 * share), "text": f"{100 * share:.3g} %",
                **{name: None if end is None else fig.six(100 * end) for name, end in bounds.items()},
            })  # fmt: skip
        found = estimate(group, metric)
        figures.append(found)
        lost = lost or (found is not None and found.beyond_s is not None)
    if len(rows) == len({row["line"] for row in rows}):
        return  # one conversation each: a share says nothing more than the delay
    bands = over(figures)
    yield fig.Figure(
        title=headline("", f"share of conversations with at most this {metric.title}"),
        caption=fig.sentence(
            f"bands are {bands}" if bands else "",
            "a line that ends below 100 %: the system did not answer in every conversation" if lost else "",
        ),
        spec=_shares(rows, models_of(source.records), metric, what),
        columns=(("line", "system"), ("delay", f"{metric.title} [s]"), ("text", "conversations")),
        definitions=(metric,),
    )


def _shares(rows: fig.Rows, models: Sequence[str], metric: Metric, what: str) -> dict[str, Any]:
    import altair as alt

    lines = list(dict.fromkeys(row["line"] for row in rows))
    unit = fig.unit_of(metric, [row["delay"] for row in rows])
    domain = by_line(models, {row["line"]: row["model"] for row in rows}) or lines
    legend = alt.Legend(title=None, values=lines) if len(lines) > 1 else None
    x = alt.X("delay:Q", axis=unit.axis([]), scale=alt.Scale(zero=True))
    up = alt.Axis(title=f"conversations {what} [%]", labelExpr="'' + datum.value", tickCount=5)
    scale = alt.Scale(domain=[0, 100])
    base = alt.Chart().encode(
        x=x,
        color=alt.Color("line:N", title=None, scale=alt.Scale(domain=domain), legend=legend),
        tooltip=[alt.Tooltip("line:N", title="system"), alt.Tooltip("delay:Q", title=f"{metric.title} [s]"),
                 alt.Tooltip("text:N", title="conversations")],
    )  # fmt: skip
    band = base.mark_area(interpolate="step-after", opacity=0.15, line=False)
    layers = [
        *fig.intervals(rows, band.encode(y=alt.Y("low:Q", scale=scale, axis=up), y2="high:Q", detail="line:N")),
        base.mark_line(interpolate="step-after", strokeWidth=1.8, point=_single(rows)).encode(
            y=alt.Y("value:Q", scale=scale, axis=up), detail="line:N"
        ),
    ]
    return fig.drawn(alt.layer(*layers), rows, _HEIGHT)


def _single(rows: fig.Rows) -> bool:
    """Whether a line has one point, which would not be seen as a line."""
    lines = [row["line"] for row in rows]
    return any(lines.count(line) == 1 for line in set(lines))


def _churn(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    """How late words come against how often they change; for each system that has both."""
    names = live_names(groups)
    rows: fig.Rows = []
    churns: dict[str, Estimate] = {}
    lags = []
    for key, group in groups.items():
        lag, churn = estimate(group, metrics.WORD_LAG), estimate(group, metrics.PARTIAL_CHURN)
        if lag is None or churn is None:
            continue
        spent = fig.reading(lag)
        churns[names[key]] = churn
        lags.append(lag)
        rows.append({
            "label": names[key], "model": group[0].case.subject.name, **fig.reading(churn),
            **{f"cost_{name}": spent[name] for name in ("value", "low", "high", "text")},
        })  # fmt: skip
    if not rows:
        return
    titles = {"label": "system", "text": metrics.PARTIAL_CHURN.title, "cost_text": metrics.WORD_LAG.title}
    yield fig.Figure(
        title=headline(best_words(churns), "rewritten words of partial texts against word lag"),
        caption=fig.sentence(over([*churns.values(), *lags]), (
            "words that come early but change later are of little use"
        )),
        spec=scatter(
            rows, Axis(metric=metrics.PARTIAL_CHURN), Axis(metric=metrics.WORD_LAG, title="word lag p50"),
            models_of(source.records), titles,
        ),
        columns=tuple(titles.items()),
        definitions=(metrics.PARTIAL_CHURN, metrics.WORD_LAG),
        trivial=len({row["value"] for row in rows}) == 1,
    )  # fmt: skip


_KINDS: dict[str, Callable[[Source, Groups], Iterator[fig.Figure]]] = {
    "delays": _delays,
    "distribution": _distribution,
    "churn": _churn,
    "backlog": backlogs,
    "timeline": timelines,
    "capacity": hockey_sticks,
}
"""What may be behind `live:`, in the order of the page. `report.views` lists the words."""
