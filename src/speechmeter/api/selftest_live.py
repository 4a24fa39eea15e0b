"""The live metrics against a simulated recogniser: exact on the virtual clock, and what this host adds in real time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from speechmeter.analysis.live import measurements
from speechmeter.analysis.live.measure import READERS
from speechmeter.api.finding import Finding
from speechmeter.core import metrics
from speechmeter.core.live import Anchors, Clock, Conditions, Exchange, Live, Pace, Word
from speechmeter.core.metrics import Metric
from speechmeter.core.protocol import CONSTANT, LiveProtocol
from speechmeter.engine.live.client import ClientWatch, percentile
from speechmeter.engine.live.clock import run
from speechmeter.engine.live.conversation import Manner
from speechmeter.engine.live.round import Round, Script
from speechmeter.engine.live.utterance import RATE, Utterance
from speechmeter.subjects.known_conversation import Script as Behaviour
from speechmeter.subjects.known_conversation import Spoken
from speechmeter.subjects.known_live import known_live

_CHUNK_S = 0.25
_LEAK = 0.03125
_STREAM_S = 64
_EXACT = 1e-9
"""Moments are stored in whole nanoseconds."""
_REAL_TURNS, _REAL_CHUNK_S, _REAL_FINAL_S = 2, 0.02, 0.25
_STAMP_S, _SLIP_S = 2e-3, 2e-3
"""What stamping a final may add on a quiet machine, and how late sends may be."""
_PROTOCOL = LiveProtocol(
    turn_end="system", turn_delay_s=0.0, turn_vad="", silence_s=1.0, quiet_s=3.0, timeout_s=30.0, phase="aligned",
    turns=None, duration_s=None, warmup_turns=0,
)  # fmt: skip
SPOKEN = Behaviour(
    delay_s=0.125, unstable_words=1, lose_word=5, endpoint_s=0.5, final_s=0.5, service_s=0.0625, spans=False
)
"""A chunk takes 62.5 ms, and text comes 125 ms later. Heard are words 1 to 4 of 5; the last word of a partial is wrong.
The final comes half a second after the chunk that completes half a second of silence.
"""
TRUTHS: Mapping[Metric, tuple[float, ...]] = {
    metrics.LIVE_COMPLETENESS: (100.0,),
    metrics.FIRST_PARTIAL_FROM_SEND: (0.9375,),  # word 1 ends at 1.0 s, and is shown at 1.1875 s
    metrics.FIRST_PARTIAL_FROM_ONSET: (0.6875,),
    metrics.FIRST_PARTIAL_SERVICE: (0.9375,),
    metrics.EARLY_TEXT: (0.0,),
    metrics.FINAL_DELAY: (1.1875,),  # speech ends at 2.875 s; the final is due at 3.5 + 0.0625 + 0.5
    metrics.FINALIZE_DELAY: (-0.9375,),  # finish is due at 5 s
    metrics.FINALIZE_SERVICE: (-0.9375,),
    metrics.ENDPOINT_DELAY: (0.8125,),
    metrics.EARLY_ENDPOINT: (0.0,),
    metrics.REQUEST_LATENCY: (1.375,),  # all is sent at once; 14 chunks × 0.0625 + 0.5
    metrics.FIRST_TOKEN: (0.375,),  # 4 chunks × 0.0625 + 0.125
    metrics.OPEN_DELAY: (0.0,),
    metrics.CLIENT_QUEUE: (0.0,),
    metrics.CHUNK_WAIT: (0.125,),
    metrics.WORD_LAG: (0.6875, 0.6875, 0.6875, 1.5625),  # a word is right when the next one is shown, or in the final
    metrics.WORD_LAG_FIRST: (0.6875, 0.6875, 0.6875, 1.5625),
    metrics.WORD_COVERAGE: (80.0,),
    metrics.PARTIAL_CHURN: (1.0,),  # each of 4 partials has one word that changes
    metrics.PARTIAL_CHURN_RAW: (1.0,),
    metrics.PARTIAL_CHURN_LENIENT: (1.0,),
    metrics.PARTIAL_REVISIONS: (4.0,),
    metrics.PARTIAL_GAP: (0.5, 0.5, 0.5, 1.375),
    metrics.TAIL_LOSS: (20.0,),
    metrics.MUTE_LONGEST: (0.6875,),  # from the onset at 0.5 s to the first text
    metrics.LAAL: ((1.6875 + 2.1875 + 2.6875 + 4.0625 - 0.8 * (0 + 1 + 2 + 3)) / 4,),  # 4 s / 5 words
    metrics.KEEP_UP: (_LEAK,),
    metrics.BACKLOG: (1.0,),  # two words of 0.5 s have ended before the first of them is stable
    metrics.LIVE_WER: (20.0,),
    metrics.LIVE_RTF: (0.25,),
    metrics.TTFS_PIPECAT: (1.1875,),
    metrics.TTFT_VLLM: (0.9375,),
}
"""What each metric must read, by arithmetic alone."""
_OF_REQUESTS = (metrics.REQUEST_LATENCY, metrics.FIRST_TOKEN, metrics.CLIENT_QUEUE)
"""Read where the same utterance is sent as fast as possible."""


def live_findings() -> list[Finding]:
    """All metrics on the virtual clock; then stamping and pacing in real time, which takes some ten seconds."""
    return [_exact_finding(), *_real_findings()]


def _exact_finding() -> Finding:
    exchanges, _ = _held([five_words()], SPOKEN)
    stream = _stream()
    along, _ = _held([stream], Behaviour(leak=_LEAK, segment_words=1))
    found = {one.metric: one for one in measurements(exchanges, _conditions())}
    slope = {one.metric: one for one in measurements(along, _conditions())}
    found[metrics.KEEP_UP.id] = slope[metrics.KEEP_UP.id]
    at_once, _ = _held([five_words()], SPOKEN, pace="fast")
    requests = {
        one.metric: one for one in measurements(at_once, replace(_conditions(), pace="fast", arrivals=CONSTANT))
    }
    found |= {metric.id: requests[metric.id] for metric in _OF_REQUESTS}
    wrong = [metric.name for metric in READERS if not equal(found[metric.id].values, TRUTHS[metric])]
    return Finding(
        meter="live",
        what="live metrics of a simulated recogniser, in simulated time",
        unit="1",
        truth=float(len(READERS)),
        tolerance=0,
        reading=float(len(READERS) - len(wrong)),
        trouble=f"wrong: {', '.join(wrong)}" if wrong else "",
    )


def _real_findings() -> list[Finding]:
    """Measured at once: a final whose delay is known, and how late the chunks before it were sent."""
    behaviour = Behaviour(final_s=_REAL_FINAL_S)
    exchanges, watch = _held([five_words()], behaviour, virtual=False, turns=_REAL_TURNS, chunk_s=_REAL_CHUNK_S)
    found = {one.metric: one for one in measurements(exchanges, _conditions())}
    busy = "this machine was busy: close other programs before you measure live"
    late_s = percentile(watch.late_s, 99)
    findings = [
        Finding(
            meter="live", what=(
                "final delay of a simulated recogniser that sends its text after 250 ms"
            ), unit="s", truth=_REAL_FINAL_S,
            tolerance=_STAMP_S + late_s, reading=median(found[metrics.FINALIZE_DELAY.id].values), of_host=True,
        ),
        Finding(
            meter="live", what=(
                "how late the client sends chunks of 20 ms (99th percentile)"
            ), unit="s", truth=0.0, tolerance=_SLIP_S,
            reading=late_s, of_host=True,
        ),
    ]  # fmt: skip
    return [replace(one, trouble=busy) if one.state == "warning" else one for one in findings]


def _held(
    said: Sequence[Utterance],
    behaviour: Behaviour,
    *,
    virtual: bool = True,
    turns: int = 1,
    chunk_s: float = _CHUNK_S,
    pace: Pace = "realtime",
) -> tuple[list[Exchange], ClientWatch]:
    live = recogniser(said, behaviour, virtual=virtual)
    return held_round(said, live, turns=turns, chunk_s=chunk_s, pace=pace)


def recogniser(said: Sequence[Utterance], behaviour: Behaviour, *, virtual: bool = True) -> Live:
    """The simulated recogniser that knows these utterances."""
    spoken = [
        Spoken(name=one.name, pcm=one.pcm, words=one.anchors.words, speech_end_s=one.anchors.speech_end_s or 0.0)
        for one in said
    ]
    return known_live(behaviour, spoken, virtual=virtual)


def held_round(
    said: Sequence[Utterance],
    live: Live,
    *,
    turns: int = 1,
    chunk_s: float = _CHUNK_S,
    pace: Pace = "realtime",
    warmup_turns: int = 0,
    interrupt_s: float | None = None,
) -> tuple[list[Exchange], ClientWatch]:
    """A round of these utterances with a simulated system."""
    protocol = replace(_PROTOCOL, turns=turns, silence_s=1.0 if live.virtual else 0.0, interrupt_s=interrupt_s)
    manner = Manner(live=live, protocol=protocol, pace=pace, chunk_s=chunk_s)
    script, _ = Script.of_all(said, warmup_turns=warmup_turns, streams=1, seed="0")
    exchanges: list[Exchange] = []

    async def work(clock: Clock) -> Round:
        here = Round(script=script, manner=manner, clock=clock, take=exchanges.append)
        await here.warm()
        await here.hold()
        return here

    return exchanges, run(work, virtual=live.virtual).watch


def _conditions() -> Conditions:
    return Conditions(pace="realtime", chunk_s=_CHUNK_S, turn_end="system", quiet_s=3.0, endpoints=True)


def _utterance(name: str, audio_s: float, words: Sequence[Word]) -> Utterance:
    """A tone that is different for each length: the simulated recogniser knows it by its samples."""
    import numpy as np

    anchors = Anchors(
        speech_start_s=words[0].start_s, speech_end_s=words[-1].end_s, words=tuple(words), source="by construction"
    )
    pcm = np.sin(np.arange(round(audio_s * RATE)) / audio_s).astype(np.float32)
    return Utterance(name=name, pcm=pcm, anchors=anchors, reference=" ".join(word.text for word in words))


def five_words() -> Utterance:
    """Five words from 0.5 s to 2.875 s, in 4 s."""
    texts = ("one", "two", "three", "four", "five")
    ends = (1.0, 1.5, 2.0, 2.5, 2.875)
    starts = (0.5, *ends[:-1])
    return _utterance("five", 4.0, [
        Word(text=text, start_s=start, end_s=end) for text, start, end in zip(texts, starts, ends, strict=True)
    ])  # fmt: skip


def _stream() -> Utterance:
    """A word every second for more than a minute."""
    words = [Word(text=f"word{place}", start_s=place - 0.5, end_s=float(place)) for place in range(1, _STREAM_S)]
    return _utterance("stream", float(_STREAM_S), words)


def equal(values: Sequence[float], truth: Sequence[float]) -> bool:
    """Whether values are what they must be, up to rounding."""
    return len(values) == len(truth) and all(
        math.isclose(value, true, abs_tol=_EXACT) for value, true in zip(values, truth, strict=True)
    )
