"""Synthesisers that take whole sentences, made live: each sentence is spoken when it is complete.

What an application does between a language model and a voice, which sounds better by the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from speechmeter.core.live import Live
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Speech, Stage
from speechmeter.subjects.live.hearing import Hear, Heard, Hearing

Say = Callable[[str], Iterator[Heard]]
"""The sound of a sentence, piece by piece."""
_END = re.compile(r"[.!?…]+[\"')\]]*\s+")
SENTENCES = "text that comes bit by bit is spoken sentence by sentence"


def sentences(pieces: Iterable[str]) -> Iterator[str]:
    """Each sentence once it is followed by a blank; what is left at the end."""
    text = ""
    for piece in pieces:
        text += piece
        while (end := _END.search(text)) is not None:
            yield text[: end.end()].strip()
            text = text[end.end() :]
    if text.strip():
        yield text.strip()


def by_sentence(say: Say) -> Hear:
    """Conversations in which each sentence is spoken when it is complete."""

    def hear(pieces: Iterator[str]) -> Iterator[Heard]:
        for sentence in sentences(pieces):
            yield from say(sentence)

    return hear


def voice(say: Say, *, notes: tuple[str, ...] = (), live: bool) -> Prepared:
    """A synthesiser: live by the sentence, or one stage that speaks whole texts."""
    if live:
        made = Live(converse=lambda clock: Hearing(clock, by_sentence(say)), texts=False, speaks=True, interrupts=True)
        return Prepared(live=made, notes=(*notes, SENTENCES), data_dependent=True)

    def speak(batch: Batch) -> list[Speech]:
        return [_joined(text, say) for text in batch.data]

    return Prepared(stages=(Stage(name="model", fn=speak),), notes=notes, data_dependent=True)


def _joined(text: str, say: Say) -> Speech:
    import numpy as np

    made = [heard.sound for sentence in sentences([text]) for heard in say(sentence) if heard.sound is not None]
    if not made:
        raise ValueError(f"the voice made no sound for the text {text[:40]!r}")
    return Speech(samples=np.concatenate([one.samples for one in made]), rate=made[0].rate)
