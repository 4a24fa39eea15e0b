"""The mean difference of logarithms between two sides, and how sure it is.

Cases that were measured together are compared by adjacent pairs: one variance. Others have a variance for each side, as
Welch has it. Where the number of rounds was chosen from a first stage, the variance is that of the first stage (Stein):
the later rounds were asked for because of it, so that they must not change it.

Five rounds say little about one variance, and sixty cells say much. `moderated` draws the variances of many cells
towards a common one: empirical Bayes after Smyth (2004), as limma does it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, variance

from speechmeter.analysis.intervals import t_quantile, t_tail

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


@dataclass(frozen=True, kw_only=True)
class Side:
    """The variance of one round's value, and how many rounds the mean is over.

    `deviations` are those of each round from the mean: what cells that share rounds have in common.
    """

    variance: Variance
    rounds: int
    deviations: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[int, float], pilot: int | None = None) -> Side | None:
        """From values by round; None where there are fewer than two. The variance is of the first `pilot` rounds."""
        first = [value for round_, value in values.items() if pilot is None or round_ < pilot]
        if len(first) < 2:
            first = list(values.values())
        if len(first) < 2:
            return None
        centre = fmean(values.values())
        return cls(
            variance=Variance(value=variance(first), degrees=len(first) - 1),
            rounds=len(values),
            deviations={round_: value - centre for round_, value in values.items()},
        )

    @property
    def of_mean(self) -> float:
        """The variance of the mean over rounds."""
        return self.variance.value / self.rounds


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A mean difference of logarithms.

    Two runs at different times may differ without any change, and no round of either shows it. `offset` is the variance
    of that, where it is known; `allowance` is what such a difference may be, where it is not.
    """

    mean: float
    sides: tuple[Side, ...]
    offset: Variance | None = None
    allowance: float = 0.0

    @property
    def rounds(self) -> int:
        """Pairs, or the rounds of the side that has fewer."""
        return min(side.rounds for side in self.sides)

    @property
    def _parts(self) -> list[Variance]:
        sides = [Variance(value=side.of_mean, degrees=side.variance.degrees) for side in self.sides]
        return sides if self.offset is None else [*sides, self.offset]

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return math.sqrt(sum(part.value for part in self._parts))

    @property
    def degrees(self) -> float:
        """Of the standard error, as Welch and Satterthwaite have it."""
        total = sum(part.value for part in self._parts)
        if not total:
            return sum(part.degrees for part in self._parts)
        return total**2 / sum(part.value**2 / part.degrees for part in self._parts if part.value)

    @property
    def half_width(self) -> float:
        """Of the 95 % interval."""
        return t_quantile(self.degrees) * self.error

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the 95 % interval."""
        return self.mean - self.half_width, self.mean + self.half_width

    def with_rounds(self, rounds: int) -> Difference:
        """As it would be with more rounds, if mean and spread stay as they are."""
        scale = rounds / self.rounds
        grown = (
            replace(
                side,
                rounds=round(side.rounds * scale),
                variance=replace(side.variance, degrees=max(1.0, side.variance.degrees * scale)),
            )
            for side in self.sides
        )
        return replace(self, sides=tuple(grown))

    def with_variances(self, found: Sequence[Variance]) -> Difference:
        """With other variances of its sides."""
        sides = (replace(side, variance=own) for side, own in zip(self.sides, found, strict=True))
        return replace(self, sides=tuple(sides))

    def tail(self, sign: float) -> float:
        """The one-sided p-value of a change in one direction (+1, −1) that is more than the allowance."""
        excess = sign * self.mean - self.allowance
        if not self.error:
            return 0.0 if excess > 0 else 1.0
        return t_tail(excess / self.error, self.degrees)

    def smallest_shown(self, level: float) -> float:
        """The smallest change that a one-sided test at this level would have shown."""
        return self.allowance + t_quantile(self.degrees, 1 - level) * self.error


def paired(base: Mapping[int, float], new: Mapping[int, float], pilot: int | None = None) -> Difference | None:
    """From logarithms by round, both sides of each round measured next to each other; None for a single pair."""
    side = Side.of({round_: value - base[round_] for round_, value in new.items()}, pilot)
    return None if side is None else Difference(mean=fmean(new.values()) - fmean(base.values()), sides=(side,))


def independent(
    base: Mapping[int, float],
    new: Mapping[int, float],
    pilots: tuple[int | None, int | None] = (None, None),
) -> Difference | None:
    """From logarithms by round of each side; None when a side has a single round."""
    sides = [Side.of(values, pilot) for values, pilot in zip((base, new), pilots, strict=True)]
    if sides[0] is None or sides[1] is None:
        return None
    mean = fmean(new.values()) - fmean(base.values())
    return Difference(mean=mean, sides=(sides[0], sides[1]))


def mean_of(cells: Sequence[Difference]) -> Difference | None:
    """The mean of several cells. What their rounds have in common does not average out, so it is taken by round.

    Each side's variance is that of the mean over the cells in every round; rounds that few cells have weigh little, and
    count as little in the degrees of freedom. None where no two rounds are left.
    """
    if not cells or len({len(cell.sides) for cell in cells}) > 1:
        return None
    sides = [_common(column) for column in zip(*(cell.sides for cell in cells), strict=True)]
    if any(side is None for side in sides):
        return None
    return Difference(
        mean=fmean(cell.mean for cell in cells),
        sides=tuple(side for side in sides if side is not None),
        offset=max((cell.offset for cell in cells if cell.offset), key=lambda offset: offset.value, default=None),
        allowance=max(cell.allowance for cell in cells),
    )


def _common(sides: Sequence[Side]) -> Side | None:
    """One side of the mean of cells, as if it were a single series of rounds."""
    shares: dict[int, float] = {}
    weights: dict[int, float] = {}
    for side in sides:
        each = 1 / (len(sides) * side.rounds)
        for round_, deviation in side.deviations.items():
            shares[round_] = shares.get(round_, 0.0) + each * deviation
            weights[round_] = weights.get(round_, 0.0) + each**2
    if len(shares) < 2:
        return None
    rounds = sum(weights.values()) ** 2 / sum(weight**2 for weight in weights.values())
    if rounds <= 1:
        return None
    of_mean = sum(share**2 for share in shares.values()) * rounds / (rounds - 1)
    whole = max(1, round(rounds))
    return Side(variance=Variance(value=of_mean * whole, degrees=rounds - 1), rounds=whole)
