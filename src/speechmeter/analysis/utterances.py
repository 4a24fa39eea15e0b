"""Figures of single utterances, from runs with one of them a call: their median, 95th percentile and maximum.

An utterance's figure is the median of its samples in each round, and over rounds the geometric mean of those. The mean
over utterances is taken in each round, which gives it an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from statistics import fmean, median

from speechmeter.analysis.estimate import Estimate, samples_needed
from speechmeter.analysis.intervals import over_rounds
from speechmeter.analysis.readings import find
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record, by_batch

MEAN, MAXIMUM = "mean", "max"


def by_utterance(records: Sequence[Record], metric: Metric, scope: str = "total") -> list[float]:
    """One figure an utterance, in the order of the dataset; empty unless each had a call of its own."""
    return [over_rounds(values, exact=metric.exact)[0] for values in zip(*_rounds(records, metric, scope), strict=True)]


def over_utterances(records: Sequence[Record], metric: Metric, scope: str = "total") -> dict[str, Estimate | None]:
    """Mean, median, 95th percentile and maximum; None where there are too few for it, nothing without utterances."""
    rounds = _rounds(records, metric, scope)
    values = sorted(by_utterance(records, metric, scope))
    if not values:
        return {}
    mean, low, high = over_rounds([fmean(row) for row in rounds], exact=metric.exact)
    whole = Estimate(
        metric=metric, value=mean, low=low, high=high, rounds=len(rounds), samples_per_round=len(values), statistic=MEAN
    )
    others = {
        "p50": median(values),
        "p95": values[ceil(0.95 * len(values)) - 1],
        MAXIMUM: values[-1],
    }
    found: dict[str, Estimate | None] = {MEAN: whole}
    for name, value in others.items():
        enough = len(values) >= (samples_needed(name) if name != MAXIMUM else 1)
        found[name] = replace(whole, value=value, low=None, high=None, statistic=name) if enough else None
    return found


def _rounds(records: Sequence[Record], metric: Metric, scope: str) -> list[list[float]]:
    """A row a round, a figure an utterance; empty unless each had a call of its own."""
    items = _first(records, metrics.ITEMS)
    if len(items) < 2 or set(items) != {1.0}:
        return []
    rows = [row for record in records if (row := _of_round(record, metric, scope, records))]
    return rows if len({len(row) for row in rows}) == 1 else []


def _of_round(record: Record, metric: Metric, scope: str, others: Sequence[Record]) -> list[float]:
    if metric == metrics.RTF:
        times, audio = _of_round(record, metrics.LATENCY, scope, others), _first(others, metrics.AUDIO_SECONDS)
        if len(times) != len(audio) or min(audio, default=0.0) <= 0:
            return []
        return [time / true for time, true in zip(times, audio, strict=True)]
    found = find(record, metric, scope)
    if found is None or not found.values:
        return []
    if metric.exact:
        return list(found.values)
    return [median(values) for values in by_batch(found)]


def _first(records: Sequence[Record], metric: Metric) -> tuple[float, ...]:
    return next((m.values for record in records if (m := record.find(metric.id)) is not None), ())
