"""A live case beside the same system fed offline: how much accuracy streaming costs, over the same utterances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.live.figures import by_cell, rate_units, weighted
from speechmeter.analysis.live.resampling import drawn, middle, ratios
from speechmeter.analysis.live.samples import Samples, samples_of
from speechmeter.analysis.orders import Difference, Order, no_difference
from speechmeter.analysis.quality import counts_by_utterance
from speechmeter.analysis.rate_intervals import rate_interval
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Case, Record

_NO_PARTNER = "the run has no offline case of this system; add `pace: [realtime, offline]` and the meter `quality`"
_NO_SCORE = "the offline case of this system has no WER; add the meter `quality`"
_OTHER_TEXT = "the live and the offline case have different reference texts or text normalisers"


@dataclass(frozen=True, kw_only=True)
class _Offline:
    """Word errors and reference words of each utterance of the offline case."""

    errors: Mapping[str, float]
    words: Mapping[str, float]


def offline_partner(case: Case, groups: Sequence[Sequence[Record]]) -> Sequence[Record]:
    """The rounds of the same system on the same data, fed whole; the most alike. Empty without any."""
    live = dict(case.axes)
    able = [
        group for group in groups
        if group[0].case.live is None and group[0].case.subject == case.subject
        and group[0].case.workload == case.workload
    ]  # fmt: skip

    def unlike(group: Sequence[Record]) -> int:
        return sum(live.get(name, value) != value for name, value in group[0].case.axes.items())

    return min(able, key=unlike, default=())


def live_wer_delta(live: Sequence[Record], offline: Sequence[Record]) -> Difference:
    """Live WER − offline WER over the utterances that both have, in percentage points, with its interval."""
    if not offline:
        return no_difference(_NO_PARTNER)
    fed = _offline(offline)
    if fed is None:
        return no_difference(_NO_SCORE)
    samples = samples_of(live, metrics.LIVE_WER, only=fed.errors)
    if samples is None or samples.above is None:
        return no_difference("no live WER")
    above, below = by_cell(samples)
    if not _same_references(samples, below, fed) or _normalisers(live, metrics.LIVE_WER) != _normalisers(
        offline, metrics.WORD_ERRORS
    ):
        return no_difference(_OTHER_TEXT)
    import numpy as np

    each = np.array([fed.errors[name] / (fed.words[name] or 1.0) for name in samples.utterances])
    change = above - below * each[:, None]  # in a round that did not hold an utterance, it counts on neither side
    made = _estimate(change, below, samples)
    low, high = made.low, made.high
    same = not change.any()
    order: Order = "same" if same else "not resolvable"
    if not same and low is not None and high is not None and (low > 0 or high < 0):
        order = "worse" if made.value > 0 else "better"
    return Difference(estimate=made, order=order)


def _estimate(change: Any, below: Any, samples: Samples) -> Estimate:
    low = high = None
    weights = drawn(len(samples.utterances), len(samples.rounds))
    if weights is not None:
        found = middle(ratios(weighted(change, weights), weighted(below, weights)))
        own = rate_interval(rate_units(change, below), signed=True)
        ends = [end for pair in (found, own) if pair is not None for end in pair]
        low, high = (100 * min(ends), 100 * max(ends)) if ends else (None, None)
    return Estimate(
        metric=metrics.LIVE_WER_DELTA, value=100 * float(ratios(change.sum(), below.sum())), low=low, high=high,
        rounds=len(samples.rounds), samples_per_round=samples.heard, statistic="difference",
    )  # fmt: skip


def _offline(records: Sequence[Record]) -> _Offline | None:
    counts = counts_by_utterance(records, metrics.WER)
    if not counts:
        return None
    return _Offline(
        errors={name: row[0] for (name, again), row in counts.items() if not again},
        words={name: row[1] for (name, again), row in counts.items() if not again},
    )


def _same_references(samples: Samples, below: Any, fed: _Offline) -> bool:
    """Whether the references have the same number of words on both sides: each conversation counts them once."""
    import numpy as np

    held = np.zeros_like(below)
    np.add.at(held, (samples.unit, samples.round), 1)
    words = np.array([fed.words[name] for name in samples.utterances])
    return bool((below == held * words[:, None]).all())


def _normalisers(records: Sequence[Record], metric: Metric) -> set[str]:
    found = (record.find(metric.id) for record in records)
    return {str(m.notes["normaliser"]) for m in found if m is not None and "normaliser" in m.notes}
