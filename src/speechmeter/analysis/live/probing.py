"""Which level of load to probe next: coarse with one round each, then both edges in fresh rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from speechmeter.analysis.frontier import Bounds, largest_and_smallest, next_size, trials_left
from speechmeter.analysis.live.verdict import Word
from speechmeter.core.finding import COARSE_ROUNDS

CONFIRMING_ROUNDS = 6
"""Fresh rounds at each edge where a plan names none; as many again where these do not decide."""


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What is known of a level: whether its first round was within the SLO, and the verdict of the fresh ones."""

    within: bool
    word: Word = "undecided"
    fresh: int = 0
    client_bound: bool = False


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A level, in steps, that needs so many rounds in all."""

    size: int
    rounds: int


Levels = Mapping[int, Probed]


def next_probe(levels: Levels, bounds: Bounds, confirming: int) -> Probe | None:
    """The next probe; None when both edges are confirmed, or nothing more can be found out.

    A level that stays undecided is no edge: the next ones lie further out, in steps that double.
    """
    tried = _tried(levels)
    size = next_size(tried, bounds)
    if size is not None:
        return Probe(size=size, rounds=COARSE_ROUNDS)
    fits, fails = largest_and_smallest(tried)
    gap = max(1, math.floor(bounds.within * (fits or fails or 1)))
    lower = _confirm(levels, fits, -gap, "passes", bounds, confirming)
    return lower or _confirm(levels, fails, gap, "fails", bounds, confirming)


def probes_left(levels: Levels, bounds: Bounds, confirming: int) -> int:
    """About how many rounds are left."""
    tried = _tried(levels)
    fresh = sum(max(0, confirming - levels[size].fresh) for size in largest_and_smallest(tried) if size is not None)
    return trials_left(tried, bounds) + (fresh or confirming)


def _tried(levels: Levels) -> dict[int, bool]:
    """Whether each level is within: as the fresh rounds decided, else as its first round looked."""
    return {
        size: one.within if one.word == "undecided" else one.word == "passes" for size, one in sorted(levels.items())
    }


def _confirm(
    levels: Levels, start: int | None, step: int, wanted: Word, bounds: Bounds, confirming: int
) -> Probe | None:
    size = start
    while size is not None:
        one = levels.get(size)
        if one is None or one.fresh < confirming:
            return Probe(size=size, rounds=COARSE_ROUNDS + confirming)
        if one.word == wanted or (one.client_bound and wanted == "fails"):
            return None
        if one.word == "undecided" and one.fresh < 2 * confirming:
            return Probe(size=size, rounds=COARSE_ROUNDS + 2 * confirming)
        further = min(max(1, size + step), bounds.most)
        size, step = (None if further == size else further), 2 * step
    return None
