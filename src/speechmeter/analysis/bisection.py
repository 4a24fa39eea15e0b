"""Which size is tried next: doubled until one fails, halved until one fits, then the middle between the two.

All sizes are counts of steps. What fits is assumed to fit at every smaller size too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

_DOUBLINGS = 3
"""How often a size is expected to double before it fails; for the time left alone."""
Tried = Mapping[int, bool]
"""Whether a size fitted, by size."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Where a search starts, what it never tries more than, and how close it comes as a share of what fits."""

    start: int
    most: int
    within: float = 0.0


def largest_and_smallest(tried: Tried) -> tuple[int | None, int | None]:
    """(the largest that fits below every one that fails, the smallest that fails); None where there is none."""
    fails = min((size for size, fits in tried.items() if not fits), default=None)
    fits = max((size for size, fits in tried.items() if fits and (fails is None or size < fails)), default=None)
    return fits, fails


def next_size(tried: Tried, bounds: Bounds) -> int | None:
    """The size to try after these; None when the search is over."""
    fits, fails = largest_and_smallest(tried)
    if fits is None and fails is None:
        return min(bounds.start, bounds.most)
    if fits is None:
        return fails // 2 if fails is not None and fails > 1 else None
    if fits >= bounds.most:
        return None
    if fails is None:
        return min(2 * fits, bounds.most)
    near = fails - fits <= max(1, math.floor(bounds.within * fits))
    return None if near else min((fits + fails) // 2, bounds.most)


def trials_left(tried: Tried, bounds: Bounds) -> int:
    """How many trials are left: at most so many once both sides are known, before that as if few doublings were."""
    fits, fails = largest_and_smallest(tried)
    if fits is not None and fails is not None:
        return math.ceil(math.log2(max(1.0, (fails - fits) / max(1.0, bounds.within * fits))))
    if fails is not None:
        return fails.bit_length()
    doublings = min(_DOUBLINGS, math.ceil(math.log2(bounds.most / fits))) if fits is not None else _DOUBLINGS
    near = 2**doublings * (fits or bounds.start) / max(1.0, bounds.within * (fits or bounds.start))
    return doublings + max(0, math.ceil(math.log2(near))) if doublings else 0
