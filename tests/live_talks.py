"""Conversations whose figures are known by construction. Times are sums of powers of 2, so that they are exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.analysis.live import measurements
from speechmeter.core.live import Anchors, Conditions, Event, Exchange, Send, Word
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Measurement

WORDS = (("one", 0.5, 0.75), ("two", 1.0, 1.25), ("three", 1.5, 1.875))
CHUNK_S = 0.25


def partial(moment_s: float, text: str, segment: int = 0) -> Event:
    return Event(kind="partial", moment_s=moment_s, text=text, segment=segment)


def final(moment_s: float, text: str, segment: int = 0, end_s: float | None = None) -> Event:
    return Event(kind="final", moment_s=moment_s, text=text, segment=segment, end_s=end_s)


def endpoint(moment_s: float) -> Event:
    return Event(kind="endpoint", moment_s=moment_s)


EVENTS = (
    partial(1.0, "one"), partial(1.5, "one too"), partial(1.75, "one two"), partial(2.0, "one two tree"),
    final(2.5, "One two three."),
)  # fmt: skip
"""What the usual conversation answers."""


def anchors(words: Sequence[tuple[str, float, float]] = WORDS, *, speech: tuple[float, float] | None = None) -> Anchors:
    start, end = speech if speech is not None else (words[0][1], words[-1][2]) if words else (None, None)
    timed = tuple(Word(text=text, start_s=since, end_s=until) for text, since, until in words)
    return Anchors(speech_start_s=start, speech_end_s=end, words=timed, source="by construction")


def sends(fed_s: float, *, late_s: float = 0.0) -> tuple[Send, ...]:
    dues = [(place + 1) * CHUNK_S for place in range(round(fed_s / CHUNK_S))]
    return tuple(
        Send(due_s=due, sent_s=due + late_s, done_s=due + late_s, from_s=due - CHUNK_S, to_s=due) for due in dues
    )


def talk(*events: Event, **more: Any) -> Exchange:
    """A conversation of 2.25 s and a second of silence; the words of `WORDS` unless others are given."""
    usual: dict[str, Any] = {
        "utterance": "u", "reference": "one two three", "anchors": anchors(), "audio_s": 2.25, "silence_s": 1.0,
        "sends": sends(3.25), "finish_s": 2.0, "finished_s": 2.125, "events": events or EVENTS, "ended_s": 5.5,
        "timeout_s": 30.0,
    }  # fmt: skip
    return Exchange(**{**usual, **more})


def conditions(**more: Any) -> Conditions:
    usual: dict[str, Any] = {"pace": "realtime", "chunk_s": CHUNK_S, "turn_end": "oracle", "quiet_s": 3.0}
    return Conditions(**{**usual, **more})


def measured(metric: Metric, *exchanges: Exchange, **more: Any) -> Measurement:
    """The measurement of a metric over these conversations, under these conditions."""
    found = measurements(exchanges, conditions(**more))
    return next(one for one in found if one.metric == metric.id)


def values(metric: Metric, *exchanges: Exchange, **more: Any) -> tuple[float, ...]:
    return measured(metric, *exchanges, **more).values
