"""Whisper takes windows of 30 s, shorter sound padded to one: cutting items into windows and joining their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeVar

from speechmeter.core.axes import Option
from speechmeter.core.types import Batch, Case
from speechmeter.subjects.common import RATE, waves

WINDOW_S = 30
WINDOW_SAMPLES = WINDOW_S * RATE
DEFAULT_SUPPRESSED = -1
"""Means, in a list of suppressed tokens, those that the model suppresses by default."""

LANGUAGE = Option(name="language", kind=str, default="en", help="a language code such as en")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Windows:
    """What goes from stage to stage: sound, features or results of all windows, and how many windows each item has."""

    rows: Any
    counts: tuple[int, ...]


def cut(batch: Batch) -> Windows:
    """The sound of every window, items one after another."""
    items = waves(batch)
    counts = tuple(windows_in(len(wave)) for wave in items)
    pieces = [
        wave[start * WINDOW_SAMPLES : (start + 1) * WINDOW_SAMPLES]
        for wave, count in zip(items, counts, strict=True)
        for start in range(count)
    ]
    return Windows(rows=pieces, counts=counts)


def windows_in(samples: int) -> int:
    """How many windows that many samples need; one at least."""
    return max(1, ceil(samples / WINDOW_SAMPLES))


def by_item(rows: Sequence[T], counts: Sequence[int]) -> list[list[T]]:
    """The results of the windows of each item."""
    rest = iter(rows)
    return [[next(rest) for _ in range(count)] for count in counts]


def pinned_for_item(tokens: int | None, case: Case) -> int | None:
    """Tokens an item gets when every window gets so many; None if nothing is pinned or the length of items is open."""
    seconds = case.axes.seconds
    return None if seconds is None or tokens is None else tokens * windows_in(round(float(seconds) * RATE))
