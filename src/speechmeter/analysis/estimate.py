"""One figure with its interval from the rounds of a case: every shown number is made here.

Estimate: geometric mean of round medians. Interval: 95 %, Student's t on their logarithms, from two rounds on. What
adds up is a plain mean instead (see `means`); the metric's definition says which. Scores of quality do not vary
between rounds: their interval is over utterances (see `scores`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Literal

from speechmeter.analysis import scores
from speechmeter.analysis.derived import round_value, sample_values
from speechmeter.analysis.intervals import Quantity, bounded_exp, over_rounds, t_quantile
from speechmeter.analysis.live.figures import TYPICAL, least_utterances, live_figure
from speechmeter.analysis.live.samples import POOLED, is_live
from speechmeter.analysis.means import (
    Bounds,
    call_shares,
    is_divided,
    mean_bounds,
    ratio_bounds,
    ratio_of_means,
    ratio_rounds,
    round_means,
)
from speechmeter.analysis.stated import is_stated, stated_figure
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import IMPORTED
from speechmeter.core.stated import STATED
from speechmeter.core.types import FAILED, Pilot, Record

Verdict = Literal["real-time", "not real-time", "undecided"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Estimate(Quantity):
    """The figure of one case. Without an interval it is of a single round, or of what does not vary.

    `samples_per_round` is the smallest number of raw samples behind one round's figure. With the statistic `mean-sd`
    the bounds are one standard deviation either side, as the classic studies print it. Of what adds up the statistic is
    `mean`, of a share of it `ratio`. Of a score it says how the interval was made (see `scores.KINDS`), and the samples
    are utterances; `imported` is a score that was taken elsewhere, with its bounds. `failed` of the `tried` rounds of
    the case ended without a figure. A live metric is a percentile of its conversations, or `pooled`; the samples are
    distinct utterances, and of `beyond_s` seconds or more it is only known that no answer came before.
    """

    statistic: str = "geomean"
    failed: int = 0
    tried: int = 0
    beyond_s: float | None = None

    @property
    def is_resampled(self) -> bool:
        """Whether it is a percentile or a ratio over conversations, with an interval over utterances and rounds."""
        return is_live(self.metric) and not self.statistic.startswith("mean")

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
    if len(records) > 1 and len({record.case.id for record in records}) > 1:
        raise ValueError("an estimate needs rounds of one case only")
    found = _estimate(records, metric, scope, statistic)
    if found is None:
        return None
    failed = sum([record.status in FAILED for record in records])
    return replace(found, failed=failed, tried=len(records)) if failed else found


def _estimate(records: Sequence[Record], metric: Metric, scope: str, statistic: str) -> Estimate | None:
    if metric.id in scores.RULES:
        return _score(records, metric) if scope == "total" else None
    if is_stated(metric):
        return _stated(records, metric, statistic) if scope == "total" else None
    if metric.id == metrics.RTFX.id:  # whatever the statistic is, one is the inverse of the other
        # one over a figure, as another metric; bounds that reach 0 have no inverse
        figure = _estimate(records, metrics.RTF, scope, statistic)
        if figure is None or figure.value <= 0:
            return None
        inverse = replace(figure, metric=metric, value=1 / figure.value, low=None, high=None)
        if figure.low is None or figure.high is None or figure.low <= 0:
            return inverse
        return replace(inverse, low=1 / figure.high, high=1 / figure.low)
    if is_live(metric):
        return _of_conversations(records, metric, scope, statistic)
    if statistic == "max" or (statistic != "geomean" and not metric.exact):
        return _pooled(records, metric, scope, statistic)
    if metric.combined == "mean":
        return mean_of_calls(records, metric, scope)
    if metric.combined == "ratio":
        ratios = ratio_rounds(records, metric, scope)
        value = ratio_of_means(ratios)
        return None if value is None else _made(metric, value, ratio_bounds(ratios), [r.calls for r in ratios], "ratio")
    if is_divided(records, metric, scope):
        return _divided(records, metric, scope)
    found = [pair for record in records if (pair := round_value(record, metric, scope, records)) is not None]
    if not found:
        return None
    values = [value for value, _ in found]
    value, *bounds = over_rounds(values, exact=metric.exact)
    pilot = _pilot(records) if metric.id in _PILOTED and scope == "total" else None
    if pilot is not None and min(values) > 0:
        # Stein's interval: a first stage chose the number of rounds by its spread, and later rounds must not change it
        centre = fmean(map(math.log, values))
        half = t_quantile(pilot.degrees) * pilot.sd / math.sqrt(len(values))
        bounds = [bounded_exp(centre - half), bounded_exp(centre + half)]
    return _made(metric, value, bounds, [count for _, count in found])


def _pilot(records: Sequence[Record]) -> Pilot | None:
    return next((record.pilot for record in records if record.pilot is not None), None)


_PILOTED = {m.id for m in (metrics.LATENCY, metrics.RTF, metrics.THROUGHPUT, metrics.LATENCY_PER_TOKEN)}
"""Figures that vary as the latency does, by whose spread the number of rounds may have been chosen."""


def mean_of_calls(records: Sequence[Record], metric: Metric, scope: str) -> Estimate | None:
    """The mean over the calls of each round, and over rounds; of parts that add up in a call, it adds up too."""
    rounds = round_means(records, metric, scope)
    values = [one.value for one in rounds]
    return _made(metric, fmean(values), mean_bounds(values), [one.calls for one in rounds], "mean") if rounds else None


def _divided(records: Sequence[Record], metric: Metric, scope: str) -> Estimate | None:
    """A stage's share of the call's figure; its interval is as wide as that of its figures in the rounds."""
    whole, rounds = _estimate(records, metric, "total", "geomean"), call_shares(records, scope)
    share = ratio_of_means(rounds)
    if whole is None or share is None:
        return None
    calls = [(one, round_value(one.record, metric, "total", records)) for one in rounds if one.below]
    own = [found[0] * one.above / one.below for one, found in calls if found is not None]
    centre, low, high = over_rounds(own, exact=False)
    value = whole.value * share
    scale = value / centre if centre else 1.0
    low, high = (None if bound is None else bound * scale for bound in (low, high))
    return replace(whole, value=value, low=low, high=high)


def _made(
    metric: Metric, value: float, bounds: Sequence[float | None], samples: Sequence[int], statistic: str = "geomean"
) -> Estimate:
    """`samples` are how many are behind each round."""
    return Estimate(
        metric=metric, value=value, low=bounds[0], high=bounds[1], rounds=len(samples),
        samples_per_round=min(samples), statistic=statistic,
    )  # fmt: skip


def _score(records: Sequence[Record], metric: Metric) -> Estimate | None:
    """A score over utterances with its bootstrap interval, or one that was imported with the interval it came with."""
    outside = scores.imported(records, metric)
    if outside is not None:
        return _made(metric, outside.values[0], (outside.notes.get("low"), outside.notes.get("high")), [0], IMPORTED)
    rows = scores.score_rows(records, metric)
    value = scores.score_of(rows, metric)
    if value is None:
        return None
    speakers = scores.speakers_of(records)
    kind, _ = scores.interval_kind(rows, metric.id, speakers)
    return _made(metric, value, scores.score_interval(rows, metric.id, speakers) or (None, None), [len(rows)], kind)


def _stated(records: Sequence[Record], metric: Metric, statistic: str) -> Estimate | None:
    """What files of another tool say, with the bounds that they say."""
    found = stated_figure(records, metric, statistic)
    if found is None:
        return None
    return _made(metric, found.value, (found.low, found.high), [found.samples] * found.rounds, STATED)


def _of_conversations(records: Sequence[Record], metric: Metric, scope: str, statistic: str) -> Estimate | None:
    """A percentile over conversations, the median unless another is asked for; or their pooled ratio."""
    if scope != "total":
        return None
    if statistic.startswith("mean") and metric.combined != POOLED:
        # a mean of answers alone would flatter a system that does not answer
        some_missing = any(m.notes.get("missing") for r in records if (m := r.find(metric.id)) is not None)
        return None if some_missing else _pooled(records, metric, scope, statistic)
    found = live_figure(records, metric, TYPICAL if statistic == "geomean" else statistic)
    if found is None:
        return None
    made = _made(metric, found.value, (found.low, found.high), [found.utterances] * found.rounds, found.statistic)
    return replace(made, beyond_s=found.beyond_s)


def samples_needed(statistic: str) -> int:
    """How many samples a percentile needs to be bounded at 95 %: 29 for p90, 59 for p95, 299 for p99."""
    if statistic.startswith("mean"):
        return 2
    return least_utterances(statistic)


def _pooled(records: Sequence[Record], metric: Metric, scope: str, statistic: str) -> Estimate | None:
    """A statistic over the samples of all rounds together; None when there are too few for it."""
    rounds = [values for record in records if (values := sample_values(record, metric, scope, records))]
    values = sorted(value for round_ in rounds for value in round_)
    if len(values) < samples_needed(statistic):
        return None
    bounds: Bounds = None, None
    if statistic.startswith("p"):
        value = values[min(len(values) - 1, math.ceil(int(statistic[1:]) / 100 * len(values)) - 1)]
    elif statistic == "max":
        value = values[-1]
    else:
        spread = stdev(values)
        value = fmean(values) + (3 * spread if statistic == "mean+3sd" else 0)
        bounds = (value - spread, value + spread) if statistic == "mean-sd" else bounds
    return _made(metric, value, bounds, [*map(len, rounds)], statistic)


def real_time(figure: Estimate) -> Verdict:
    """Whether a real-time factor keeps up; undecided when its interval crosses 1."""
    if figure.metric.id != metrics.RTF.id:
        raise ValueError("only the real-time factor can be compared with real time")
    low = figure.value if figure.low is None else figure.low
    high = figure.value if figure.high is None else figure.high
    if high < 1:
        return "real-time"
    return "not real-time" if low > 1 else "undecided"
