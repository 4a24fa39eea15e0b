"""Delays of whole conversations: until the first text, until the last, until the system ends the turn."""

from __future__ import annotations

import itertools

from speechmeter.analysis.live.reading import MISSING, Reading, none, ratio, several, value
from speechmeter.analysis.live.talk import Talk

_NO_ONSET = "the start of speech is unknown; add it with: speechmeter data anchors"
_NO_END = "the end of speech is unknown; add it with: speechmeter data anchors"
_NO_SPEECH = "the reference text is empty"
_CADENCE = (
    "the system sends text at fixed intervals, even without speech, so its first text is not a reaction to speech"
)
_NOT_PACED = "the audio was not fed in real time; use --pace realtime"
_PACED = "this metric is for audio that is sent as fast as possible, but it was fed in real time; use --pace fast"
_NO_AUDIO = "no audio was sent"
_NO_FINISH = "the end of the input was not signalled to the system"
_PIPECAT_S = 2.2
"""How long Pipecat waits: 0.2 s until its voice activity detector reports the end, and 2 s from then on."""


def first_partial_from_send(talk: Talk) -> Reading:
    """From the moment at which the first chunk was due."""
    if talk.conditions.fixed_cadence:
        return none(_CADENCE)
    return _first_text(talk, talk.exchange.sends[0].due_s) if talk.exchange.sends else _never(talk, _NO_AUDIO)


def first_partial_service(talk: Talk) -> Reading:
    """From the actual send of the first chunk."""
    if talk.conditions.fixed_cadence:
        return none(_CADENCE)
    return _first_text(talk, talk.exchange.sends[0].sent_s) if talk.exchange.sends else _never(talk, _NO_AUDIO)


def first_partial_from_onset(talk: Talk) -> Reading:
    """From the true start of speech."""
    onset = _spoken(talk, talk.exchange.anchors.speech_start_s)
    return _unknown(talk, _NO_ONSET) if onset is None else _first_text(talk, onset)


def early_text(talk: Talk) -> Reading:
    """Whether there was text before speech."""
    onset = _spoken(talk, talk.exchange.anchors.speech_start_s)
    if onset is None:
        return _unknown(talk, _NO_ONSET)
    return (
        none("the system sent no text")
        if talk.first_text_s is None
        else ratio(float(talk.first_text_s < onset), 1, scale=100)
    )


def final_delay(talk: Talk) -> Reading:
    """From the true end of speech until the text is final."""
    end = _spoken(talk, talk.exchange.anchors.speech_end_s)
    if end is None:
        return _unknown(talk, _NO_END)
    if talk.conditions.turn_end == "system" and not talk.conditions.endpoints:
        return none("this system cannot end a turn by itself; use --turn-end oracle")
    return _final(talk, end)


def finalize_delay(talk: Talk) -> Reading:
    """From the moment at which the end of the input was due to be signalled."""
    return _since_finish(talk, talk.exchange.finish_s)


def finalize_service(talk: Talk) -> Reading:
    """From the actual signal that there is no more input."""
    return _since_finish(talk, talk.exchange.finished_s)


def request_latency(talk: Talk) -> Reading:
    """Of a request, from the moment at which it was due until its answer is complete."""
    return none(_PACED) if talk.conditions.pace == "realtime" else _final(talk, 0.0)


def first_token(talk: Talk) -> Reading:
    """Of a request whose answer comes piece by piece, until the first piece with a word."""
    if talk.conditions.pace == "realtime":
        return none(_PACED)
    if talk.events and not talk.exchange.of_kind("partial"):
        return none("the whole answer came in one message")
    return _first_text(talk, 0.0)


def open_delay(talk: Talk) -> Reading:
    """How long a speaker waited for the connection: no other delay contains it."""
    exchange = talk.exchange
    if talk.conditions.arrivals and talk.conditions.pace != "realtime":
        return none("the latency of a request includes the time to open its connection")
    if exchange.error and not exchange.sends:
        return MISSING
    return value(exchange.started_s - exchange.due_s)


def client_queue(talk: Talk) -> Reading:
    """How late the client itself began a request, before anything that the server can delay."""
    exchange = talk.exchange
    if not talk.conditions.arrivals:
        return none("each conversation starts when the previous one ends, so none can start late")
    if talk.conditions.pace == "realtime":
        return none("the audio was fed in real time; client_slip says how late it was sent")
    if exchange.began_s is None:
        return none("the exchange file does not say when the client began the request")
    return value(exchange.began_s - exchange.due_s)


