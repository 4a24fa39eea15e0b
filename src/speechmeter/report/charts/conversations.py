"""One conversation of each live system, from its stored exchange: how far behind the text was, and what came when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.analysis.live import backlog
from speechmeter.analysis.live.talk import Talk, talks
from speechmeter.core import metrics
from speechmeter.core.errors import StoreError
from speechmeter.core.printable import one_line
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.colours import by_line, by_model, models_of
from speechmeter.report.charts.findings import headline
from speechmeter.report.live import Groups, live_names
from speechmeter.report.numbers import number
from speechmeter.report.sources import Source
from speechmeter.store.artifacts import artifact
from speechmeter.store.exchanges import exchange_file, read_exchanges

_HEIGHT = 220
_LANE_PX = 34
_MOST_POINTS = 400
"""Of the curve of one conversation; more cannot be told apart."""
_MOST_LANES = 8
_GAP = 0.004
"""Between two blocks, as a share of the time that is drawn."""
_AUDIO = "audio"
_COVERED = "covered speech ends at the last word that no later text changes, or at the end time of a final text"
_SHAPES = {"partial text": "M-.1,-1H.1V1H-.1Z", "final text": "circle", "end of turn": "triangle-up"}
"""A partial text is an upright stroke."""
_BELOW = "datum.kind === 'end of turn' ? 11 : 0"
"""Where a turn ends with its final text, both are seen."""
_KINDS = {"partial": "partial text", "final": "final text", "endpoint": "end of turn"}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Heard:
    """A conversation, and the system that held it."""

    name: str
    model: str
    talk: Talk


def backlogs(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    """Seconds of speech that the text was behind, over the longest utterance that all systems heard."""
    heard = _same_utterance(source, groups, longest=True)
    drawn = {one: _thinned(backlog.over_time(one.talk)) for one in heard if one.talk.conditions.pace == "realtime"}
    kept, left_out = _furthest_behind({one: curve for one, curve in drawn.items() if curve})
    rows: fig.Rows = [
        {"line": one.name, "model": one.model, "time": fig.six(moment), "value": fig.six(behind),
         "text": number(behind, "s")}
        for one in kept
        for moment, behind in drawn[one]
    ]  # fmt: skip
    if not rows:
        return
    yield fig.Figure(
        title=headline(_furthest(rows), f"backlog over time, utterance {heard[0].talk.exchange.utterance}"),
        caption=fig.sentence(
            "seconds of speech that were already spoken minus seconds that the text covers, in the first round",
            _COVERED,
            left_out,
        ),
        spec=_curves(rows, models_of(source.records)),
        columns=(("line", "system"), ("time", "time [s]"), ("text", "behind")),
        definitions=(metrics.BACKLOG,),
    )


def _thinned(curve: Sequence[backlog.Point]) -> Sequence[backlog.Point]:
    """As many points as can be told apart; of neighbours the highest, so that no peak is lost."""
    step = max(1, -(-len(curve) // _MOST_POINTS))
    return [max(curve[at : at + step], key=lambda point: point[1]) for at in range(0, len(curve), step)]


def _furthest_behind(drawn: Mapping[_Heard, Sequence[backlog.Point]]) -> tuple[list[_Heard], str]:
    """The systems that fit into one chart, in their order, and a sentence where there are more."""
    if len(drawn) <= _MOST_LANES:
        return list(drawn), ""
    ranked = sorted(drawn, key=lambda one: max(behind for _, behind in drawn[one]), reverse=True)[:_MOST_LANES]
    return [one for one in drawn if one in ranked], f"only the {_MOST_LANES} that fall behind most are drawn"


def _furthest(rows: fig.Rows) -> str:
    """Which system falls behind most."""
    largest = {line: max(row["value"] for row in rows if row["line"] == line) for line in {row["line"] for row in rows}}
    worst = max(sorted(largest), key=lambda line: largest[line])
    if list(largest.values()).count(largest[worst]) > 1:
        return ""
    return f"{worst} falls up to {number(largest[worst], 's')} behind"


def _curves(rows: fig.Rows, models: list[str]) -> dict[str, Any]:
    import altair as alt

    lines = list(dict.fromkeys(row["line"] for row in rows))
    domain = by_line(models, {row["line"]: row["model"] for row in rows}) or lines
    legend = alt.Legend(title=None, values=lines) if len(lines) > 1 else None
    up = fig.unit_of(metrics.BACKLOG, [row["value"] for row in rows], "behind").axis([])
    chart = alt.Chart().encode(
        x=alt.X("time:Q", axis=_time_axis(), scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", axis=up, scale=alt.Scale(zero=True)),
        color=alt.Color("line:N", title=None, scale=alt.Scale(domain=domain), legend=legend),
        tooltip=fig.tooltips({"line": "system", "text": "behind"}),
    )
    return fig.drawn(alt.layer(chart.mark_line(strokeWidth=1.8)), rows, _HEIGHT)


def timelines(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    """One utterance: its words, and when each system showed which text. Typical by the final delay of the first."""
    found = _same_utterance(source, groups, longest=False)
    heard = found[:_MOST_LANES]
    if not heard:
        return
    talk = heard[0].talk
    rows = [*_spoken(talk), *(row for one in heard for row in _shown(one))]
    paces = {one.talk.conditions.pace for one in heard}  # audio that comes faster is final sooner
    finals = {one.name: one.talk.final_s for one in heard if one.talk.final_s is not None and len(paces) == 1}
    first = [name for name, moment in finals.items() if moment == min(finals.values())]
    said = f"{first[0]} is final first" if len(first) == 1 < len(finals) else ""
    yield fig.Figure(
        title=headline(said, f"one utterance as it was heard: {talk.exchange.utterance}"),
        caption=fig.sentence(
            f'the reference is "{one_line(talk.exchange.reference)}"' if talk.exchange.reference else "",
            "blocks are its words in the audio; the dashed line is the end of speech",
            "first round; on the page each mark shows its text",
            f"only the first {_MOST_LANES} systems are drawn" if len(found) > _MOST_LANES else "",
        ),
        spec=_lanes(
            rows, [_AUDIO, *(one.name for one in heard)], talk.exchange.anchors.speech_end_s, models_of(source.records)
        ),
        columns=(("lane", "system"), ("kind", "event"), ("moment", "moment"), ("text", "text")),
    )


def _spoken(talk: Talk) -> fig.Rows:
    """The words in the audio; without their times the speech as one block."""
    anchors, exchange = talk.exchange.anchors, talk.exchange
    spans = [(word.text, word.start_s, word.end_s) for word in anchors.words]
    start, end = anchors.speech_start_s or 0.0, anchors.speech_end_s or exchange.audio_s
    gap = _GAP * talk.exchange.ended_s  # between words that follow each other without one
    return [
        {"lane": _AUDIO, "kind": "word" if anchors.words else "speech", "start": fig.six(since),
         "end": fig.six(max(since + gap, until - gap)),
         "moment": f"{number(since, 's')} to {number(until, 's')}", "text": text}
        for text, since, until in spans or [("speech", start, end)]
    ]  # fmt: skip


def _shown(one: _Heard) -> fig.Rows:
    events = [event for event in one.talk.exchange.events if event.kind in _KINDS]
    return [
        {"lane": one.name, "model": one.model, "kind": _KINDS[event.kind], "start": fig.six(event.moment_s),
         "moment": number(event.moment_s, "s"), "text": event.text}
        for event in events
    ]  # fmt: skip


def _lanes(rows: fig.Rows, lanes: list[str], speech_end_s: float | None, models: list[str]) -> dict[str, Any]:
    import altair as alt

    if speech_end_s is not None:
        rows = [*rows, {"ends": fig.six(speech_end_s)}]
    y = alt.Y("lane:N", title=None, sort=lanes, scale=alt.Scale(domain=lanes),
              axis=alt.Axis(grid=True, ticks=False, domain=False, labelPadding=8))  # fmt: skip
    x = alt.X("start:Q", axis=_time_axis(), scale=alt.Scale(zero=True, nice=False, padding=8))
    seen = [kind for kind in _SHAPES if any(row.get("kind") == kind for row in rows)]
    tooltip = fig.tooltips({"lane": "system", "kind": "event", "moment": "moment", "text": "text"})
    shape = alt.Shape(
        "kind:N", title=None,
        scale=alt.Scale(domain=seen, range=[_SHAPES[kind] for kind in seen]),
    )  # fmt: skip
    base = alt.Chart().encode(y=y, tooltip=tooltip)
    blocks = base.transform_filter(f"datum.lane === '{_AUDIO}'")
    events = base.transform_filter(f"datum.lane !== '{_AUDIO}' && isValid(datum.lane)").encode(**by_model(models))
    ends = alt.Chart().transform_filter("isValid(datum.ends)").encode(x=alt.X("ends:Q", axis=_time_axis()))
    chart = alt.layer(
        blocks.mark_rule(strokeWidth=12, opacity=0.6).encode(x=x, x2="end:Q"),
        *([] if speech_end_s is None else [ends.mark_rule(strokeDash=[4, 4])]),
        events.mark_point(filled=True, size=110, opacity=1, yOffset=alt.expr(_BELOW)).encode(x=x, shape=shape),
    )
    return fig.drawn(chart, rows, _LANE_PX * len(lanes))


def _time_axis() -> Any:
    import altair as alt

    return alt.Axis(title="time since the first sample [s]", labelExpr="'' + datum.value", grid=False, tickCount=6)


def _same_utterance(source: Source, groups: Groups, *, longest: bool) -> list[_Heard]:
    """A conversation of each system about one utterance that all of them heard: the longest, or a typical one."""
    names = live_names(groups)
    heard = {key: found for key in groups if (found := _first_round(source, groups, key))}
    shared = set.intersection(*(set(found) for found in heard.values())) if heard else set()
    if not shared:
        return []
    first = next(iter(heard.values()))
    if longest:
        chosen = max(sorted(shared), key=lambda name: first[name].exchange.audio_s)
    else:
        by_delay = sorted(shared, key=lambda name: (_final_delay(first[name]), name))
        chosen = by_delay[(len(by_delay) - 1) // 2]
    return [
        _Heard(name=names[key], model=groups[key][0].case.subject.name, talk=found[chosen])
        for key, found in heard.items()
    ]


def _final_delay(talk: Talk) -> float:
    end = talk.exchange.anchors.speech_end_s
    return float("inf") if talk.final_s is None else talk.final_s - (end or 0.0)


def _first_round(source: Source, groups: Groups, key: str) -> Mapping[str, Talk]:
    """The first conversation about each utterance in the first round whose exchanges can be read."""
    for record in groups[key]:
        path = None if source.artifacts is None else artifact(source.artifacts, record, exchange_file(record.round))
        if path is None:
            continue
        try:
            log = read_exchanges(path)
        except StoreError:  # a broken artifact does not take the records with it
            continue
        found: dict[str, Talk] = {}
        for talk in talks(log.exchanges, log.conditions):
            found.setdefault(talk.exchange.utterance, talk)
        return found
    return {}
