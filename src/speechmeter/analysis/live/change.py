"""Two live cases that heard the same utterances: how much later, more restless or less right the second one is.

Every utterance is heard by both systems, so that they are compared by pairs. Delays are compared on their own scale,
since they may be negative. An utterance that only one side heard is left out; an answer that is missing on one side
counts as the timeout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.live.figures import TYPICAL, by_cell, is_share, least_utterances, scale_of, share_of, weighted
from speechmeter.analysis.live.resampling import (
    LEAST_ROUNDS,
    LEAST_UTTERANCES,
    Weights,
    drawn,
    middle,
    percentile,
    percentiles,
    ratios,
)
from speechmeter.analysis.live.samples import POOLED, Samples, names_of, samples_of
from speechmeter.analysis.orders import Difference, no_difference
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record

Pair = tuple[Samples, Samples]
Drawn = tuple[Weights, Weights]
_CHUNK = 4_000_000
"""Weights of differences that are held in memory at once."""


def paired_change(
    base: Sequence[Record], new: Sequence[Record], metric: Metric, statistic: str = TYPICAL, *, together: bool
) -> Difference:
    """NEW − BASE over the utterances that both heard, in the metric's unit, with its interval at 95 %.

    Of a delay the figure is the median of the differences of all utterances in all rounds, or of all words that both
    got right; of another percentile it is the difference of the two percentiles. A mean over rounds would turn one
    missing answer in five into a delay of a fifth of the timeout, which nobody felt.

    `together` says that both come from one run: the rounds of one number were then measured side by side, and are
    compared and resampled together. Of runs apart, every round of one is compared with every round of the other.
    """
    shared = {name for record in base for name in names_of(record)} & {
        name for record in new for name in names_of(record)
    }
    if not shared:
        return no_difference("the two systems have no utterance in common")
    sides = samples_of(base, metric, only=shared), samples_of(new, metric, only=shared)
    if sides[0] is None or sides[1] is None:
        return no_difference(f"{metric.title} was not measured for both systems on the same utterances")
    pair = _without_infinity((sides[0], sides[1]))
    weights = _weights(pair, together=together)
    if metric.combined == POOLED:
        return _of_ratios(pair, weights, metric)
    if statistic != TYPICAL:
        return _of_percentiles(pair, weights, metric, statistic)
    return _of_pairs(pair, weights, metric, together=together)


def _without_infinity(sides: Pair) -> Pair:
    """A missing answer as the timeout: differences of infinite delays say nothing."""
    import numpy as np

    limits = [side.timeout_s for side in sides if side.timeout_s is not None]
    if not limits:
        return sides
    known = [float(value) for side in sides for value in side.values[~np.isinf(side.values)]]
    beyond = max([*limits, *known])  # also what came later than the timeout was sooner than what never came
    made = [replace(side, values=np.where(np.isinf(side.values), beyond, side.values)) for side in sides]
    return made[0], made[1]


def _weights(sides: Pair, *, together: bool) -> Drawn | None:
    """The same utterances on both sides; the same rounds too, where both were measured in them."""
    base, new = sides
    one = drawn(len(base.utterances), len(base.rounds))
    joint = together and base.rounds == new.rounds
    other = drawn(len(new.utterances), len(new.rounds), 0 if joint else 1)
    return None if one is None or other is None else (one, other)


def _of_pairs(sides: Pair, weights: Drawn | None, metric: Metric, *, together: bool) -> Difference:
    import numpy as np

    places = max(int(side.place.max()) for side in sides) + 1
    keys = [side.unit * places + side.place for side in sides]
    items = np.intersect1d(*keys)
    if not len(items):
        return no_difference("no utterance and no correctly recognised word has a value in both systems")
    cells = [_by_round(side, key, items) for side, key in zip(sides, keys, strict=True)]
    joint = together and sides[0].rounds == sides[1].rounds
    base, new = (np.arange(each.shape[1]) for each in cells)
    rounds: tuple[Any, ...] = (base, new) if joint else tuple(map(np.ravel, np.meshgrid(base, new, indexing="ij")))
    apart = cells[1][:, rounds[1]] - cells[0][:, rounds[0]]
    item, pair = np.nonzero(~np.isnan(apart))
    values, unit = apart[item, pair], items[item] // places
    if not len(values):
        return no_difference("there is no round in which both systems have a value for the same utterance or word")
    found = None
    if weights is not None:
        drawn_rounds = (weights[0].rounds,) if joint else (weights[0].rounds, weights[1].rounds)
        of_pairs = [each[:, own] for each, own in zip(drawn_rounds, rounds, strict=False)]
        found = _medians(values, weights[0].utterances, unit, np.prod(of_pairs, axis=0), pair)
    return _made(metric, percentile(values, share_of(TYPICAL)), found, sides, len(np.unique(unit)))


def _by_round(side: Samples, keys: Any, items: Any) -> Any:
    """(items, rounds): the value of an utterance or a word in a round, the median of several; not a number without."""
    import numpy as np

    kept = np.flatnonzero(np.isin(keys, items))
    cell = np.searchsorted(items, keys[kept]) * len(side.rounds) + side.round[kept]
    order = np.lexsort((side.values[kept], cell))
    known, first, count = np.unique(cell[order], return_index=True, return_counts=True)
    made = np.full(len(items) * len(side.rounds), np.nan)
    made[known] = side.values[kept][order][first + (count - 1) // 2]
    return made.reshape(len(items), len(side.rounds))


def _medians(values: Any, utterances: Any, unit: Any, rounds: Any, pair: Any) -> Any:
    """The median of the differences in each resample: each counts as often as its utterance and its rounds do."""
    import numpy as np

    step = max(1, _CHUNK // len(values))
    parts = (slice(start, start + step) for start in range(0, len(utterances), step))
    share = share_of(TYPICAL)
    return np.concatenate([
        percentiles(values, utterances[part][:, unit] * rounds[part][:, pair], share) for part in parts
    ])  # fmt: skip


def _of_percentiles(sides: Pair, weights: Drawn | None, metric: Metric, statistic: str) -> Difference:
    heard, least = min(side.heard for side in sides), least_utterances(statistic)
    if heard < least:
        return no_difference(f"{statistic} needs {least} shared utterances, but there are {heard}")
    share = share_of(statistic)
    values = [percentile(side.values, share) for side in sides]
    found = None
    if weights is not None:
        each = [
            percentiles(side.values, own.of(side.unit, side.round), share)
            for side, own in zip(sides, weights, strict=True)
        ]
        found = each[1] - each[0]
    return _made(metric, values[1] - values[0], found, sides, heard)


def _of_ratios(sides: Pair, weights: Drawn | None, metric: Metric) -> Difference:
    cells = [by_cell(side) for side in sides]
    counted = [(below.sum(axis=1) > 0).tolist() for _, below in cells]
    if metric.unit == "%" and counted[0] != counted[1] and not all(map(is_share, sides)):
        return no_difference("the two systems have different reference texts")
    values = [float(ratios(above.sum(), below.sum())) for above, below in cells]
    found = None
    if weights is not None:
        each = [
            ratios(weighted(above, own), weighted(below, own))
            for (above, below), own in zip(cells, weights, strict=True)
        ]
        found = scale_of(metric) * (each[1] - each[0])
    heard = min(side.heard for side in sides)
    return _made(metric, scale_of(metric) * (values[1] - values[0]), found, sides, heard)


def _made(metric: Metric, value: float, found: Any, sides: Pair, heard: int) -> Difference:
    low, high = (None if found is None else middle(found)) or (None, None)
    made = Estimate(
        metric=metric, value=value, low=low, high=high, rounds=min(len(side.rounds) for side in sides),
        samples_per_round=heard, statistic="difference",
    )  # fmt: skip
    if low is None or high is None:
        reason = f"an interval needs at least {LEAST_UTTERANCES} shared utterances, but there are {heard}"
        return Difference(estimate=made, order="not resolvable", reason=reason)
    few = (
        ""
        if made.rounds >= LEAST_ROUNDS
        else f"the interval covers the spread over utterances only, because there are fewer than {LEAST_ROUNDS} rounds"
    )
    if low == high == 0.0:
        return Difference(estimate=made, order="same", reason=few)
    better = (value > 0) is (metric.direction == "higher")
    apart = low > 0 or high < 0
    return Difference(
        estimate=made, order=("better" if better else "worse") if apart else "not resolvable", reason=few
    )  # fmt: skip
