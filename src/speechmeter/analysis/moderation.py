"""Variances of many cells, each steadied by all: five rounds say little about one variance, and sixty cells say much.

Empirical Bayes after Smyth (2004), as limma does it: the variances of the cells are taken as drawn around a common one.
How far they scatter beyond what so few rounds explain gives the weight of the common one, as degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

LEAST_CELLS = 5
"""With fewer cells there is nothing to learn about how variances scatter."""
_SMALLEST = 0.02
"""A smaller share of the median is taken as this much. With 4 degrees of freedom 1 in 1,000 is below it, and a cell
that did not vary at all would make the scatter of all look wide."""


@dataclass(frozen=True, kw_only=True)
class Variance:
    """A variance and the degrees of freedom that it is known with."""

    value: float
    degrees: float


def moderated(found: Sequence[Variance]) -> list[Variance]:
    """Each variance drawn towards the common one; as they are with fewer than `LEAST_CELLS`, or where all are 0."""
    middle = median(one.value for one in found) if found else 0.0
    if len(found) < LEAST_CELLS or middle <= 0 or min(one.degrees for one in found) <= 0:
        return list(found)
    known = [Variance(value=max(one.value, _SMALLEST * middle), degrees=one.degrees) for one in found]
    prior, most = _prior(known), sum(one.degrees for one in known)
    return [_drawn(one, prior, most) for one in known]


def _drawn(own: Variance, prior: Variance, most: float) -> Variance:
    if math.isinf(prior.degrees):
        return Variance(value=prior.value, degrees=most)
    degrees = own.degrees + prior.degrees
    value = (own.degrees * own.value + prior.degrees * prior.value) / degrees
    return Variance(value=value, degrees=min(degrees, most))


def _prior(found: Sequence[Variance]) -> Variance:
    """The common variance and its weight, by the mean and the scatter of the logarithms."""
    from scipy.special import digamma, polygamma

    logs = [
        math.log(one.value) - float(digamma(one.degrees / 2)) + math.log(one.degrees / 2)  # without its own bias
        for one in found
    ]
    centre = fmean(logs)
    scatter = sum((log - centre) ** 2 for log in logs) / (len(logs) - 1)
    beyond = scatter - fmean(float(polygamma(1, one.degrees / 2)) for one in found)
    if beyond <= 0:
        return Variance(value=math.exp(centre), degrees=math.inf)
    half = _inverse_trigamma(beyond)
    return Variance(value=math.exp(centre + float(digamma(half)) - math.log(half)), degrees=2 * half)


def _inverse_trigamma(value: float) -> float:
    """Newton's method on 1 / trigamma, which is nearly a line."""
    from scipy.special import polygamma

    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    found = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, found))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, found))
        found += step
        if abs(step) < 1e-8 * found:
            break
    return found
