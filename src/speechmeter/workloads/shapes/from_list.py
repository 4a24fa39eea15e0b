"""Shapes of the utterances of a list: frames from their seconds; tokens from a model, their words, or the list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor
from pathlib import Path

from speechmeter.core.batches import LeftOut
from speechmeter.core.errors import InputError
from speechmeter.workloads import sound
from speechmeter.workloads.manifests import formats
from speechmeter.workloads.manifests.utterance import Refused, UnusableError, Utterance
from speechmeter.workloads.selection import Refusals
from speechmeter.workloads.shapes.table import LONGEST, RAW, Shapes, halved
from speechmeter.workloads.sound import Taste

SHIFT_S = 0.01
FIELD, WORDS, CHARACTERS = "field", "words", "characters"
COUNTS = (FIELD, WORDS, CHARACTERS)
"""What `tokens` of an utterance may be: a number that the list states, words of its text, or characters."""
_NO_TOKENS = "the list has no field `tokens`"
Tokens = Callable[[Utterance], int]


@dataclass(frozen=True, kw_only=True)
class Listed:
    """The shapes of the usable utterances in raw frames, and what was left out."""

    shapes: Shapes
    left_out: LeftOut


def from_list(
    path: Path, tokens: Tokens, *, format: str = formats.AUTO, root: Path | None = None, shift_s: float = SHIFT_S
) -> Listed:
    """Go through a list once, opening only files whose length it does not state. Raises InputError if none is usable.

    Frames are those that the list states (`num_frames` of lhotse), else seconds / shift, rounded to the nearest, halves
    up. No sound is needed where length and text are stated.
    """
    import numpy as np

    rows: list[tuple[int, int]] = []
    refused = Refusals()
    for item in formats.read(path, format, root):
        stated = item.stated if isinstance(item, Refused) else item
        found = _row(stated, tokens, shift_s) if stated is not None else item
        if isinstance(found, tuple):
            rows.append(found)
        elif isinstance(item, Refused):
            refused.add(item)
        elif isinstance(found, Refused):
            refused.add(found)
    left_out = refused.left_out(len(rows))
    if not rows:
        why = left_out.line() if left_out.count else "it has no items"
        uncounted = refused.first and all(item.reason == _NO_TOKENS for item in refused.first)
        fix = "use `tokens: words` or `tokens: characters`" if uncounted else "correct the list"
        raise InputError(f"{str(path)!r} gives no shapes: {why}", key="shapes", fix=fix)
    return Listed(shapes=Shapes(rows=np.array(rows, dtype=np.int32), frames=RAW, origin=path.name), left_out=left_out)


def _row(utterance: Utterance, tokens: Tokens, shift_s: float) -> tuple[int, int] | Refused:
    try:
        count = tokens(utterance)
        shifts: float | None = utterance.feature_frames
        if shifts is None:
            stated_s = utterance.stated_s
            shifts = (sound.header_seconds(utterance, Taste()) if stated_s is None else stated_s) / shift_s
        if max(shifts, count) > LONGEST:
            raise UnusableError(f"has more than {LONGEST:,} frames or tokens")
        frames = floor(round(shifts, 6) + 0.5)  # 1.005 s are 100.5 shifts, not 100.49999999999999
        if halved(frames) < 1:
            raise UnusableError(f"is too short: {frames} frames leave none after 4× subsampling")
        return frames, count
    except UnusableError as error:
        return Refused(id=utterance.id, reason=str(error))


def counted(how: str) -> Tokens:
    """Tokens without a model: one of `COUNTS`."""
    if how not in COUNTS:
        raise InputError(f"cannot count tokens by {how!r}", key="tokens", fix=f"use one of {', '.join(COUNTS)}")
    return {FIELD: _stated, WORDS: lambda one: len(_text(one).split()), CHARACTERS: lambda one: len(_text(one))}[how]


def pieces(model: Path) -> Tokens:
    """Tokens by a sentencepiece model. Raises InputError where the model or the package is missing."""
    try:
        import sentencepiece
    except ImportError:
        raise InputError(
            "the package sentencepiece is not installed",
            key="sentencepiece",
            fix="pip install 'speechmeter[sentencepiece]', or use `tokens`",
        ) from None
    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"{str(model)!r} is not a sentencepiece model: {error}", key="sentencepiece", fix="use a .model file"
        ) from error
    return lambda utterance: len(processor.encode(_text(utterance)))


def _stated(utterance: Utterance) -> int:
    if utterance.tokens is None:
        raise UnusableError(_NO_TOKENS)
    return utterance.tokens


def _text(utterance: Utterance) -> str:
    if utterance.text is None:
        raise UnusableError("has no text")
    return utterance.text
