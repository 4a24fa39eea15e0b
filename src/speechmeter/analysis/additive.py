"""Means of figures that add up: each row of a table over the same calls and the same rounds.

A round's mean is that over its calls. A row that a call or a round does not have counts 0 there, or the rows would not
add up to the whole. Bounds are Student's t over the rounds' means; those of a ratio are linearised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from speechmeter.analysis import operators, parts
from speechmeter.analysis.student import t_quantile
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record

Bounds = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The mean of a metric over the calls of one round."""

    record: Record
    value: float
    calls: int


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """Two means of one round, of the same calls: what is divided, and by what."""

    record: Record
    above: float
    below: float
    calls: int


def round_means(records: Sequence[Record], metric: Metric, scope: str = "total") -> list[Mean]:
    """One mean a round that measured the metric in any scope; empty where no round has it in this one."""
    found = [(record, parts.find(record, metric, scope)) for record in records]
    if not any(m is not None and m.values for _, m in found):
        return []
    means = []
    for record, m in found:
        if m is not None and m.values:
            means.append(Mean(record=record, value=fmean(m.values), calls=len(m.values)))
        elif calls := _calls(record, metric):
            if operators.may_be_left_out(record, metric, scope):
                return []
            means.append(Mean(record=record, value=0.0, calls=calls))
    return means


def _calls(record: Record, metric: Metric) -> int:
    """In how many calls a round measured a metric, whatever the scope."""
    return max((len(m.values) for m in record.measurements if m.metric == metric.id), default=0)


def mean_bounds(values: Sequence[float]) -> Bounds:
    """Bounds of a mean over rounds at 95 %; none with a single round."""
    if len(values) < 2:
        return None, None
    centre, half = fmean(values), _half_width(values)
    return centre - half, centre + half


def ratio_of_means(rounds: Sequence[Ratio]) -> float | None:
    """Mean of what is divided / mean of what it is divided by; None where that is 0."""
    below = fmean(one.below for one in rounds) if rounds else 0.0
    return fmean(one.above for one in rounds) / below if below else None


def ratio_bounds(rounds: Sequence[Ratio]) -> Bounds:
    """Bounds of a ratio of means at 95 %, linearised: t on what each round is off the ratio, over the mean below."""
    ratio = ratio_of_means(rounds)
    if ratio is None or len(rounds) < 2:
        return None, None
    below = fmean(one.below for one in rounds)
    half = _half_width([(one.above - ratio * one.below) / below for one in rounds])
    return ratio - half, ratio + half


def linearised_logs(values: Sequence[float]) -> list[float] | None:
    """Numbers whose mean is the logarithm of the mean of these, and which spread as these do around it.

    With them the ratio of two means is judged as others are by logarithms. None where the mean is not above 0.
    """
    centre = fmean(values)
    return [math.log(centre) + value / centre - 1 for value in values] if centre > 0 else None


def _half_width(values: Sequence[float]) -> float:
    return t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
