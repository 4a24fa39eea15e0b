"""What is said in one conversation, cut into chunks as a microphone would deliver it, or into tokens of its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.live import Anchors
from speechmeter.core.types import Batch

RATE = 16_000
"""Samples in a second of the sound that every workload feeds."""
NO_ANCHORS = Anchors()
_TOKEN = re.compile(r"\s*\S{1,4}|\s+$")
"""Up to four characters of a word with the blank before them: about what tokenisers make of English."""


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One item of a workload: its samples (float32 at 16 kHz), and what is known of it.

    Of a text to be spoken, `pcm` are its tokens: `text_pace` of them per second, or all at once.
    """

    name: str
    pcm: Any = field(repr=False)
    anchors: Anchors = NO_ANCHORS
    reference: str | None = None
    speaker: str = ""
    text: str | None = None
    text_pace: float | None = None

    @property
    def audio_s(self) -> float:
        """How long it is; of text, seconds from its first token to its last."""
        if self.text is not None:
            return (len(self.pcm) - 1) / self.text_pace if self.text_pace else 0.0
        return len(self.pcm) / RATE

    def fed_s(self, silence_s: float) -> float:
        """Seconds that it is fed, with the silence behind it; there is none behind text."""
        return self.audio_s + (silence_s if self.text is None else 0.0)


def utterances_of(batches: Iterable[Batch], text_pace: float | None = None) -> Iterator[Utterance]:
    """Every item of every batch, without padding. Raises InputError for token ids, which no voice can read."""
    count = 0
    for batch in batches:
        for index in range(batch.items):
            if isinstance(batch.data, tuple):
                yield spoken_text(batch.data[index], batch.ids[index] if batch.ids else str(count), text_pace)
                count += 1
                continue
            length = batch.lengths[index] if batch.lengths else len(batch.data[index])
            yield Utterance(
                name=batch.ids[index] if batch.ids else str(count),
                pcm=batch.data[index][:length],
                anchors=batch.anchors[index] if batch.anchors else NO_ANCHORS,
                reference=batch.references[index] if batch.references else None,
                speaker=batch.speakers[index] if batch.speakers else "",
            )
            count += 1


def spoken_text(text: Any, name: str, text_pace: float | None = None) -> Utterance:
    """A text that a system is to speak; what it says should be the text itself."""
    if not isinstance(text, str):
        raise InputError("a live case speaks text, not token ids", key="text", fix="use `text: {lines: FILE}`")
    return Utterance(name=name, pcm=tokens_of(text), reference=text, text=text, text_pace=text_pace)


def tokens_of(text: str) -> list[str]:
    """The text in pieces; joined they are the text again."""
    return _TOKEN.findall(text) or [text]


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Samples with their span [from_s, to_s) in the audio; or a piece of text, which is due at `to_s`."""

    pcm: Any = field(repr=False)
    from_s: float
    to_s: float


def chunks_of(utterance: Utterance, fed_s: float, chunk_s: float) -> Iterator[Chunk]:
    """The first `fed_s` seconds of an utterance with digital silence behind it; the last chunk may be shorter.

    Bounds are counted in samples from the start, so that they do not drift.
    """
    import numpy as np

    if utterance.text is not None:
        yield from _tokens(utterance, utterance.text)
        return
    total = round(fed_s * RATE)
    length = len(utterance.pcm)
    number, start = 0, 0
    while start < total:
        number += 1
        end = min(total, max(start + 1, round(number * chunk_s * RATE)))
        pcm = utterance.pcm[start:end].copy()  # a system that changes it must not change what the next one hears
        if end > length:
            pcm = np.concatenate([pcm, np.zeros(end - max(start, length), dtype=np.float32)])
        # an exact multiple where it can be: a bound in samples, divided again, is not always the nearest float
        yield Chunk(pcm=pcm, from_s=_bound(number - 1, chunk_s, start), to_s=_bound(number, chunk_s, end))
        start = end


def _tokens(utterance: Utterance, text: str) -> Iterator[Chunk]:
    pace = utterance.text_pace
    if not pace:
        yield Chunk(pcm=text, from_s=0.0, to_s=0.0)
        return
    for number, token in enumerate(utterance.pcm):
        yield Chunk(pcm=token, from_s=max(0, number - 1) / pace, to_s=number / pace)


def _bound(number: int, chunk_s: float, sample: int) -> float:
    exact_s = number * chunk_s
    return exact_s if round(exact_s * RATE) == sample and abs(exact_s * RATE - sample) < 1e-6 else sample / RATE
