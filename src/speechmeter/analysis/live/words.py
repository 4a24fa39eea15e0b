"""Metrics of words: how late each came, how often shown ones changed again, and which never came."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

from speechmeter.analysis.live.alignment import align, common_prefix
from speechmeter.analysis.live.reading import Reading, none, ratio, several, value
from speechmeter.analysis.live.talk import Talk, Text, final_text, shown_texts

_NO_TIMES = "the times of the words are unknown; add them with: speechmeter data anchors"
_NO_REFERENCE = "the utterance has no reference text"
_NO_PARTIALS = "the system sent no partial text"
_FAILED = "the conversation failed"
_NO_FINAL = "the system sent no final text"


def word_lag(talk: Talk) -> Reading:
    """For each correct word, until the text from which on none loses it."""
    return _lags(talk, "stable_s")


def word_lag_first(talk: Talk) -> Reading:
    """For each correct word, until the first text that holds it."""
    return _lags(talk, "first_s")


def word_coverage(talk: Talk) -> Reading:
    """The share of words with known times that the final text has right."""
    words = talk.timed_words
    return ratio(len(talk.right), len(words), scale=100) if words else none(_NO_TIMES)


def partial_churn(talk: Talk) -> Reading:
    """Normalised erasure."""
    return _churn(talk, talk.shown, len(talk.final_words))


def partial_churn_raw(talk: Talk) -> Reading:
    """Normalised erasure of the text as it came."""
    raw = shown_texts(talk.events, lambda text: tuple(text.split()))
    return _churn(talk, raw, len(final_text(talk.exchange).split()))


def partial_churn_lenient(talk: Talk) -> Reading:
    """Normalised erasure without last words that only grew."""
    return _churn(talk, talk.shown, len(talk.final_words), lenient=True)


def partial_revisions(talk: Talk) -> Reading:
    """How many texts changed or removed a word of the one before."""
    if not any(event.kind == "partial" for event in talk.events):
        return none(_NO_PARTIALS)
    return ratio(sum(map(bool, _erased(talk.shown, lenient=False))), 1)


def tail_loss(talk: Talk) -> Reading:
    """The share of the reference after the last word that the final text has right."""
    if not talk.timed_words:
        return none(_NO_TIMES)
    last = talk.right[-1][0] if talk.right else -1
    count = len(talk.timed_words)
    return ratio(count - 1 - last, count, scale=100)


def mute_longest(talk: Talk) -> Reading:
    """The longest time of speech without a text that had something new."""
    if not talk.timed_words:
        return none(_NO_TIMES)
    if talk.conditions.pace != "realtime":
        return none("the audio was not fed in real time; use --pace realtime")
    spans = list(dict.fromkeys((start, end) for _, start, end in talk.timed_words))
    before: tuple[str, ...] = ()
    moments = [0.0]
    for text in talk.shown:
        if len(text.words) > common_prefix(before, text.words):
            moments.append(text.moment_s)
        before = text.words
    moments.append(max(moments[-1], *(end for _, end in spans)))
    gaps = itertools.pairwise(moments)
    return value(max(sum(max(0.0, min(end, to) - max(start, since)) for start, end in spans) for since, to in gaps))


def laal(talk: Talk) -> Reading:
    """Length-adaptive average lagging of the moments from which on beginnings of the final text no longer change."""
    if talk.reference_words is None:
        return none(_NO_REFERENCE)
    if not talk.held or talk.exchange.audio_s <= 0:
        return none(_NO_FINAL)
    moments: list[float] = []
    for one in talk.held:
        moments.append(max(one.stable_s, moments[-1]) if moments else one.stable_s)
    return value(length_adaptive_lagging(moments, talk.exchange.audio_s, len(talk.reference_words)))


def length_adaptive_lagging(moments: Sequence[float], audio_s: float, reference_words: int) -> float:
    """LAAL of one text: the moment of each of its words, the length of the audio and that of the reference."""
    if moments[0] > audio_s:
        return moments[0]
    each = audio_s / max(len(moments), reference_words)
    counted = next((number for number, moment in enumerate(moments, start=1) if moment >= audio_s), len(moments))
    return sum(moment - number * each for number, moment in enumerate(moments[:counted])) / counted


def live_wer(talk: Talk) -> Reading:
    """Word errors of the finals in the end."""
    if talk.reference_words is None:
        return none(_NO_REFERENCE)
    words = talk.split(talk.answer)
    return ratio(align(talk.reference_words, words).errors, len(talk.reference_words), scale=100)


def live_completeness(talk: Talk) -> Reading:
    """Whether there is a final text, and no error."""
    return ratio(float(talk.is_complete), 1, scale=100)


def _lags(talk: Talk, which: Literal["first_s", "stable_s"]) -> Reading:
    if not talk.timed_words:
        return none(_NO_TIMES)
    pairs = talk.right
    if not pairs:
        return none(_FAILED if talk.exchange.error else "the final text contains no word of the reference")
    ends = [talk.spoken(talk.timed_words[word][2]) for word, _ in pairs]
    if None in ends:
        return none("the conversation stopped before all words were sent")
    lags = [getattr(talk.held[index], which) - end for (_, index), end in zip(pairs, ends, strict=True)]
    return several(lags, [word for word, _ in pairs])


def _churn(talk: Talk, shown: Sequence[Text], final_words: int, *, lenient: bool = False) -> Reading:
    if not any(event.kind == "partial" for event in talk.events):
        return none(_NO_PARTIALS)
    return ratio(sum(_erased(shown, lenient=lenient)), final_words)


def _erased(shown: Sequence[Text], *, lenient: bool) -> list[int]:
    """For every two successive texts, how many words of the first follow the words with which both begin."""
    return [_after_prefix(before.words, after.words, lenient=lenient) for before, after in itertools.pairwise(shown)]


def _after_prefix(before: Sequence[str], after: Sequence[str], *, lenient: bool) -> int:
    same = common_prefix(before, after)
    left = len(before) - same
    grew = lenient and left == 1 and len(after) > same and after[same].startswith(before[-1])
    return 0 if grew else left
