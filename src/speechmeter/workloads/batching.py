"""Which items are fed together, and how they are padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.core.axes import NONE
from speechmeter.core.types import Batch
from speechmeter.workloads.sound import FRAME_S, RATE

ASCENDING, DESCENDING = "ascending", "descending"
SORTS = (NONE, ASCENDING, DESCENDING)


def grouped(lengths_s: Sequence[float], *, batch: int, batch_s: float | None, sort: str) -> list[tuple[int, ...]]:
    """Items by number: `batch` of them at a time, or as many as `batch_s` seconds hold, padding included.

    An item that is longer than `batch_s` is a batch of its own.
    """
    order = list(range(len(lengths_s)))
    if sort != NONE:
        order.sort(key=lengths_s.__getitem__, reverse=sort == DESCENDING)
    if batch_s is None:
        return [tuple(order[start : start + batch]) for start in range(0, len(order), batch)]
    groups: list[list[int]] = []
    longest_s = 0.0
    for item in order:
        longest_s = max(longest_s, lengths_s[item])
        if groups and longest_s * (len(groups[-1]) + 1) <= batch_s:
            groups[-1].append(item)
        else:
            groups.append([item])
            longest_s = lengths_s[item]
    return [tuple(group) for group in groups]


def padded(arrays: Sequence[Any]) -> Any:
    """Arrays of their own lengths as one, zeros behind: sound (items, samples), features (items, frames, bands)."""
    import numpy as np

    if len(arrays) == 1:
        return arrays[0][None]
    data: Any = np.zeros((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), dtype=np.float32)
    for row, array in enumerate(arrays):
        data[row, : len(array)] = array
    return data


def outline(
    ids: Sequence[str],
    lengths: Sequence[int],
    *,
    references: Sequence[str | None] = (),
    speakers: Sequence[str | None] = (),
) -> Batch:
    """A batch of sound without its data. References are those of all items, or none: a gap is not an empty text."""
    known = [text for text in references if text is not None]
    named = [speaker for speaker in speakers if speaker]
    return Batch(
        data=None,
        items=len(ids),
        ids=tuple(ids),
        lengths=tuple(lengths),
        audio_s=sum(lengths) / RATE,
        padded_s=len(lengths) * max(lengths) / RATE,
        references=tuple(known) if len(known) == len(ids) else (),
        speakers=tuple(named) if len(named) == len(ids) else (),
    )


def length_s(length: int, *, features: bool) -> float:
    """Seconds of a number of samples, or of frames."""
    return length * FRAME_S if features else length / RATE
