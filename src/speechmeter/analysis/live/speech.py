"""Metrics of systems that speak: when sound comes, whether it stutters, how much there is, what is heard in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from speechmeter.analysis.live.alignment import align
from speechmeter.analysis.live.reading import MISSING, Reading, none, ratio, several, value
from speechmeter.analysis.live.sound import first_sound_s, is_streamed, played, prebuffer_needed_s, speech_level
from speechmeter.analysis.live.talk import Talk
from speechmeter.core import metrics
from speechmeter.core.live import CUT
from speechmeter.core.metrics import Metric

_NO_SOUND = "the system made no sound"
_SILENT = "nothing in the sound is audible"
_WHOLE = "not streamed: the sound came in one piece"
_PACED = "the text was fed bit by bit, so the time includes waiting for it; remove `text_pace`"
_SPOKEN_TO = "the system was given speech, not text"
_NO_END = "the end of speech is unknown; add it with: speechmeter data anchors"
_WAITS = "this system cannot end a turn by itself; use --turn-end oracle"
_NO_EAR = "the plan names no recogniser; add for example `heard_by: pocketsphinx`"
_UNINTERRUPTED = "the system was not interrupted: the plan has no `interrupt`, or the system cannot be interrupted"
_EARLY = "all sound came before the text was sent"
_NEW = "the text had not been sent before in this round"


def first_byte(talk: Talk) -> Reading:
    """Until the first sample."""
    since = asked_s(talk)
    if since is None:
        return none(unasked(talk))
    return value(talk.pieces[0].moment_s - since) if talk.pieces and not talk.exchange.error else MISSING


def first_sound(talk: Talk) -> Reading:
    """Until the first audible sample."""
    since, heard = asked_s(talk), onset_s(talk)
    if since is None:
        return none(unasked(talk))
    return MISSING if heard is None or talk.exchange.error else value(heard - since)


def first_sound_repeated(talk: Talk) -> Reading:
    """The same of texts that had been sent before."""
    return first_sound(talk) if talk.is_repeated else none(_NEW)


def repeated_texts(talk: Talk) -> Reading:
    """Whether the text had been sent before in this round."""
    return none(_SPOKEN_TO) if talk.exchange.text is None else ratio(float(talk.is_repeated), 1, scale=100)


def leading_silence(talk: Talk) -> Reading:
    """The position of the onset."""
    return none(_unheard(talk)) if talk.speech_span is None else value(talk.speech_span[0])


def trailing_silence(talk: Talk) -> Reading:
    """From the end of speech in the sound to its end."""
    sound = talk.exchange.sound
    return (
        none(_unheard(talk))
        if talk.speech_span is None or sound is None
        else value(sound.seconds - talk.speech_span[1])
    )


def sound_gap(talk: Talk) -> Reading:
    """Times between the arrivals of pieces."""
    if not _streams(talk):
        return none(_unstreamed(talk))
    return several([late.moment_s - one.moment_s for one, late in itertools.pairwise(talk.pieces)])


def underrun_longest(talk: Talk) -> Reading:
    """The longest pause of playback."""
    return value(max(_pauses(talk), default=0.0)) if _streams(talk) else none(_unstreamed(talk))


def underrun_total(talk: Talk) -> Reading:
    """All pauses of playback together."""
    return value(sum(_pauses(talk))) if _streams(talk) else none(_unstreamed(talk))


def underrun_count(talk: Talk) -> Reading:
    """How many pauses of playback there are."""
    return ratio(float(len(_pauses(talk))), 1) if _streams(talk) else none(_unstreamed(talk))


def prebuffer_needed(talk: Talk) -> Reading:
    """By how much playback would have to start later."""
    return value(prebuffer_needed_s(talk.pieces)) if _streams(talk) else none(_unstreamed(talk))


def speech_rtf(talk: Talk) -> Reading:
    """Time to the last sample / seconds of sound."""
    return _per_work(talk, lambda seconds: (seconds, talk.made_s))


def speech_characters(talk: Talk) -> Reading:
    """Characters / time to the last sample."""
    return _per_work(talk, lambda seconds: (float(len(talk.exchange.text or "")), seconds))


def speech_words(talk: Talk) -> Reading:
    """Words / time to the last sample."""
    return _per_work(talk, lambda seconds: (float(len((talk.exchange.text or "").split())), seconds))


def sound_made(talk: Talk) -> Reading:
    """Seconds of sound."""
    return ratio(talk.made_s, 1)


def speaking_rate(talk: Talk) -> Reading:
    """Words / seconds of speech in the sound."""
    if talk.exchange.text is None:
        return none(_SPOKEN_TO)
    if talk.speech_span is None:
        return none(_unheard(talk))
    return ratio(float(len(talk.exchange.text.split())), talk.speech_span[1] - talk.speech_span[0])


def sound_level(talk: Talk) -> Reading:
    """The level of the speech."""
    level = None if talk.exchange.sound is None else speech_level(talk.exchange.sound)
    return none(_unheard(talk)) if level is None else value(level)


def clipping(talk: Talk) -> Reading:
    """The share of samples at full scale."""
    sound = talk.exchange.sound
    return none(_NO_SOUND) if sound is None else value(100 * sound.clipped / sound.samples)


def round_trip_wer(talk: Talk) -> Reading:
    """Word errors of what the recogniser heard."""
    if not talk.conditions.heard_by:
        return none(_NO_EAR)
    if talk.exchange.text is None:
        return none(_SPOKEN_TO)
    if talk.exchange.heard is None and talk.exchange.sound is not None and not talk.exchange.error:
        return none(f"{talk.conditions.heard_by} could not transcribe the sound")
    wanted = talk.split(talk.exchange.text)
    heard = () if talk.exchange.error else talk.split(talk.exchange.heard or "")
    return ratio(align(wanted, heard).errors, len(wanted), scale=100)


def barge_in_stop(talk: Talk) -> Reading:
    """From the interruption to the end of the sound."""
    if not talk.conditions.interrupts:
        return none(_UNINTERRUPTED)
    start = talk.exchange.interrupt_s
    if start is None or not talk.pieces:
        return none("the conversation ended before it was interrupted")
    dropped = [event.moment_s for event in talk.exchange.of_kind("closed") if event.notes.get(CUT)]
    ends = min([played(talk.pieces, talk.conditions.prebuffer_s).ends_s, *dropped])
    return value(ends - start) if ends >= start else none("the sound ended before it was interrupted")


def asked_s(talk: Talk) -> float | None:
    """When the answer was due to begin: with the text, or at the end of the user's speech.

    None where that is unknown, and for a system that should end the turn but cannot.
    """
    if talk.conditions.reads:
        return 0.0
    if _waits(talk):
        return None
    end_s = talk.exchange.anchors.speech_end_s
    return None if end_s is None else talk.spoken(end_s)


def unasked(talk: Talk) -> str:
    """Why there is no such moment."""
    return _WAITS if _waits(talk) else _NO_END


def _waits(talk: Talk) -> bool:
    return talk.conditions.turn_end == "system" and not talk.conditions.endpoints


def onset_s(talk: Talk) -> float | None:
    """When the first audible sample is heard; None without one."""
    return first_sound_s(talk.pieces, talk.speech_span[0]) if talk.pieces and talk.speech_span is not None else None


def _streams(talk: Talk) -> bool:
    return is_streamed(talk.exchange)


def _pauses(talk: Talk) -> Sequence[float]:
    return [seconds for _, seconds in played(talk.pieces, talk.conditions.prebuffer_s).pauses]


def _unheard(talk: Talk) -> str:
    return _NO_SOUND if talk.exchange.sound is None else _SILENT


def _unstreamed(talk: Talk) -> str:
    return _WHOLE if talk.pieces else _NO_SOUND


def _per_work(talk: Talk, parts: Callable[[float], tuple[float, float]]) -> Reading:
    if not talk.conditions.reads:
        return none(_SPOKEN_TO)
    if talk.conditions.text_pace is not None:
        return none(_PACED)
    if not talk.pieces or talk.exchange.error:
        return none("the conversation failed" if talk.exchange.error else _NO_SOUND)
    last_s = talk.pieces[-1].moment_s
    return ratio(*parts(last_s)) if last_s > 0 else none(_EARLY)


READERS: Mapping[Metric, Callable[[Talk], Reading]] = {
    metrics.FIRST_BYTE: first_byte,
    metrics.FIRST_SOUND: first_sound,
    metrics.FIRST_SOUND_REPEATED: first_sound_repeated,
    metrics.REPEATED_TEXTS: repeated_texts,
    metrics.LEADING_SILENCE: leading_silence,
    metrics.TRAILING_SILENCE: trailing_silence,
    metrics.SOUND_GAP: sound_gap,
    metrics.UNDERRUN_LONGEST: underrun_longest,
    metrics.UNDERRUN_TOTAL: underrun_total,
    metrics.UNDERRUN_COUNT: underrun_count,
    metrics.PREBUFFER_NEEDED: prebuffer_needed,
    metrics.SPEECH_RTF: speech_rtf,
    metrics.SPEECH_CHARACTERS: speech_characters,
    metrics.SPEECH_WORDS: speech_words,
    metrics.SOUND_MADE: sound_made,
    metrics.SPEAKING_RATE: speaking_rate,
    metrics.SOUND_LEVEL: sound_level,
    metrics.CLIPPING: clipping,
    metrics.ROUND_TRIP_WER: round_trip_wer,
    metrics.BARGE_IN_STOP: barge_in_stop,
}
"""How each metric of a system that speaks is read off one conversation, in the order in which they are stored."""
