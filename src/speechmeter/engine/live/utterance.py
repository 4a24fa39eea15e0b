"""What is said in one conversation, cut into chunks as a microphone would deliver it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from speechmeter.core.live import Anchors
from speechmeter.core.types import Batch

RATE = 16_000
"""Samples in a second of the sound that every workload feeds."""
NO_ANCHORS = Anchors()


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One item of a workload: its samples (float32 at 16 kHz), and what is known of it."""

    name: str
    pcm: Any = field(repr=False)
    anchors: Anchors = NO_ANCHORS
    reference: str | None = None
    speaker: str = ""

    @property
    def audio_s(self) -> float:
        """How long it is."""
        return len(self.pcm) / RATE


def utterances_of(batches: Iterable[Batch]) -> Iterator[Utterance]:
    """Every item of every batch, without padding."""
    count = 0
    for batch in batches:
        for index in range(batch.items):
            length = batch.lengths[index] if batch.lengths else len(batch.data[index])
            yield Utterance(
                name=batch.ids[index] if batch.ids else str(count),
                pcm=batch.data[index][:length],
                anchors=batch.anchors[index] if batch.anchors else NO_ANCHORS,
                reference=batch.references[index] if batch.references else None,
                speaker=batch.speakers[index] if batch.speakers else "",
            )
            count += 1


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Samples with their span [from_s, to_s) in the audio."""

    pcm: Any = field(repr=False)
    from_s: float
    to_s: float


def chunks_of(utterance: Utterance, fed_s: float, chunk_s: float) -> Iterator[Chunk]:
    """The first `fed_s` seconds of an utterance with digital silence behind it; the last chunk may be shorter.

    Bounds are counted in samples from the start, so that they do not drift.
    """
    import numpy as np

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


def _bound(number: int, chunk_s: float, sample: int) -> float:
    exact_s = number * chunk_s
    return exact_s if round(exact_s * RATE) == sample and abs(exact_s * RATE - sample) < 1e-6 else sample / RATE
