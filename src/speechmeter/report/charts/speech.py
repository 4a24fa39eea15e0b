"""Systems that speak: when sound comes, one answer as it came and was played, and pauses against the pre-buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.live.sound import is_streamed, played
from speechmeter.analysis.live.speech import onset_s
from speechmeter.analysis.live.talk import Talk
from speechmeter.core import metrics
from speechmeter.core.printable import one_line
from speechmeter.report.charts import figure as fig
from speechmeter.report.charts.colours import by_line, models_of
from speechmeter.report.charts.conversations import first_round
from speechmeter.report.charts.findings import best_words, headline
from speechmeter.report.charts.live import distribution, over, with_caveats
from speechmeter.report.charts.marks import SERIES, cut, dots
from speechmeter.report.live import Groups, live_names
from speechmeter.report.numbers import number
from speechmeter.report.sources import Source
from speechmeter.report.speech import speaking_groups

_HEIGHT, _LANE_PX = 240, 40
_STARTS = (
    ("first byte p50", metrics.FIRST_BYTE, "p50"),
    ("first sound p50", metrics.FIRST_SOUND, "p50"),
    ("first sound p95", metrics.FIRST_SOUND, "p95"),
    ("first sound, cold", metrics.FIRST_SOUND_COLD, "geomean"),
)
_BUFFERS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Pre-buffers that are tried, in seconds of sound."""
_MOST_LANES = 8
_WAITS, _SILENT, _SOUNDS, _PAUSES = "waiting", "silence in the sound", "speech", "pause"
_COLOURS = {_WAITS: "#c8c8c8", _SILENT: "#8fb8de", _SOUNDS: "#2f7d4f", _PAUSES: "#c0392b"}


def figures(source: Source, axis: str = "") -> Iterator[fig.Figure]:
    """All of the page, or the one that is named by the word behind `speech:`."""
    groups = speaking_groups(source.records)
    if not groups:
        return
    records = [record for group in groups.values() for record in group]
    yield from with_caveats(records, (draw(source, groups) for name, draw in _KINDS.items() if axis in ("", name)))


def plotted(source: Source, axis: str = "") -> Iterator[fig.Figure]:
    """The one that is named, or when sound starts."""
    yield from figures(source, axis or "start")


