"""The figure of a live metric over all conversations of a case, with its interval over utterances and rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.analysis.live.resampling import LEAST_ROUNDS, drawn, middle, percentile, percentiles, ratios
from speechmeter.analysis.live.samples import POOLED, Samples, samples_of
from speechmeter.analysis.rate_intervals import Unit, rate_interval, share_interval
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record

Ends = tuple[float | None, float | None]
_MOST_SHARES = 120
"""Points of a curve."""
TYPICAL, LARGEST = "p50", "max"
"""The percentile of conversations that is shown where none is asked for, and the largest value of all."""


@dataclass(frozen=True, kw_only=True)
class LiveFigure:
    """A percentile of values or a ratio of sums. `beyond_s` is the timeout: from there on a value is only known to be
    at least as long. `utterances` counts distinct ones; `over_rounds` says that rounds were resampled too.
    """

    value: float
    low: float | None
    high: float | None
    rounds: int
    utterances: int
    statistic: str
    beyond_s: float | None = None
    over_rounds: bool = False


def live_figure(records: Sequence[Record], metric: Metric, statistic: str = TYPICAL) -> LiveFigure | None:
    """The figure of one case; None without values, and for a percentile that too few distinct utterances support."""
    samples = samples_of(records, metric)
    if samples is None:
        return None
    return _ratio(samples, metric) if metric.combined == POOLED else _percentile(samples, statistic)


def round_figure(record: Record, metric: Metric) -> tuple[float, int] | None:
    """(the figure of one round, its number of values); None without any."""
    samples = samples_of([record], metric)
    if samples is None:
        return None
    if metric.combined == POOLED:
        value = (
            None if samples.above is None else scale_of(metric) * float(ratios(sum(samples.above), sum(samples.below)))
        )
    else:
        value = _known(percentile(samples.values, share_of(TYPICAL)), samples.timeout_s)
    return None if value is None else (value, len(samples.values))


def share_of(statistic: str) -> float:
    """The share that a percentile is of; 1 for the largest value."""
    return 1.0 if statistic == LARGEST else int(statistic[1:]) / 100


def _percentile(samples: Samples, statistic: str) -> LiveFigure | None:
    share = share_of(statistic)
    if samples.heard < least_utterances(statistic):
        return None
    ends: Ends = None, None
    weights = None if statistic == LARGEST else drawn(len(samples.utterances), len(samples.rounds))
    if weights is not None:
        ends = middle(percentiles(samples.values, weights.of(samples.unit, samples.round), share)) or ends
    value, low, high = (_known(end, samples.timeout_s) for end in (percentile(samples.values, share), *ends))
    assert value is not None
    return LiveFigure(
        value=value, low=low, high=high, rounds=len(samples.rounds), utterances=samples.heard, statistic=statistic,
        beyond_s=samples.timeout_s, over_rounds=len(samples.rounds) >= LEAST_ROUNDS,
    )  # fmt: skip


def _known(value: float | None, timeout_s: float | None) -> float | None:
    """The timeout in place of an answer that never came."""
    return timeout_s if value is not None and math.isinf(value) else value


def least_utterances(statistic: str) -> int:
    """How many distinct utterances a percentile above the median needs: 29 for p90, 59 for p95, 299 for p99."""
    share = share_of(statistic)
    return 1 if share <= 0.5 or statistic == LARGEST else math.ceil(math.log(0.05) / math.log(share))


def _ratio(samples: Samples, metric: Metric) -> LiveFigure | None:
    if samples.above is None:
        return None
    scale = scale_of(metric)
    above, below = by_cell(samples)
    value = float(ratios(above.sum(), below.sum()))
    ends: Ends = None, None
    weights = drawn(len(samples.utterances), len(samples.rounds))
    if weights is not None:
        resampled = ratios(*(weighted(sums, weights) for sums in (above, below)))
        if is_share(samples):
            ends = _of_share(value, resampled, samples)
        elif (found := middle(resampled)) is not None:
            ends = _not_narrower(found, above, below, metric)
    return LiveFigure(
        value=scale * value, low=None if ends[0] is None else scale * ends[0],
        high=None if ends[1] is None else scale * ends[1], rounds=len(samples.rounds), utterances=samples.heard,
        statistic=POOLED, over_rounds=len(samples.rounds) >= LEAST_ROUNDS,
    )  # fmt: skip


def scale_of(metric: Metric) -> float:
    """100 for a percentage."""
    return 100.0 if metric.unit == "%" else 1.0


def by_cell(samples: Samples) -> tuple[Any, Any]:
    """(sums above, sums below) by utterance and round."""
    import numpy as np

    sums = []
    for column in (samples.above, samples.below):
        cells = np.zeros((len(samples.utterances), len(samples.rounds)))
        np.add.at(cells, (samples.unit, samples.round), column)
        sums.append(cells)
    return sums[0], sums[1]


def weighted(cells: Any, weights: Any) -> Any:
    """The sum over all cells in each resample."""
    import numpy as np

    return np.einsum("bu,ur,br->b", weights.utterances, cells, weights.rounds, optimize=True)


def rate_units(above: Any, below: Any) -> tuple[Unit, ...]:
    """The sums of each utterance over all rounds."""
    return tuple(zip(above.sum(axis=1).tolist(), below.sum(axis=1).tolist(), strict=True))


def is_share(samples: Samples) -> bool:
    """Whether each conversation is or is not what is counted, as with completeness."""
    import numpy as np

    return bool((samples.below == 1).all() and np.isin(samples.above, (0, 1)).all())


def _of_share(value: float, resampled: Any, samples: Samples) -> Ends:
    """The exact interval of a share (Clopper and Pearson), with as many conversations as there are utterances.

    Where rounds differ by more than that many utterances do, with as many as explain the spread of the resamples
    (Korn and Graubard, 1998).
    """
    size, spread = float(samples.heard), float(resampled.var())
    if len(samples.rounds) >= LEAST_ROUNDS and spread > 0:
        size = min(size, value * (1 - value) / spread)
    return share_interval(value * size, size)


def _not_narrower(found: tuple[float, float], above: Any, below: Any, metric: Metric) -> tuple[float, float]:
    """A share is bounded by what utterances without a fault can show too: none of 20 at fault is not none at all."""
    if metric.unit != "%":
        return found
    higher = metric.direction == "higher"
    own = rate_interval(rate_units(below - above if higher else above, below))
    if own is None:
        return found
    low, high = (1 - own[1], 1 - own[0]) if higher else own
    return min(found[0], low), max(found[1], high)


def shares_by_delay(records: Sequence[Record], metric: Metric) -> list[tuple[float, float, float | None, float | None]]:
    """(delay, share of conversations that were no longer, low, high) at each delay, in order; for a curve.

    A missing answer is in no share. There are no bounds with too few utterances for an interval.
    """
    import numpy as np

    samples = samples_of(records, metric)
    if samples is None:
        return []
    order = np.argsort(samples.values, kind="stable")
    values = samples.values[order]
    places = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST_SHARES)).round().astype(int))
    shares = (places + 1) / len(values)
    low: list[float | None] = [None] * len(places)
    high = low
    weights = drawn(len(samples.utterances), len(samples.rounds))
    if weights is not None:
        own = weights.of(samples.unit, samples.round)[:, order]
        reached = np.cumsum(own, axis=1)
        each = np.sort((reached[:, places] / np.maximum(reached[:, -1:], 1)), axis=0)
        low, high = (each[round(end * (len(each) - 1))].tolist() for end in (0.025, 0.975))
    rows = zip(values[places].tolist(), shares.tolist(), low, high, strict=True)
    return [row for row in rows if not math.isinf(row[0])]
