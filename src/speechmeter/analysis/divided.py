"""What a stage, or a model of a cascade, has of the call's typical time, so that the parts add up to the call.

Medians do not add up, and means are moved by one disturbed call. So whole calls are chosen: in each round the half of
them whose time is nearest to the median. A part's share is its mean over these / the mean of the call over the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import fmean, median

from speechmeter.analysis import parts
from speechmeter.analysis.additive import Ratio
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import PART, STAGE, Scope
from speechmeter.core.types import Measurement, Record, batch_of_each


def is_divided(records: Sequence[Record], metric: Metric, scope: str) -> bool:
    """Whether a scope is a part of the call's figure, of the same calls.

    A stage outside the clock is no part of it, and what makes audio has a real-time factor of that audio.
    """
    if metric.combined != "divided" or Scope.parse(scope).kind not in (STAGE, PART):
        return False
    if metric.id == metrics.RTF.id and any(parts.find(record, metrics.AUDIO_MADE, scope) for record in records):
        return False
    pairs = [(_of_call(record), parts.find(record, metrics.LATENCY, scope)) for record in records]
    found = [(whole, part) for whole, part in pairs if part is not None and part.values]
    return bool(found) and all(
        part.notes.get("clocked", True) and whole is not None and len(whole.values) == len(part.values)
        for whole, part in found
    )


def _of_call(record: Record) -> Measurement | None:
    return record.find(metrics.LATENCY.id)


def shares(records: Sequence[Record], scope: str) -> list[Ratio]:
    """Time of the part and of the call in each round, over the chosen calls; rounds without such a part have 0."""
    found = []
    for record in records:
        whole, part = _of_call(record), parts.find(record, metrics.LATENCY, scope)
        if whole is None or not whole.values:
            continue
        kept = _near_the_median(whole)
        above = _mean(part, kept) if part is not None and part.values else 0.0
        found.append(Ratio(record=record, above=above, below=_mean(whole, kept), calls=len(whole.values)))
    return found


def _near_the_median(whole: Measurement) -> list[list[int]]:
    """Of each batch the calls that count, by their number."""
    numbers: dict[int, list[int]] = {}
    for number, batch in enumerate(batch_of_each(whole)):
        numbers.setdefault(batch, []).append(number)
    return [_nearest(own, whole.values) for own in numbers.values()]


def _nearest(calls: Sequence[int], values: Sequence[float]) -> list[int]:
    middle = median(values[call] for call in calls)
    nearest = sorted(calls, key=lambda call: abs(values[call] - middle))
    return nearest[: ceil(len(calls) / 2)]


def _mean(measurement: Measurement, kept: Sequence[Sequence[int]]) -> float:
    return fmean(fmean(measurement.values[call] for call in calls) for calls in kept)
