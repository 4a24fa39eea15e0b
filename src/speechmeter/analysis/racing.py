"""Which of many candidates is best: ranking and selection with an indifference zone, on paired logarithms.

Every round measures all candidates that are still in the race, so that the state of the machine cancels in their
differences. A candidate leaves the race when the sum of its differences from another one crosses a boundary that
narrows with every round (Kim and Nelson, 2001, `c = 1`). With the probability that is asked for, the winner is the
best, or differs from it by less than `delta`, the smallest difference that matters.

The boundary needs the variance of a difference. Two rounds say little about one variance, and many candidates say much:
residuals after the median of their round are drawn towards a common variance (`difference.moderated`), and the first
stage has as few rounds as the degrees of freedom allow, five with few candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from speechmeter.analysis.difference import LEAST_CELLS, Variance, moderated
from speechmeter.analysis.intervals import t_quantile

LEVEL = 0.05
"""The probability of a wrong selection."""
_DEGREES = 20
"""Degrees of freedom that the first stage is to give to the variance."""
_FEWEST, _MOST = 2, 5
"""Rounds of the first stage."""

Logs = Mapping[int, Mapping[int, float]]
"""The logarithm of the goal, less is better, by candidate and round."""


@dataclass(frozen=True, kw_only=True)
class Drop:
    """A candidate that left the race: after how many rounds, against which, and by how much (a mean of logarithms)."""

    rounds: int
    against: int
    behind: float


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A race as far as its rounds go.

    `rounds` were judged. `missing` are those in the race that lack the round `wanted`, which comes next. `decided` says
    that the race is over; several are left then only if no round told them apart. `variance` is that of one round.
    """

    left: tuple[int, ...]
    dropped: Mapping[int, Drop] = field(default_factory=dict)
    rounds: int = 0
    missing: tuple[int, ...] = ()
    wanted: int = 0
    decided: bool = False
    means: Mapping[int, float] = field(default_factory=dict)
    variance: Variance | None = None

    @property
    def best(self) -> int:
        """The one in the race with the least mean."""
        return min(self.left, key=lambda one: (self.means.get(one, 0.0), one))


def first_stage(candidates: int) -> int:
    """How many rounds the first stage has: two for many candidates, five for few."""
    if candidates < 2:
        return _FEWEST
    return min(_MOST, max(_FEWEST, 1 + math.ceil(_DEGREES / (candidates - 1))))


def spread(block: Any) -> list[Variance]:
    """The variance of one round of each candidate, from an array (rounds, candidates) without the state of the round.

    With few candidates it is one variance for all.
    """
    import numpy as np

    rounds, count = block.shape
    if rounds < 2 or count < 2:
        return [Variance(value=0.0, degrees=1.0)] * count
    if count < LEAST_CELLS:
        centred = block - block.mean(axis=1, keepdims=True)
        centred = centred - centred.mean(axis=0)
        degrees = (rounds - 1) * (count - 1)
        return [Variance(value=float((centred**2).sum() / degrees), degrees=degrees)] * count
    residuals = block - block.mean(axis=0)
    residuals = residuals - np.median(residuals, axis=1, keepdims=True)
    own = residuals.var(axis=0, ddof=1) * count / (count - 1)  # the median of a round holds a share of each
    degrees = (rounds - 1) * (count - 1) / count
    return moderated([Variance(value=float(value), degrees=degrees) for value in own])


