"""The metrics of systems that speak against a simulated voice, on the virtual clock: all of them, by arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from speechmeter.analysis.live import measurements
from speechmeter.analysis.live.measure import SPEECH_READERS
from speechmeter.api.finding import Finding
from speechmeter.api.selftest_live import SPOKEN, equal, five_words, held_round, recogniser
from speechmeter.core import metrics
from speechmeter.core.live import Conditions
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Measurement
from speechmeter.engine.live.utterance import spoken_text
from speechmeter.subjects.known_voice import VoiceScript, known_voice
from speechmeter.subjects.live.relay import relayed

_COLD, _TEXT, _HEARD = "A warm-up.", "sixteen letters.", "sixteen ladders"
_VOICE = VoiceScript(leading_s=0.25, gaps=((1.0, 2.0),), cached_s=0.125, stop_s=0.1875)
"""A second of speech behind 0.25 s of silence, in five pieces from 0.25 s on; the last one is two seconds late."""
_LAST_S, _LAST_CACHED_S = 2.5, 2.375
_ANSWERING = VoiceScript(first_s=0.125, leading_s=0.5)
TRUTHS: Mapping[Metric, tuple[float, ...]] = {
    metrics.FIRST_BYTE: (0.25, 0.125),  # the second text is the first again, which comes from a cache
    metrics.FIRST_SOUND: (0.5, 0.375),
    metrics.FIRST_SOUND_REPEATED: (0.375,),
    metrics.REPEATED_TEXTS: (0.0, 100.0),
    metrics.LEADING_SILENCE: (0.25, 0.25),
    metrics.TRAILING_SILENCE: (0.0, 0.0),
    metrics.SOUND_GAP: (0.0625, 0.0625, 0.0625, 2.0625) * 2,
    metrics.UNDERRUN_LONGEST: (1.25, 1.25),  # a second of sound is played from 0.25 s on; the rest comes at 2.5 s
    metrics.UNDERRUN_TOTAL: (1.25, 1.25),
    metrics.UNDERRUN_COUNT: (1.0, 1.0),
    metrics.PREBUFFER_NEEDED: (1.25, 1.25),
    metrics.SPEECH_RTF: (_LAST_S / 1.25, _LAST_CACHED_S / 1.25),
    metrics.SPEECH_CHARACTERS: (16 / _LAST_S, 16 / _LAST_CACHED_S),
    metrics.SPEECH_WORDS: (2 / _LAST_S, 2 / _LAST_CACHED_S),
    metrics.SOUND_MADE: (1.25, 1.25),
    metrics.SPEAKING_RATE: (2.0, 2.0),
    metrics.SOUND_LEVEL: (-9.03, -9.03),  # a tone with an amplitude of 0.5
    metrics.CLIPPING: (0.0, 0.0),
    metrics.ROUND_TRIP_WER: (50.0, 50.0),
    metrics.BARGE_IN_STOP: (0.1875,),
    metrics.VOICE_TO_VOICE: (1.8125,),
    metrics.VOICE_RECOGNITION: (1.1875,),  # as in the selftest of live text
    metrics.VOICE_THINKING: (0.0,),
    metrics.VOICE_SYNTHESIS: (0.125,),
    metrics.VOICE_ONSET: (0.5,),
}
"""What each metric must read, by arithmetic alone."""


def speech_finding() -> Finding:
    """All metrics of systems that speak."""
    spoken_to = _answered()
    found = {**spoken_to, **_spoken(), metrics.BARGE_IN_STOP.id: _interrupted()}
    wrong = [metric.name for metric in SPEECH_READERS if not equal(found[metric.id].values, TRUTHS[metric])]
    return Finding(
        meter="live",
        what="metrics of a simulated voice, in simulated time",
        unit="1",
        truth=float(len(SPEECH_READERS)),
        tolerance=0,
        reading=float(len(SPEECH_READERS) - len(wrong)),
        trouble=f"wrong: {', '.join(wrong)}" if wrong else "",
    )


def _spoken() -> dict[str, Measurement]:
    """One text twice, after a warm-up with another one."""
    said = [spoken_text(text, str(place)) for place, text in enumerate((_COLD, _TEXT, _TEXT))]
    exchanges, _ = held_round(said, known_voice(_VOICE), turns=2, pace="fast", warmup_turns=1)
    conditions = Conditions(
        pace="fast", chunk_s=0.1, turn_end="system", quiet_s=3.0, texts=False, speaks=True, reads=True, heard_by="ear"
    )
    heard = [replace(one, heard=_HEARD) for one in exchanges]
    return {one.metric: one for one in measurements(heard, conditions)}


def _interrupted() -> Measurement:
    """A text that is interrupted while a second of its sound is being played."""
    said = [spoken_text(_TEXT, "0")]
    exchanges, _ = held_round(said, known_voice(_VOICE), pace="fast", interrupt_s=0.25)
    conditions = Conditions(
        pace="fast", chunk_s=0.1, turn_end="system", quiet_s=3.0, texts=False, speaks=True, reads=True, interrupts=True
    )
    found = {one.metric: one for one in measurements(exchanges, conditions)}
    return found[metrics.BARGE_IN_STOP.id]


def _answered() -> dict[str, Measurement]:
    """The utterance of the selftest of live text, answered by a voice."""
    live = relayed(recogniser([five_words()], SPOKEN), [], known_voice(_ANSWERING))
    exchanges, _ = held_round([five_words()], live)
    conditions = Conditions(pace="realtime", chunk_s=0.25, turn_end="system", quiet_s=3.0, endpoints=True, speaks=True)
    return {one.metric: one for one in measurements(exchanges, conditions)}
