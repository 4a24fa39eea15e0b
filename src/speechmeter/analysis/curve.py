"""A curve a + b·x + c·x² through a few points, no part of it negative: least squares of relative errors.

Written out for three parts: `show` starts in a moment, and a general solver takes longer to import than this to run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

_PARTS = (0, 1, 2)
_FLAT = 1e-12


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The three parts, of x as a share of `unit`."""

    parts: tuple[float, float, float]
    unit: float

    def at(self, x: float) -> float:
        """The value at x."""
        share = x / self.unit
        return sum(part * share**power for power, part in enumerate(self.parts))

    def quadratic_share(self, x: float) -> float:
        """What c·x² is of the value at x, from 0 to 1."""
        whole = self.at(x)
        return self.parts[2] * (x / self.unit) ** 2 / whole if whole > 0 else 0.0

    def worst(self, xs: Sequence[float], ys: Sequence[float]) -> float:
        """The largest relative distance from the points."""
        return max(abs(self.at(x) / y - 1) for x, y in zip(xs, ys, strict=True))


def fit(xs: Sequence[float], ys: Sequence[float]) -> Curve:
    """The curve nearest to points whose values are all positive."""
    unit = max(xs)
    rows = [tuple((x / unit) ** power / y for power in _PARTS) for x, y in zip(xs, ys, strict=True)]
    best = min(_candidates(rows), key=lambda parts: _distance(rows, parts))
    return Curve(parts=best, unit=unit)


def _candidates(rows: Sequence[tuple[float, ...]]) -> Iterator[tuple[float, float, float]]:
    """Solutions with some parts at zero and none below it; the one with all three, where it is such, is the best."""
    for count in (3, 2, 1):
        found = [parts for kept in combinations(_PARTS, count) if (parts := _solved(rows, kept)) is not None]
        yield from found
        if count == len(_PARTS) and found:
            return


def _solved(rows: Sequence[tuple[float, ...]], kept: Sequence[int]) -> tuple[float, float, float] | None:
    """The least squares of Σ part × column = 1 over some columns; None where a part is negative or undetermined."""
    matrix = [[sum(row[i] * row[j] for row in rows) for j in kept] + [sum(row[i] for row in rows)] for i in kept]
    for i, pivot in enumerate(matrix):
        if abs(pivot[i]) < _FLAT * abs(sum(row[kept[i]] ** 2 for row in rows)):
            return None
        for j, other in enumerate(matrix):
            if j != i:
                factor = other[i] / pivot[i]
                matrix[j] = [value - factor * above for value, above in zip(other, pivot, strict=True)]
    parts = dict(zip(kept, (row[-1] / row[i] for i, row in enumerate(matrix)), strict=True))
    if min(parts.values()) < 0:
        return None
    return parts.get(0, 0.0), parts.get(1, 0.0), parts.get(2, 0.0)


def _distance(rows: Sequence[tuple[float, ...]], parts: Sequence[float]) -> float:
    return sum((sum(part * value for part, value in zip(parts, row, strict=True)) - 1) ** 2 for row in rows)