def endpoint_delay(talk: Talk) -> Reading:
    """From the true end of speech to the last decision of the system that the turn has ended."""
    end = _spoken(talk, talk.exchange.anchors.speech_end_s)
    if end is None:
        return _unknown(talk, _NO_END)
    decided = _endpoints(talk)
    return value(decided[-1] - end) if decided else _undecided(talk)


def early_endpoint(talk: Talk) -> Reading:
    """Whether the system ended the turn before the true end of speech."""
    end = _spoken(talk, talk.exchange.anchors.speech_end_s)
    if end is None:
        return _unknown(talk, _NO_END)
    decided = _endpoints(talk)
    return ratio(float(decided[0] < end), 1, scale=100) if decided else _undecided(talk)


def _undecided(talk: Talk) -> Reading:
    """The reading where the system did not end the turn: missing only if it was its part to do so."""
    if not talk.conditions.endpoints:
        return none("the system does not report when a turn ends")
    if talk.conditions.turn_end != "system":
        return none("the input ended before the system ended the turn")
    return MISSING


def chunk_wait(talk: Talk) -> Reading:
    """From the true end of speech to the moment at which the chunk that holds it was due."""
    end = talk.exchange.anchors.speech_end_s
    if end is None:
        return _unknown(talk, _NO_END)
    if talk.conditions.pace != "realtime":
        return none(_NOT_PACED)
    due = talk.chunk_due(end)
    return none("the conversation stopped before the end of speech was sent") if due is None else value(due - end)


def partial_gap(talk: Talk) -> Reading:
    """Times between texts that differ."""
    moments = [text.moment_s for text in talk.shown]
    if len(moments) < 2:
        return none("the system sent fewer than two texts")
    return several([after - before for before, after in itertools.pairwise(moments)])


def ttfs_pipecat(talk: Talk) -> Reading:
    """Pipecat's time to final segment, with the end of speech of the recording."""
    end = _spoken(talk, talk.exchange.anchors.speech_end_s)
    if end is None:
        return _unknown(talk, _NO_END)
    finals = [event.moment_s for event in talk.events if event.kind == "final" and talk.split(event.text)]
    inside = [moment for moment in finals if moment <= end + _PIPECAT_S]
    if not inside:
        return none("no final text came within 2.2 s after the end of speech")
    return value(inside[-1] - end) if inside[-1] > end else none("the last final text came before the end of speech")


def ttft_vllm(talk: Talk) -> Reading:
    """vLLM's time to first token: also an empty text counts."""
    if not talk.exchange.sends:
        return none(_NO_AUDIO)
    return (
        value(talk.events[0].moment_s - talk.exchange.sends[0].sent_s)
        if talk.events
        else none("the system sent no text")
    )


def live_rtf(talk: Talk) -> Reading:
    """Time that the engine computed / audio that it was fed."""
    busy = talk.exchange.busy_s
    return none("the system does not report how long it computed") if busy is None else ratio(busy, talk.exchange.fed_s)


def _unknown(talk: Talk, reason: str) -> Reading:
    """Why there is no start or end of speech: without words there is none to be found, and what failed never got so
    far.
    """
    position = talk.exchange.anchors.speech_start_s if reason == _NO_ONSET else talk.exchange.anchors.speech_end_s
    if talk.reference_words == () or position is None:
        return none(_NO_SPEECH if talk.reference_words == () else reason)
    return _never(talk, "the conversation stopped before the speech was sent")


def _never(talk: Talk, reason: str) -> Reading:
    """The reading where something was never sent: an answer was awaited in vain if the conversation failed."""
    return MISSING if talk.exchange.error else none(reason)


def _since_finish(talk: Talk, moment_s: float | None) -> Reading:
    if not talk.conditions.finishes:
        return none(_NO_FINISH)
    return _never(talk, _NO_FINISH) if moment_s is None else _final(talk, moment_s)


def _endpoints(talk: Talk) -> list[float]:
    return sorted(event.moment_s for event in talk.exchange.of_kind("endpoint"))


def _spoken(talk: Talk, position_s: float | None) -> float | None:
    return None if position_s is None else talk.spoken(position_s)


def _first_text(talk: Talk, since_s: float) -> Reading:
    if talk.first_text_s is not None:
        return value(talk.first_text_s - since_s)
    return none(_NO_SPEECH) if talk.reference_words == () else MISSING


def _final(talk: Talk, since_s: float) -> Reading:
    if talk.reference_words == () and not talk.final_words:
        return none(_NO_SPEECH)
    if talk.exchange.error or not talk.final_words or talk.final_s is None:
        return MISSING
    return value(talk.final_s - since_s)
