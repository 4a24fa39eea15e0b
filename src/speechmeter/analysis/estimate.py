"""One figure with its interval from the rounds of a case: every shown number is made here.

Estimate: geometric mean of round medians. Interval: 95 %, Student's t on their logarithms, from two rounds on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Literal

from speechmeter.analysis.derived import round_value
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record

Verdict = Literal["real-time", "not real-time", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure that may be shown. `low` and `high` bound it at 95 %; None with a single round.

    `samples_per_round` is the smallest number of raw samples behind one round's figure.
    """

    metric: Metric
    value: float
    low: float | None
    high: float | None
    rounds: int
    samples_per_round: int


def estimate(records: Sequence[Record], metric: Metric, scope: str = "total") -> Estimate | None:
    """The figure over all rounds of one case; None when no round holds it. Raises ValueError for mixed cases."""
    if len({record.case.id for record in records}) > 1:
        raise ValueError("an estimate is made of the rounds of one case")
    found = [pair for record in records if (pair := round_value(record, metric, scope)) is not None]
    if not found:
        return None
    values = [value for value, _ in found]
    value, low, high = _interval(values, exact=metric.exact)
    return Estimate(
        metric=metric,
        value=value,
        low=low,
        high=high,
        rounds=len(values),
        samples_per_round=min(count for _, count in found),
    )


def real_time(figure: Estimate) -> Verdict:
    """Whether a real-time factor keeps up; undecided when its interval crosses 1."""
    if figure.metric.id != metrics.RTF.id:
        raise ValueError("only a real-time factor can be real-time")
    low = figure.value if figure.low is None else figure.low
    high = figure.value if figure.high is None else figure.high
    if high < 1:
        return "real-time"
    return "not real-time" if low > 1 else "undecided"


def _interval(values: Sequence[float], *, exact: bool) -> tuple[float, float | None, float | None]:
    if exact:
        return median(values), None, None
    if len(values) == 1:
        return values[0], None, None
    if min(values) <= 0:  # a growth of zero bytes has no logarithm
        centre, half = fmean(values), _half_width(values)
        return centre, centre - half, centre + half
    logs = [math.log(value) for value in values]
    centre, half = fmean(logs), _half_width(logs)
    return math.exp(centre), math.exp(centre - half), math.exp(centre + half)


def _half_width(values: Sequence[float]) -> float:
    return t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))


def t_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t. Usual numbers of rounds need no scipy, whose import costs 0.4 s."""
    if degrees <= len(_T_975):
        return _T_975[degrees - 1]
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


_T_975 = (
    12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836, 2.446911851, 2.364624252, 2.306004135,
    2.262157163, 2.228138852, 2.200985160, 2.178812830, 2.160368656, 2.144786688, 2.131449546, 2.119905299,
    2.109815578, 2.100922040, 2.093024054, 2.085963447, 2.079613845, 2.073873068, 2.068657610, 2.063898562,
)  # fmt: skip
