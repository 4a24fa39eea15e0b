"""Which axes act alone: six axes need not their whole product.

A screen measures the default, each single change, and for every two axes the pair of their best values. Where the
logarithm of a pair is the sum of its two changes, as far as the rounds can tell, the two axes act alone. An axis that
acts alone keeps the values that may be its best; axes that do not keep all values that a pair may still need.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from speechmeter.analysis.intervals import t_quantile
from speechmeter.analysis.racing import Logs, spread

Cell = tuple[int, ...]
"""The index of a value for each axis; 0 is the default."""
ROUNDS = 3
"""Rounds of a screen."""
WORTH = 2
"""A screen is made where the product is more than so many times its size."""
_LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Screened:
    """What a screen found. `kept` are the values of each axis that go into the race, as indices."""

    kept: tuple[tuple[int, ...], ...]
    together: tuple[tuple[int, int], ...] = ()
    """Axes that do not act alone, in pairs."""
    dropped: Mapping[tuple[int, int], float] | None = None
    """(axis, value) that were left out, with how far they are behind the best of their axis."""


def size(levels: Sequence[int]) -> int:
    """How many cells a screen has: the default, each single change, and a pair for each two axes."""
    own = [count for count in levels if count > 1]
    return 1 + sum(count - 1 for count in own) + math.comb(len(own), 2)


def is_worth(levels: Sequence[int]) -> bool:
    """Whether a screen takes much less than the product."""
    return math.prod(levels) > WORTH * size(levels)


def singles(levels: Sequence[int]) -> list[Cell]:
    """The default, and each single change."""
    blank = (0,) * len(levels)
    changed = [
        (*blank[:axis], value, *blank[axis + 1 :]) for axis, count in enumerate(levels) for value in range(1, count)
    ]
    return [blank, *changed]


def pairs(levels: Sequence[int], logs: Mapping[Cell, float]) -> list[Cell]:
    """For every two axes the pair of their best changes, by the first round of the single ones."""
    best: dict[int, tuple[float, int]] = {}
    for cell, log in logs.items():
        changed = [axis for axis, value in enumerate(cell) if value]
        if len(changed) == 1 and log < best.get(changed[0], (math.inf, 0))[0]:
            best[changed[0]] = (log, cell[changed[0]])
    found = []
    for one, other in combinations(sorted(best), 2):
        values = {one: best[one][1], other: best[other][1]}
        found.append(tuple(values.get(axis, 0) for axis in range(len(levels))))
    return found


def screened(
    levels: Sequence[int], cells: Sequence[Cell], logs: Logs, delta: float, refused: Collection[tuple[int, int]] = ()
) -> Screened:
    """What the rounds of a screen say. `cells` and `logs` are those of its cells, by their index.

    `refused` are values, as (axis, value), whose single change failed: they are left out.
    """
    import numpy as np

    index = {cell: position for position, cell in enumerate(cells) if len(logs.get(position, {})) >= ROUNDS}
    blank = (0,) * len(levels)
    order = list(index.values())
    block = np.array([[logs[position][round_] for position in order] for round_ in range(ROUNDS)])
    variances = spread(block)
    value = float(np.mean([one.value for one in variances]))
    degrees = min(one.degrees for one in variances)
    mean = dict(zip(index, block.mean(axis=0).tolist(), strict=True))

    def error(terms: int) -> float:
        return t_quantile(degrees, _LEVEL) * math.sqrt(terms * value / ROUNDS)

    effects: dict[tuple[int, int], float] = {}
    together = []
    for cell in index:
        changed = [(axis, level) for axis, level in enumerate(cell) if level]
        if len(changed) == 1:
            effects[changed[0]] = mean[cell] - mean[blank]
    for cell in index:
        changed = [(axis, level) for axis, level in enumerate(cell) if level]
        if len(changed) == 2:
            rest = mean[cell] - mean[blank] - effects[changed[0]] - effects[changed[1]]
            if abs(rest) > max(error(4), delta / 2):
                together.append((changed[0][0], changed[1][0]))
    bound = {axis for pair in together for axis in pair}
    kept, dropped = [], {}
    for axis, count in enumerate(levels):
        values = {level: effects.get((axis, level), 0.0) for level in range(count) if (axis, level) not in refused}
        known = {level: log for level, log in values.items() if not level or (axis, level) in effects}
        least = min(known.values())
        own = []
        for level, log in known.items():
            if axis not in bound and log - least > delta + error(2):
                dropped[axis, level] = log - least
            else:
                own.append(level)
        kept.append(tuple(own))
    return Screened(kept=tuple(kept), together=tuple(together), dropped=dropped)


def raced(found: Screened) -> list[Cell]:
    """The product of what a screen kept."""
    return list(product(*found.kept))
