"""Figures with their intervals at 95 %: Student's t over rounds, and Spearman's rank correlation over models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from speechmeter.core.metrics import RANK_CORRELATION, Metric

NORMAL_975 = 1.959963984540054
LEAST = 4
"""Fewer models than this have no rank correlation with an interval."""
_T_975 = (
    12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934, 2.5705818356363146,
    2.4469118511449786, 2.364624251592784, 2.306004135204166, 2.262157162798205, 2.228138851986274,
    2.200985160091639, 2.1788128296672284, 2.1603686564627913, 2.144786687917804, 2.131449545559776,
    2.1199052992212546, 2.1098155778333156, 2.1009220402410382, 2.0930240544083087, 2.085963447265864,
    2.0796138447276795, 2.0738730679040254, 2.0686576104190486, 2.0638985616280245,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, repr=False)
class Quantity:
    """A number that may be shown. `low` and `high` bound it at 95 %; None where there is no interval.

    `rounds` and `samples_per_round` are what it was made from, and `statistic` says in a word what it is.
    """

    metric: Metric
    value: float
    low: float | None
    high: float | None
    rounds: int
    samples_per_round: int
    statistic: str = ""

    def __repr__(self) -> str:
        value = f"{self.value:.6g} {self.metric.unit}".removesuffix(" 1")
        interval = "" if self.low is None or self.high is None else f", low={self.low:.6g}, high={self.high:.6g}"
        return f"{type(self).__name__}({self.metric.name}={value}{interval}, rounds={self.rounds})"

    @property
    def half_width(self) -> float | None:
        """Half the interval as a share of the figure's size; None without an interval or for a figure of zero."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / 2 / abs(self.value)


@dataclass(frozen=True, kw_only=True)
class Correlation(Quantity):
    """Spearman's rho of two figures over models; the models are its samples."""


def t_quantile(degrees: float, level: float = 0.975) -> float:
    """A quantile of Student's t. Usual numbers of rounds need no scipy, whose import costs 0.4 s."""
    if level == 0.975 and degrees == int(degrees) and 1 <= degrees <= len(_T_975):
        return _T_975[int(degrees) - 1]
    from scipy.special import ndtri, stdtrit

    return float(ndtri(level)) if math.isinf(degrees) else float(stdtrit(degrees, level))


def t_tail(t: float, degrees: float) -> float:
    """The probability that Student's t exceeds a value."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(-t)) if math.isinf(degrees) else float(stdtr(degrees, -t))


def half_width(values: Sequence[float]) -> float:
    """Half the 95 % interval of the mean of several values."""
    return t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))


def over_rounds(values: Sequence[float], *, exact: bool) -> tuple[float, float | None, float | None]:
    """The figure of several rounds and its bounds at 95 %: the geometric mean, or the median of what is exact."""
    if exact:
        return median(values), None, None
    if len(values) == 1:
        return values[0], None, None
    if min(values) <= 0:  # a growth of zero bytes has no logarithm
        centre, half = fmean(values), half_width(values)
        return centre, centre - half, centre + half
    logs = [math.log(value) for value in values]
    centre, half = fmean(logs), half_width(logs)
    return bounded_exp(centre), bounded_exp(centre - half), bounded_exp(centre + half)


def bounded_exp(power: float) -> float:
    """e to a power; infinite where two rounds differ so much that a bound is beyond all numbers."""
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> Correlation | None:
    """Rho of two series of equal length, with its 95 % interval; None for too few points or a constant series.

    The interval is Fisher's, with the variance of Bonett and Wright for ranks: (1 + rho² / 2) / (n − 3). A perfect
    order has no such interval: it is taken half a step below 1, a step being what one exchange of neighbours costs.
    """
    n = len(first)
    rho = _pearson(_ranks(first), _ranks(second)) if n >= LEAST else None
    if rho is None:
        return None
    step = 12 / (n * (n * n - 1))
    centre = math.copysign(math.atanh(min(abs(rho), 1 - step / 2)), rho)
    half = NORMAL_975 * math.sqrt((1 + rho * rho / 2) / (n - 3))
    return Correlation(
        metric=RANK_CORRELATION, value=rho, low=math.tanh(centre - half), high=math.tanh(centre + half),
        rounds=1, samples_per_round=n,
    )  # fmt: skip


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    ordered = sorted(values)
    return [(ordered.index(value) + 1 + len(ordered) - ordered[::-1].index(value)) / 2 for value in values]


def _pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    mean_first, mean_second = sum(first) / len(first), sum(second) / len(second)
    pairs = [(a - mean_first, b - mean_second) for a, b in zip(first, second, strict=True)]
    spread = math.sqrt(sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs))
    return sum(a * b for a, b in pairs) / spread if spread else None
