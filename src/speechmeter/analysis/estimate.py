"""One figure with its interval from the rounds of a case: every shown number is made here.

Estimate: geometric mean of round medians. Interval: 95 %, Student's t on their logarithms, from two rounds on. Scores
of quality do not vary between rounds: their interval is the bootstrap's over utterances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev
from typing import Literal

from speechmeter.analysis import scores
from speechmeter.analysis.derived import round_value, sample_values
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import IMPORTED
from speechmeter.core.types import Record

Verdict = Literal["real-time", "not real-time", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure that may be shown. `low` and `high` bound it at 95 %; None with a single round.

    `samples_per_round` is the smallest number of raw samples behind one round's figure. `statistic` says what `value`
    is; with `mean-sd` the bounds are one standard deviation either side, as the classic studies print it. Of a score
    it is `bootstrap`, and the samples are utterances; `imported` is a score that was taken elsewhere, with its bounds.
    """

    metric: Metric
    value: float
    low: float | None
    high: float | None
    rounds: int
    samples_per_round: int
    statistic: str = "geomean"

    @property
    def half_width(self) -> float | None:
        """Half the interval as a share of the figure's size; None without an interval or for a figure of zero."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    def scaled(self, metric: Metric, factor: float) -> Estimate:
        """The same figure times a constant, as another metric."""
        low, high = (None if bound is None else bound * factor for bound in (self.low, self.high))
        return replace(self, metric=metric, value=self.value * factor, low=low, high=high)


STATISTICS = ("geomean", "mean-sd", "mean+3sd", "p50", "p90", "p95", "p99", "max")
"""What a figure may be: our own over rounds, the classic ones over all samples, a percentile or the largest of them."""


def estimate(
    records: Sequence[Record], metric: Metric, scope: str = "total", statistic: str = "geomean"
) -> Estimate | None:
    """The figure over all rounds of one case; None when no round holds it. Raises ValueError for mixed cases."""
    if len({record.case.id for record in records}) > 1:
        raise ValueError("an estimate is made of the rounds of one case")
    if metric.id in scores.RULES:
        return _score(records, metric) if scope == "total" else None
    if statistic == "max" or (statistic != "geomean" and not metric.exact):
        return _pooled(records, metric, scope, statistic)
    found = [pair for record in records if (pair := round_value(record, metric, scope, records)) is not None]
    if not found:
        return None
    values = [value for value, _ in found]
    value, low, high = over_rounds(values, exact=metric.exact)
    return Estimate(
        metric=metric,
        value=value,
        low=low,
        high=high,
        rounds=len(values),
        samples_per_round=min(count for _, count in found),
    )


def _score(records: Sequence[Record], metric: Metric) -> Estimate | None:
    """A score over utterances with its bootstrap interval, or one that was imported with the interval it came with."""
    outside = scores.imported(records, metric)
    if outside is not None:
        low, high = outside.notes.get("low"), outside.notes.get("high")
        return Estimate(
            metric=metric,
            value=outside.values[0],
            low=low,
            high=high,
            rounds=1,
            samples_per_round=0,
            statistic=IMPORTED,
        )
    rows = scores.score_rows(records, metric)
    value = scores.score_of(rows, metric)
    if value is None:
        return None
    low, high = scores.score_interval(rows, metric.id) or (None, None)
    return Estimate(
        metric=metric, value=value, low=low, high=high, rounds=1, samples_per_round=len(rows), statistic="bootstrap"
    )


def samples_needed(statistic: str) -> int:
    """How many samples a percentile needs to be bounded at 95 %: 29 for p90, 59 for p95, 299 for p99."""
    if not statistic.startswith("p"):
        return 1 if statistic == "max" else 2
    tail = int(statistic[1:]) / 100
    return 1 if tail == 0.5 else math.ceil(math.log(0.05) / math.log(tail))


def _pooled(records: Sequence[Record], metric: Metric, scope: str, statistic: str) -> Estimate | None:
    """A statistic over the samples of all rounds together; None when there are too few for it."""
    rounds = [values for record in records if (values := sample_values(record, metric, scope, records))]
    values = sorted(value for round_ in rounds for value in round_)
    if len(values) < samples_needed(statistic):
        return None
    low = high = None
    if statistic.startswith("p"):
        value = values[min(len(values) - 1, math.ceil(int(statistic[1:]) / 100 * len(values)) - 1)]
    elif statistic == "max":
        value = values[-1]
    else:
        spread = stdev(values)
        value = fmean(values) + (3 * spread if statistic == "mean+3sd" else 0)
        low, high = (value - spread, value + spread) if statistic == "mean-sd" else (None, None)
    return Estimate(
        metric=metric,
        value=value,
        low=low,
        high=high,
        rounds=len(rounds),
        samples_per_round=min(map(len, rounds)),
        statistic=statistic,
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


def over_rounds(values: Sequence[float], *, exact: bool) -> tuple[float, float | None, float | None]:
    """The figure of several rounds and its bounds at 95 %: the geometric mean, or the median of what is exact."""
    if exact:
        return median(values), None, None
    if len(values) == 1:
        return values[0], None, None
    if min(values) <= 0:  # a growth of zero bytes has no logarithm
        centre, half = fmean(values), _half_width(values)
        return centre, centre - half, centre + half
    logs = [math.log(value) for value in values]
    centre, half = fmean(logs), _half_width(logs)
    return _exp(centre), _exp(centre - half), _exp(centre + half)


def _exp(power: float) -> float:
    try:
        return math.exp(power)
    except OverflowError:  # a spread without measure
        return math.inf


def _half_width(values: Sequence[float]) -> float:
    return t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))


def t_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t. Usual numbers of rounds need no scipy, whose import costs 0.4 s."""
    if degrees <= len(_T_975):
        return _T_975[degrees - 1]
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


_T_975 = (
    12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934, 2.5705818356363146,
    2.4469118511449786, 2.364624251592784, 2.306004135204166, 2.262157162798205, 2.228138851986274,
    2.200985160091639, 2.1788128296672284, 2.1603686564627913, 2.144786687917804, 2.131449545559776,
    2.1199052992212546, 2.1098155778333156, 2.1009220402410382, 2.0930240544083087, 2.085963447265864,
    2.0796138447276795, 2.0738730679040254, 2.0686576104190486, 2.0638985616280245,
)  # fmt: skip
