"""How far the text is behind the speech, over time: the backlog, and whether its delay grows along a stream."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Literal

from speechmeter.analysis.live.reading import MISSING, Reading, none, value
from speechmeter.analysis.live.talk import Talk

STREAM_S = 60.0
"""Shorter streams have no slope."""
SETTLED_S = 10.0
"""The slope is that of positions after this, when the system has warmed up."""
_NO_COVER = (
    "the words have no times, so it is unknown which audio a text covers; add them with: speechmeter data anchors"
)
_NOT_PACED = "the audio was not fed in real time; use --pace realtime"
Source = Literal["finals", "words", ""]
Point = tuple[float, float]


def covered(talk: Talk) -> tuple[Source, list[Point]]:
    """(moment, position up to which text covers the audio) in order: what finals say, else the ends of stable words."""
    finals = _stated(talk)
    if finals:
        return "finals", finals
    found = _stable(talk)
    return ("words" if found else ""), found


def _stated(talk: Talk) -> list[Point]:
    return [(event.moment_s, event.end_s) for event in talk.events if event.kind == "final" and event.end_s]


def _stable(talk: Talk) -> list[Point]:
    words = talk.timed_words
    return sorted((talk.held[index].stable_s, words[word][2]) for word, index in talk.alignment.pairs)


def keep_up(talk: Talk) -> Reading:
    """The slope of the delay against the position, in seconds per second."""
    if talk.exchange.audio_s < STREAM_S:
        return none("the stream is shorter than 60 s; join utterances with: speechmeter data join")
    if talk.conditions.pace != "realtime":
        return none(_NOT_PACED)
    source, points = covered(talk)
    late = [(position, moment - position) for moment, position in points if position >= SETTLED_S]
    if not source:
        return none(_NO_COVER)
    if len({position for position, _ in late}) < 2:
        return none("the system sent fewer than two texts after the first 10 s")
    return value(slope(late))


def slope(points: Sequence[Point]) -> float:
    """Of a straight line through points with at least two different x, by least squares."""
    x_mean, y_mean = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    below = sum((x - x_mean) ** 2 for x, _ in points)
    above = sum((x - x_mean) * (y - y_mean) for x, y in points)
    return float(above / below)


def backlog(talk: Talk) -> Reading:
    """The most speech that was due and that text did not cover."""
    if talk.conditions.pace != "realtime":
        return none(_NOT_PACED)
    if talk.exchange.error and not talk.shown:
        return MISSING  # all speech would be a small backlog of a short utterance
    curve = over_time(talk)
    return value(max(behind for _, behind in curve)) if curve else none(_NO_COVER)


def over_time(talk: Talk) -> list[Point]:
    """(moment, seconds of speech behind) at each moment at which it changes, before and after; empty where unknown.

    Speech is what words fill, so that neither pauses nor silence before them are behind; a word is due when it ends.
    Without times of words it is the audio from the start to the end of speech.
    """
    points = _covering(talk)
    if not points and not talk.timed_words:
        return []
    spans = _speech(talk)
    spoken = _spoken_until(spans)
    ends = sorted({end for _, _, end in talk.timed_words})
    start, last = spans[0][0], spans[-1][1]
    moments = sorted({0.0, start, last, max(talk.exchange.ended_s, last), *ends, *(moment for moment, _ in points)})
    curve: list[Point] = []
    due = seen = 0.0
    word = text = 0

    def behind(moment: float) -> float:
        return max(0.0, spoken(due if ends else moment) - spoken(seen))  # 0 where the text is ahead of the speech

    for moment in moments:
        curve.append((moment, behind(moment)))  # before what happens at this moment
        while word < len(ends) and ends[word] <= moment:
            due, word = ends[word], word + 1
        while text < len(points) and points[text][0] <= moment:
            seen, text = max(seen, points[text][1]), text + 1
        curve.append((moment, behind(moment)))
    return [point for index, point in enumerate(curve) if index == 0 or point != curve[index - 1]]


def _covering(talk: Talk) -> list[Point]:
    """(moment, position that text covers from then on): by what finals state, and by words that stay.

    Both count, so that a system does not look worse for what it states.
    """
    return sorted({*_stated(talk), *_stable(talk)})


def _speech(talk: Talk) -> list[Point]:
    """(start, end) of each stretch of speech, in order, none inside another."""
    if not talk.timed_words:
        anchors = talk.exchange.anchors
        end = talk.exchange.audio_s if anchors.speech_end_s is None else anchors.speech_end_s
        return [(min(anchors.speech_start_s or 0.0, end), end)]
    spans: list[Point] = []
    for start, end in sorted({(start, end) for _, start, end in talk.timed_words}):
        before = spans[-1][1] if spans else 0.0
        spans.append((max(start, before), max(end, before)))
    return spans


def _spoken_until(spans: Sequence[Point]) -> Callable[[float], float]:
    """From a position to the seconds of speech before it."""
    starts = [start for start, _ in spans]
    before = [0.0, *accumulate(end - start for start, end in spans)]

    def spoken(position_s: float) -> float:
        at = bisect_right(starts, position_s)
        return before[at - 1] + min(position_s, spans[at - 1][1]) - starts[at - 1] if at else 0.0

    return spoken
