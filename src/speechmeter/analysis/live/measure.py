"""All live metrics of the conversations of one case and round, as measurements for its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from speechmeter.analysis.live import backlog, delays, speech, voice, words
from speechmeter.analysis.live.reading import MISSING as LOST
from speechmeter.analysis.live.reading import Reading, none
from speechmeter.analysis.live.talk import Talk, cold, talks
from speechmeter.analysis.live.throughput import throughput
from speechmeter.core import metrics
from speechmeter.core.live import TIMEOUT as ERROR_OF_TIME
from speechmeter.core.live import Conditions, Exchange
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import SPEAKERS, UTTERANCES
from speechmeter.core.slo import DELAYS
from speechmeter.core.types import Measurement

Read = Callable[[Talk], Reading]
READERS: Mapping[Metric, Read] = {
    metrics.LIVE_COMPLETENESS: words.live_completeness,
    metrics.FIRST_PARTIAL_FROM_SEND: delays.first_partial_from_send,
    metrics.FIRST_PARTIAL_FROM_ONSET: delays.first_partial_from_onset,
    metrics.FIRST_PARTIAL_SERVICE: delays.first_partial_service,
    metrics.EARLY_TEXT: delays.early_text,
    metrics.FINAL_DELAY: delays.final_delay,
    metrics.FINALIZE_DELAY: delays.finalize_delay,
    metrics.FINALIZE_SERVICE: delays.finalize_service,
    metrics.REQUEST_LATENCY: delays.request_latency,
    metrics.FIRST_TOKEN: delays.first_token,
    metrics.OPEN_DELAY: delays.open_delay,
    metrics.CLIENT_QUEUE: delays.client_queue,
    metrics.ENDPOINT_DELAY: delays.endpoint_delay,
    metrics.EARLY_ENDPOINT: delays.early_endpoint,
    metrics.CHUNK_WAIT: delays.chunk_wait,
    metrics.WORD_LAG: words.word_lag,
    metrics.WORD_LAG_FIRST: words.word_lag_first,
    metrics.WORD_COVERAGE: words.word_coverage,
    metrics.PARTIAL_CHURN: words.partial_churn,
    metrics.PARTIAL_CHURN_RAW: words.partial_churn_raw,
    metrics.PARTIAL_CHURN_LENIENT: words.partial_churn_lenient,
    metrics.PARTIAL_REVISIONS: words.partial_revisions,
    metrics.PARTIAL_GAP: delays.partial_gap,
    metrics.TAIL_LOSS: words.tail_loss,
    metrics.MUTE_LONGEST: words.mute_longest,
    metrics.LAAL: words.laal,
    metrics.KEEP_UP: backlog.keep_up,
    metrics.BACKLOG: backlog.backlog,
    metrics.LIVE_WER: words.live_wer,
    metrics.LIVE_RTF: delays.live_rtf,
    metrics.TTFS_PIPECAT: delays.ttfs_pipecat,
    metrics.TTFT_VLLM: delays.ttft_vllm,
}
"""How each metric is read off one conversation, in the order in which they are stored."""
SPEECH_READERS: Mapping[Metric, Read] = {**speech.READERS, **voice.READERS}
"""Those of systems that speak."""
METRICS = (
    metrics.LIVE_ANSWERED, *READERS, *SPEECH_READERS, metrics.FIRST_SOUND_COLD, metrics.LIVE_THROUGHPUT,
)  # fmt: skip
"""All that `measurements` makes, in this order."""
OF, MISSING, TIMEOUT, WITHHELD, WORD = "of", "missing", "timeout_s", "withheld", "word"
HEARD_BY, PREBUFFER = "heard_by", "prebuffer_s"
"""Names of notes, which `metrics` describes."""


def measurements(exchanges: Sequence[Exchange], conditions: Conditions) -> list[Measurement]:
    """Every live metric of the conversations of one case and round; empty where all are warm-ups.

    Values are raw: one a conversation, or one for each of its words or texts. A metric that no conversation has is a
    measurement with the reason; those of sound are for systems that speak, and those of text not for one that is given
    text.
    """
    found = talks(exchanges, conditions)
    if not found:
        return []
    measured = [_measured(metric, found, read) for metric, read in _readers(conditions).items()]
    measured += [_cold(exchanges, conditions)] if conditions.speaks else []
    return [_answers(found), *measured, throughput(found)]


def _readers(conditions: Conditions) -> Mapping[Metric, Read]:
    """The metrics that a system can have."""
    heard = {metric: READERS[metric] for metric in _OF_ANY} if conditions.reads else READERS
    if not conditions.speaks:
        return heard
    return {**heard, **speech.READERS, **({} if conditions.reads else voice.READERS)}


def _cold(exchanges: Sequence[Exchange], conditions: Conditions) -> Measurement:
    """The first sound of the first conversation of a round."""
    first = cold(exchanges, conditions)
    if first is None:
        return Measurement.absent(metrics.FIRST_SOUND_COLD, "the round has no warm-up; use `warmup_turns: 1`")
    values = speech.first_sound(first).values
    if not values:
        return Measurement.absent(metrics.FIRST_SOUND_COLD, "the first conversation of the round gave no sound")
    return Measurement.of(metrics.FIRST_SOUND_COLD, values)


def _answers(found: Sequence[Talk]) -> Measurement:
    """Which conversations there were, in the order that the other measurements refer to."""
    exchanges = [talk.exchange for talk in found]
    speakers = [one.speaker for one in exchanges]
    notes: dict[str, Any] = {
        UTTERANCES: [one.utterance for one in exchanges],
        "streams": [one.stream for one in exchanges],
        "errors": [one.error_kind or ("error" if one.error else "") for one in exchanges],
        **({SPEAKERS: speakers} if all(speakers) else {}),
    }
    return Measurement.of(metrics.LIVE_ANSWERED, [float(talk.is_complete) for talk in found], notes=notes)


def _measured(metric: Metric, found: Sequence[Talk], read: Read) -> Measurement:
    silent = not found[0].conditions.texts and metric not in _WITHOUT_TEXT and metric not in SPEECH_READERS
    readings = [none(_NO_TEXTS) if silent else read(talk) for talk in found]
    if metric in DELAYS:
        readings = _with_failed(readings, found)
    values = [value for one in readings for value in one.values]
    notes = _notes(metric, found, readings)
    if values:
        return Measurement.of(metric, values, notes=notes)
    return Measurement.absent(metric, _why_none(metric, found, readings, notes), notes=notes)


def _with_failed(readings: list[Reading], found: Sequence[Talk]) -> list[Reading]:
    """A conversation that failed is missing where others have a value: those that survive must not look better."""
    if not any(one.values for one in readings):
        return readings
    return [
        LOST if talk.exchange.error and talk.reference_words != () and not one.values else one
        for one, talk in zip(readings, found, strict=True)
    ]


def _notes(metric: Metric, found: Sequence[Talk], readings: Sequence[Reading]) -> dict[str, Any]:
    of = [index for index, one in enumerate(readings) for _ in one.values]
    missing = [index for index, one in enumerate(readings) if one.missing]
    indices = [index for one in readings for index in one.indices]
    ratios = [(one.above, one.below) for one in readings if one.above is not None]
    notes: dict[str, Any] = {OF: of} if of else {}
    notes |= {MISSING: missing, TIMEOUT: max(talk.exchange.timeout_s for talk in found)} if missing else {}
    notes |= {WORD: indices} if indices else {}
    notes |= {"above": [above for above, _ in ratios], "below": [below for _, below in ratios]} if ratios else {}
    if metric in _OF_TEXTS:
        notes["normaliser"] = found[0].conditions.normaliser
    if metric == metrics.ROUND_TRIP_WER:
        notes[HEARD_BY] = found[0].conditions.heard_by
    if metric in _PLAYED:
        notes[PREBUFFER] = found[0].conditions.prebuffer_s
    reasons = Counter(one.reason for one in readings if one.reason)
    withheld = [f"{why} ({count} of {len(found)})" for why, count in reasons.items()]
    return {**notes, WITHHELD: withheld} if reasons else notes


def _why_none(metric: Metric, found: Sequence[Talk], readings: Sequence[Reading], notes: dict[str, Any]) -> str:
    missing = sum(one.missing for one in readings)
    reasons = dict.fromkeys(one.reason for one in readings if one.reason)
    if missing:
        which = "all conversations" if missing == len(readings) else f"{missing} of {len(readings)} conversations"
        what = "the system did not end the turn" if metric in _OF_TURNS else "no text came"
        what, given = ("no sound was audible", "input") if metric in SPEECH_READERS else (what, "audio")
        why = f"in {which} {what} within {notes[TIMEOUT]:g} s after the {given}"
        broken = [one.exchange.error_kind not in ("", ERROR_OF_TIME) for one in found]
        if metric in SPEECH_READERS and all(broken[index] for index in notes[MISSING]):
            why = f"{which} ended with an error"
        reasons = {why: None, **reasons}
    return "; ".join(reasons) or "no text contains a word"


_OF_TURNS = (metrics.ENDPOINT_DELAY, metrics.EARLY_ENDPOINT)
_OF_ANY = (metrics.LIVE_COMPLETENESS, metrics.OPEN_DELAY, metrics.CLIENT_QUEUE)
"""Metrics of conversations that a system has which is given text."""
_WITHOUT_TEXT = frozenset({
    metrics.LIVE_COMPLETENESS, metrics.OPEN_DELAY, metrics.ENDPOINT_DELAY, metrics.EARLY_ENDPOINT, metrics.CHUNK_WAIT,
    metrics.LIVE_RTF, metrics.CLIENT_QUEUE,
})  # fmt: skip
"""Metrics that a system has which gives no text."""
_PLAYED = frozenset({metrics.UNDERRUN_LONGEST, metrics.UNDERRUN_TOTAL, metrics.UNDERRUN_COUNT})
"""Metrics that depend on the pre-buffer."""
_NO_TEXTS = "the system gives no text; it only says when a turn ends"
_OF_TEXTS = frozenset({
    metrics.WORD_LAG, metrics.WORD_LAG_FIRST, metrics.WORD_COVERAGE, metrics.PARTIAL_CHURN,
    metrics.PARTIAL_CHURN_LENIENT, metrics.PARTIAL_REVISIONS, metrics.TAIL_LOSS, metrics.LIVE_WER, metrics.LAAL,
    metrics.ROUND_TRIP_WER,
})  # fmt: skip
"""Metrics that depend on how texts were made comparable."""
