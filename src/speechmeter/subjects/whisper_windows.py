"""Whisper hears windows of 30 s, shorter sound padded to one: cutting items into windows and joining what they gave."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, TypeVar

from speechmeter.core.types import Batch, Case

WINDOW_S = 30
WINDOW_SAMPLES = WINDOW_S * 16_000

T = TypeVar("T")


def cut(batch: Batch) -> tuple[list[Any], tuple[int, ...]]:
    """The sound of every window, items one after another, and how many windows each item has."""
    waves = [wave[:length] for wave, length in zip(batch.data, batch.lengths, strict=True)]
    counts = tuple(windows_in(len(wave)) for wave in waves)
    pieces = [
        wave[start * WINDOW_SAMPLES : (start + 1) * WINDOW_SAMPLES]
        for wave, count in zip(waves, counts, strict=True)
        for start in range(count)
    ]
    return pieces, counts


def windows_in(samples: int) -> int:
    """How many windows that many samples need; one at least."""
    return max(1, ceil(samples / WINDOW_SAMPLES))


def by_item(windows: Sequence[T], counts: Sequence[int]) -> list[list[T]]:
    """The windows of each item."""
    rest = iter(windows)
    return [[next(rest) for _ in range(count)] for count in counts]


def pinned_for_item(tokens: int, case: Case) -> int | None:
    """Tokens an item gets when every window gets so many; None where the case does not say how long items are."""
    seconds = case.axes.get("seconds")
    return None if seconds is None else tokens * windows_in(round(float(seconds) * 16_000))
