"""What a model that reads is fed: token ids of its own vocabulary, whatever it gets. Imports torch.

Text goes through the model's tokenizer. Without one, words (letters, where the vocabulary is one of letters) become
ids by a stable hash, and ids of another vocabulary are taken modulo ours; special ids are avoided. The number of ids,
on which the cost depends, is then that of words, letters or ids.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch

_LETTERS = 256
"""A vocabulary of fewer symbols is one of letters or phones."""
_SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "unk_token_id", "decoder_start_token_id", "sep_token_id")


class Ids:
    """From words, letters and foreign ids to the plain ids of a vocabulary."""

    def __init__(self, config: Any, size: int) -> None:
        special = {getattr(config, name, None) for name in _SPECIAL}
        self._plain = [number for number in range(size) if number not in special]
        self.letters = size < _LETTERS

    def of(self, item: str | Sequence[int]) -> list[int]:
        """The ids of one item; one id for an empty one."""
        if isinstance(item, str):
            parts = list(item.strip()) if self.letters else item.split()
            numbers = [zlib.crc32(part.encode()) for part in parts]
        else:
            numbers = list(item)
        return [self._plain[number % len(self._plain)] for number in numbers or [0]]


def vocabulary_size(config: Any) -> int:
    """How many ids a text model knows."""
    size = getattr(config, "vocab_size", None)
    if size is None:  # a model and its vocoder in one configuration
        size = config.model_config.vocab_size
    return int(size)


def read_text(config: Any, tokenizer: Any, *, end: bool) -> Callable[[Batch], dict[str, Any]]:
    """A stage: lines or ids of a batch as padded ids and a mask; with `end` each item ends as the model expects it."""
    ids, pad = Ids(config, vocabulary_size(config)), getattr(config, "pad_token_id", None) or 0
    last = getattr(config, "eos_token_id", None) if end else None
    closing = [last] if isinstance(last, int) else []

    def features(batch: Batch) -> dict[str, Any]:
        if not isinstance(batch.data, tuple):
            raise SubjectError("this model reads text, and what it is fed is sound", fix="feed it text or token ids")
        if tokenizer is not None and all(isinstance(item, str) for item in batch.data):
            made = tokenizer(list(batch.data), return_tensors="pt", padding=True)
            return {name: made[name] for name in ("input_ids", "attention_mask")}
        return padded([ids.of(item) + closing for item in batch.data], pad)

    return features


def padded(rows: Sequence[Sequence[int]], pad: int) -> dict[str, Any]:
    """Rows of ids as one tensor, and which of them are no padding."""
    width = max(map(len, rows))
    made = torch.full((len(rows), width), pad, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for place, row in enumerate(rows):
        made[place, : len(row)] = torch.tensor(list(row))
        mask[place, : len(row)] = 1
    return {"input_ids": made, "attention_mask": mask}


def reading_notes(config: Any, tokenizer: Any) -> list[str]:
    """What a reader must know of the input where there is no tokenizer."""
    if tokenizer is not None:
        return []
    what = "letters" if Ids(config, vocabulary_size(config)).letters else "words"
    return [f"no tokenizer files: {what} become ids by a hash, ids of another vocabulary modulo this one"]