def race(logs: Logs, candidates: Sequence[int], delta: float, *, begin: int = 0) -> Standing:
    """The race of these candidates over the rounds from `begin` on, as far as they were measured.

    `delta` is the smallest difference of logarithms that matters.
    """
    import numpy as np

    if len(candidates) < 2:
        return Standing(left=tuple(candidates), decided=True)
    block = _table(logs, candidates, begin)
    inside: Any = np.ones(len(candidates), dtype=bool)
    dropped: dict[int, Drop] = {}
    limit: Any = None
    variance: Variance | None = None
    rounds = 0
    while True:
        wanted = first_stage(len(candidates)) if limit is None else rounds + 1
        if missing := _missing(block, inside, wanted):
            return Standing(
                left=_those(candidates, inside), dropped=dropped, rounds=rounds, variance=variance,
                missing=_those(candidates, missing[1]), wanted=begin + missing[0],
                means=_means(block, candidates, missing[0]),
            )  # fmt: skip
        rounds = wanted
        if limit is None:
            limit, variance = _limits(block[:rounds], delta)
        sums = block[:rounds].sum(axis=0)
        behind = sums[:, None] - sums[None, :]
        beyond = np.where(inside[None, :], behind - np.maximum(0.0, delta / 2 * (limit - rounds)), -np.inf)
        np.fill_diagonal(beyond, -np.inf)
        out = inside & (beyond.max(axis=1) > 0)
        first = int(np.argmin(np.where(inside, sums, np.inf)))
        for column in map(int, np.flatnonzero(out)):
            dropped[candidates[column]] = Drop(
                rounds=rounds, against=candidates[first], behind=float(behind[column, first] / rounds)
            )
        inside = inside & ~out
        if inside.sum() == 1 or rounds > limit[np.ix_(inside, inside)].max():
            return Standing(
                left=_those(candidates, inside), dropped=dropped, rounds=rounds, decided=True, variance=variance,
                means=_means(block, candidates, rounds),
            )  # fmt: skip


def _table(logs: Logs, candidates: Sequence[int], begin: int) -> Any:
    """An array (rounds, candidates); not a number where a candidate was not measured."""
    import numpy as np

    last = max((round_ for one in candidates for round_ in logs.get(one, {})), default=begin - 1)
    block = np.full((max(0, last + 1 - begin), len(candidates)), np.nan)
    for column, one in enumerate(candidates):
        for round_, value in logs.get(one, {}).items():
            if round_ >= begin:
                block[round_ - begin, column] = value
    return block


def _missing(block: Any, inside: Any, wanted: int) -> tuple[int, Any] | None:
    """The first round that some candidate in the race lacks, and who lacks it; None where `wanted` rounds are there."""
    import numpy as np

    for row in range(wanted):
        lacks = inside & np.isnan(block[row]) if row < len(block) else inside
        if lacks.any():
            return row, lacks
    return None


def _those(candidates: Sequence[int], chosen: Any) -> tuple[int, ...]:
    return tuple(one for one, wanted in zip(candidates, chosen, strict=True) if wanted)


def _means(block: Any, candidates: Sequence[int], rounds: int) -> dict[int, float]:
    """The mean of each candidate that was measured in all rounds that were judged."""
    import numpy as np

    if not rounds:
        return {}
    found = block[:rounds].mean(axis=0)
    return {one: float(mean) for one, mean in zip(candidates, found, strict=True) if not np.isnan(mean)}


def _limits(block: Any, delta: float) -> tuple[Any, Variance]:
    """For each two candidates the round in which their boundary closes; and the mean variance of one round."""
    import numpy as np

    variances = spread(block)
    values, degrees = np.array([one.value for one in variances]), min(one.degrees for one in variances)
    share = ((2 * LEVEL / (len(values) - 1)) ** (-2 / degrees) - 1) * degrees  # h² of Kim and Nelson
    limit = share * (values[:, None] + values[None, :]) / delta**2
    return limit, Variance(value=float(values.mean()), degrees=degrees)


def behind_best(logs: Logs, candidates: Sequence[int], rounds: range, variance: Variance) -> dict[int, float]:
    """How far each candidate may be behind the best of the others: the upper ends of Hsu's intervals at 95 %.

    Only of candidates that were measured in all of these rounds. 0 for one that may only be the best itself.
    """
    own = [one for one in candidates if all(round_ in logs.get(one, {}) for round_ in rounds)]
    if len(own) < 2 or not rounds:
        return dict.fromkeys(own, 0.0)
    means = {one: math.fsum(logs[one][round_] for round_ in rounds) / len(rounds) for one in own}
    # Bonferroni's quantile in place of Dunnett's: a little wider, and needs no table
    half = t_quantile(variance.degrees, 1 - LEVEL / (len(own) - 1)) * math.sqrt(2 * variance.value / len(rounds))
    first, second = sorted(means.values())[:2]
    return {one: max(0.0, mean - (second if mean == first else first) + half) for one, mean in means.items()}
