"""How figures go together over models: Spearman's rank correlation with its interval, within one cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from speechmeter.analysis.estimate import Estimate
from speechmeter.core.metrics import RANK_CORRELATION

LEAST = 4
"""Fewer models than this have no interval at all."""
_NORMAL_975 = 1.959963984540054


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> Estimate | None:
    """Rho of two series of equal length, with its 95 % interval; None for too few points or a constant series.

    The interval is Fisher's, with the variance of Bonett and Wright for ranks: (1 + rho² / 2) / (n − 3). A perfect
    order has no such interval: it is taken half a step below 1, a step being what one exchange of neighbours costs.
    """
    n = len(first)
    rho = _pearson(_ranks(first), _ranks(second)) if n >= LEAST else None
    if rho is None:
        return None
    step = 12 / (n * (n * n - 1))
    bound = min(abs(rho), 1 - step / 2)
    centre = math.copysign(math.atanh(bound), rho)
    half = _NORMAL_975 * math.sqrt((1 + rho * rho / 2) / (n - 3))
    return Estimate(
        metric=RANK_CORRELATION,
        value=rho,
        low=math.tanh(centre - half),
        high=math.tanh(centre + half),
        rounds=1,
        samples_per_round=n,
        statistic="rho",
    )


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    ordered = sorted(values)
    return [(ordered.index(value) + 1 + len(ordered) - ordered[::-1].index(value)) / 2 for value in values]


def _pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    mean_first, mean_second = sum(first) / len(first), sum(second) / len(second)
    pairs = [(a - mean_first, b - mean_second) for a, b in zip(first, second, strict=True)]
    spread = math.sqrt(sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs))
    return sum(a * b for a, b in pairs) / spread if spread else None
