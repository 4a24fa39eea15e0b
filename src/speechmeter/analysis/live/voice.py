"""A system that is spoken to and answers with speech: how long its answer takes, part by part."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from speechmeter.analysis.live.reading import MISSING, Reading, none, value
from speechmeter.analysis.live.speech import asked_s, first_sound, onset_s, unasked
from speechmeter.analysis.live.talk import Talk
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric


def voice_to_voice(talk: Talk) -> Reading:
    """From the end of speech to the first audible sample."""
    return first_sound(talk)


def voice_recognition(talk: Talk) -> Reading:
    """From the end of speech to the final text."""
    return _part(talk, 0)


def voice_thinking(talk: Talk) -> Reading:
    """From the final text to that of the answer."""
    return _part(talk, 1)


def voice_synthesis(talk: Talk) -> Reading:
    """From the text of the answer to the first sample."""
    return _part(talk, 2)


def voice_onset(talk: Talk) -> Reading:
    """From the first sample to the first audible one."""
    return _part(talk, 3)


def voice_moments(talk: Talk) -> tuple[float | None, ...]:
    """End of speech, final text, text of the answer, first sample, first audible sample; None for what is not known.

    The answer is the first text that was given to the synthesiser, its final text the last one before it.
    """
    exchange = talk.exchange
    answer = min((event.moment_s for event in exchange.of_kind("text")), default=None)
    finals = [event.moment_s for event in exchange.of_kind("final") if answer is not None and event.moment_s <= answer]
    first = talk.pieces[0].moment_s if talk.pieces else None
    return asked_s(talk), max(finals, default=answer), answer, first, onset_s(talk)


def _part(talk: Talk, number: int) -> Reading:
    """From one moment to the next; from the last one that is known, where a system reports no texts."""
    moments = voice_moments(talk)
    if moments[0] is None:
        return none(unasked(talk))
    if moments[4] is None or talk.exchange.error:
        return MISSING
    before, after = [one for one in moments[: number + 1] if one is not None][-1], moments[number + 1]
    return none("the system does not report its texts") if after is None else value(after - before)


READERS: Mapping[Metric, Callable[[Talk], Reading]] = {
    metrics.VOICE_TO_VOICE: voice_to_voice,
    metrics.VOICE_RECOGNITION: voice_recognition,
    metrics.VOICE_THINKING: voice_thinking,
    metrics.VOICE_SYNTHESIS: voice_synthesis,
    metrics.VOICE_ONSET: voice_onset,
}
"""How each of them is read off one conversation. The parts add up to the first, because each begins where one ends."""
