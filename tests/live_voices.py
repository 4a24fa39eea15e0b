"""Simulated voices on the virtual clock: what tests of speech that systems make start from. Times are powers of 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from live_rounds import held

from speechmeter.analysis.live import measurements
from speechmeter.core.live import Conditions, Exchange
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Measurement
from speechmeter.engine.live.utterance import Utterance, spoken_text
from speechmeter.subjects.known_voice import VoiceScript, known_voice

TEXT = "sixteen letters."
"""A second of sound: 16 characters of 62.5 ms."""


def texts(*said: str, text_pace: float | None = None) -> list[Utterance]:
    return [spoken_text(text, f"text-{place}", text_pace) for place, text in enumerate(said)]


def spoken(
    *said: str, text_pace: float | None = None, round_: dict[str, Any] | None = None, **script: Any
) -> Sequence[Exchange]:
    """What the simulated voice of this script answers to these texts."""
    live = known_voice(VoiceScript(**script))
    pace = "fast" if text_pace is None else "realtime"
    return held(live, texts(*(said or (TEXT,)), text_pace=text_pace), **{"pace": pace, **(round_ or {})}).exchanges


def conditions(**more: Any) -> Conditions:
    usual: dict[str, Any] = {
        "pace": "fast", "chunk_s": 0.1, "turn_end": "system", "quiet_s": 3.0, "speaks": True, "texts": False,
        "reads": True,
    }  # fmt: skip
    return Conditions(**{**usual, **more})


def measured(metric: Metric, exchanges: Sequence[Exchange], **more: Any) -> Measurement:
    return next(one for one in measurements(exchanges, conditions(**more)) if one.metric == metric.id)


def values(metric: Metric, exchanges: Sequence[Exchange], **more: Any) -> tuple[float, ...]:
    return measured(metric, exchanges, **more).values