def _start(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    """A line a system: first byte, first sound, and that of the first conversation."""
    names = live_names(groups)
    found = {
        (key, title): estimate(group, metric, statistic=statistic)
        for key, group in groups.items()
        for title, metric, statistic in _STARTS
    }
    rows, left_out = cut(
        {"label": names[key], "model": groups[key][0].case.subject.name, SERIES: title, **fig.reading(one)}
        for (key, title), one in found.items()
        if one is not None
    )
    if not rows:
        return
    paces = {key: group[0].case.axes.text_pace or 0.0 for key, group in groups.items()}
    alike = [key for key in groups if paces[key] == min(paces.values())]  # a text that comes slowly is spoken later
    first = {names[key]: one for key in alike if (one := found[key, _STARTS[1][0]]) is not None}
    yield fig.Figure(
        title=headline(best_words(first), "when sound starts"),
        caption=fig.sentence(over(found.values())) + left_out,
        spec=dots(rows, fig.unit_of(metrics.FIRST_SOUND, fig.bounds(rows), "delay"), series="delay",
                  ordered=tuple(title for title, _, _ in _STARTS), models=models_of(source.records)),
        columns=(("label", "system"), (SERIES, "delay"), ("text", "figure")),
        definitions=(metrics.FIRST_BYTE, metrics.FIRST_SOUND, metrics.FIRST_SOUND_COLD),
    )  # fmt: skip


def _distribution(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    return distribution(source, groups, metrics.FIRST_SOUND, "with audible sound")


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """An answer, and the system that gave it."""

    name: str
    talk: Talk


def _answer(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    """One text, the longest that all systems spoke: when its pieces came, and how they were played."""
    answers = _same_text(source, groups)[:_MOST_LANES]
    if not answers:
        return
    rows = [row for one in answers for row in (*_played(one), *_pieces(one))]
    text = answers[0].talk.exchange.text
    buffered = answers[0].talk.conditions.prebuffer_s
    yield fig.Figure(
        title=headline("", f"one answer as it arrived and was played: {answers[0].talk.exchange.utterance}"),
        caption=fig.sentence(
            f"the text is: {one_line(text).rstrip('.')}" if text else "",
            "lines: pieces of sound when they arrived; blocks: when they were played"
            + (f" after a pre-buffer of {number(buffered, 's')}" if buffered else ""),
            "first round",
        ),
        spec=_lanes(rows, [one.name for one in answers]),
        columns=(("lane", "system"), ("kind", "part"), ("text", "time")),
        definitions=(metrics.FIRST_BYTE, metrics.FIRST_SOUND, metrics.UNDERRUN_TOTAL),
    )


def _same_text(source: Source, groups: Groups) -> list[_Answer]:
    names = live_names(groups)
    spoken = {
        key: {name: talk for name, talk in first_round(source, groups, key).items() if talk.pieces} for key in groups
    }
    spoken = {key: found for key, found in spoken.items() if found}
    shared = set.intersection(*(set(found) for found in spoken.values())) if spoken else set()
    if not shared:
        return []
    first = next(iter(spoken.values()))
    chosen = max(sorted(shared), key=lambda name: (len(first[name].exchange.text or ""), first[name].made_s))
    return [_Answer(name=names[key], talk=found[chosen]) for key, found in spoken.items()]


def _played(one: _Answer) -> Iterator[dict[str, Any]]:
    """Waiting, silence, speech and pauses, one after another, on the clock of the conversation."""
    talk = one.talk
    playback = played(talk.pieces, talk.conditions.prebuffer_s)
    onset = onset_s(talk)
    heard = max(playback.begins_s, playback.begins_s if onset is None else onset)
    spans = [(_WAITS, 0.0, playback.begins_s), (_SILENT, playback.begins_s, heard)]
    since = heard
    for moment, seconds in playback.pauses:
        spans += [(_SOUNDS, since, max(since, moment)), (_PAUSES, moment, moment + seconds)]
        since = moment + seconds
    spans.append((_SOUNDS, since, playback.ends_s))
    for kind, start, end in spans:
        if end > start:
            yield {
                "lane": one.name, "kind": kind, "start": fig.six(start), "end": fig.six(end),
                "text": f"{number(start, 's')} to {number(end, 's')}",
            }  # fmt: skip


def _pieces(one: _Answer) -> Iterator[dict[str, Any]]:
    for piece in one.talk.pieces:
        seconds = number(piece.to_s - piece.from_s, "s")
        yield {
            "lane": one.name, "kind": "piece of sound", "came": fig.six(piece.moment_s),
            "text": f"{number(piece.moment_s, 's')}: {seconds} of sound",
        }  # fmt: skip


def _lanes(rows: fig.Rows, lanes: Sequence[str]) -> dict[str, Any]:
    import altair as alt

    y = alt.Y("lane:N", title=None, sort=list(lanes), scale=alt.Scale(domain=list(lanes)),
              axis=alt.Axis(grid=True, ticks=False, domain=False, labelPadding=8))  # fmt: skip
    axis = alt.Axis(title="time since the text was due [s]", labelExpr="'' + datum.value", grid=False, tickCount=6)
    scale = alt.Scale(zero=True, nice=False, padding=8)
    seen = [kind for kind in _COLOURS if any(row["kind"] == kind for row in rows)]
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=seen, range=[_COLOURS[kind] for kind in seen]))
    base = alt.Chart().encode(y=y, tooltip=fig.tooltips({"lane": "system", "kind": "part", "text": "time"}))
    blocks = base.transform_filter("isValid(datum.end)").encode(
        x=alt.X("start:Q", axis=axis, scale=scale), x2="end:Q", color=colour
    )
    strokes = base.transform_filter("isValid(datum.came)").encode(x=alt.X("came:Q", axis=axis, scale=scale))
    chart = alt.layer(
        blocks.mark_rule(strokeWidth=10, opacity=0.9, yOffset=-4),
        strokes.mark_tick(thickness=1.5, size=9, yOffset=9),
    )
    return fig.drawn(chart, rows, _LANE_PX * len(lanes))


def _underrun(source: Source, groups: Groups) -> Iterator[fig.Figure]:
    """The mean sum of pauses of an answer, for each pre-buffer that could have been chosen."""
    names = live_names(groups)
    rows: fig.Rows = []
    for key, group in groups.items():
        talks = [talk for talk in first_round(source, groups, key).values() if is_streamed(talk.exchange)]
        for buffer_s in _BUFFERS if talks else ():
            sums = [sum(seconds for _, seconds in played(talk.pieces, buffer_s).pauses) for talk in talks]
            mean = sum(sums) / len(sums)
            rows.append({
                "line": names[key], "model": group[0].case.subject.name, "buffer": fig.six(buffer_s),
                "value": fig.six(mean), "text": number(mean, "s"),
            })  # fmt: skip
    if not rows:
        return
    without = [row for row in rows if row["value"] > 0]
    yield fig.Figure(
        title=headline(_enough(rows), "pauses of playback against the pre-buffer"),
        caption=fig.sentence(
            "sum of all pauses of an answer, if playback starts when this much sound has arrived; mean over the "
            "answers of the first round",
            "answers in one piece are left out",
        ),
        spec=_curves(rows, models_of(source.records)),
        columns=(("line", "system"), ("buffer", "pre-buffer [s]"), ("text", "pauses")),
        definitions=(metrics.UNDERRUN_TOTAL,),
        trivial=not without,
    )


def _enough(rows: fig.Rows) -> str:
    """The smallest pre-buffer with which no answer has a pause; empty where none of those that are drawn is enough."""
    with_pauses = {row["buffer"] for row in rows if row["value"] > 0}
    if not with_pauses:
        return "No answer has a pause"
    enough = next((one for one in _BUFFERS if one > max(with_pauses)), None)
    return "" if enough is None else f"With a pre-buffer of {number(enough, 's')} no answer has a pause"


def _curves(rows: fig.Rows, models: Sequence[str]) -> dict[str, Any]:
    import altair as alt

    lines = list(dict.fromkeys(row["line"] for row in rows))
    domain = by_line(models, {row["line"]: row["model"] for row in rows}) or lines
    legend = alt.Legend(title=None, values=lines) if len(lines) > 1 else None
    up = fig.unit_of(metrics.UNDERRUN_TOTAL, [row["value"] for row in rows], "pauses of an answer").axis([])
    across = alt.Axis(title="pre-buffer [s]", labelExpr="'' + datum.value", grid=False, tickCount=6)
    chart = alt.Chart().encode(
        x=alt.X("buffer:Q", axis=across),
        y=alt.Y("value:Q", axis=up, scale=alt.Scale(zero=True)),
        color=alt.Color("line:N", title=None, scale=alt.Scale(domain=domain), legend=legend),
        tooltip=fig.tooltips({"line": "system", "buffer": "pre-buffer [s]", "text": "pauses"}),
    )
    return fig.drawn(alt.layer(chart.mark_line(strokeWidth=1.8, point=True)), rows, _HEIGHT)


_KINDS: dict[str, Callable[[Source, Groups], Iterator[fig.Figure]]] = {
    "start": _start,
    "distribution": _distribution,
    "answer": _answer,
    "underrun": _underrun,
}
"""What may be behind `speech:`, in the order of the page. `report.views` lists the words."""
