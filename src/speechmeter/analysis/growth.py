"""How a figure grows along an axis: exponents, the quadratic part, the figure at another size, the saturating batch.

All from the rounds behind `analysis.estimate`: a point is a case's figure with the spread of its rounds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean, stdev

from speechmeter.analysis.derived import round_value
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.intervals import Quantity, over_rounds, t_quantile
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record

DRAWN, EXTRAPOLATED, INTERPOLATED = "drawn", "extrapolated", "interpolated"
LEAST_SIZES = 4
"""A curve of three parts goes through three points whatever they are."""
NEAR = 0.9
"""The share of the best throughput from which on a batch counts as saturating."""
_POOR_PERCENT = 10.0
"""A curve that misses a point by more than this says nothing about its parts."""
_APART = 2 / 3
_DRAWS = 400
_TAIL = 0.025
_PARTS = (0, 1, 2)
_FLAT = 1e-12


@dataclass(frozen=True, kw_only=True)
class Slope(Quantity):
    """An exponent of growth: the slope of a line in logarithms. Its samples are the sizes measured."""


@dataclass(frozen=True, kw_only=True)
class BatchSize(Quantity):
    """One of the batch sizes measured, with the sizes between which it lies. Its samples are the sizes measured."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """a + b·x + c·x², no part negative: `parts` are those of x as a share of `unit`."""

    parts: tuple[float, float, float]
    unit: float

    def at(self, x: float) -> float:
        """The value at x."""
        share = x / self.unit
        return sum(part * share**power for power, part in enumerate(self.parts))

    def quadratic_share(self, x: float) -> float:
        """What c·x² is of the value at x, from 0 to 1."""
        whole = self.at(x)
        return self.parts[2] * (x / self.unit) ** 2 / whole if whole > 0 else 0.0

    def worst(self, xs: Sequence[float], ys: Sequence[float]) -> float:
        """The largest relative distance from the points."""
        return max(abs(self.at(x) / y - 1) for x, y in zip(xs, ys, strict=True))


def fit(xs: Sequence[float], ys: Sequence[float]) -> Curve:
    """The curve nearest to points whose values are all positive, by least squares of relative errors."""
    # written out for three parts: a general solver takes longer to import than this takes to run
    unit = max(xs)
    rows = [tuple((x / unit) ** power / y for power in _PARTS) for x, y in zip(xs, ys, strict=True)]

    def distance(parts: Sequence[float]) -> float:
        return sum((sum(part * value for part, value in zip(parts, row, strict=True)) - 1) ** 2 for row in rows)

    return Curve(parts=min(_candidates(rows), key=distance), unit=unit)


def _candidates(rows: Sequence[tuple[float, ...]]) -> Iterator[tuple[float, float, float]]:
    """Solutions with some parts at zero and none below it; the one with all three, where it is such, is the best."""
    for count in (3, 2, 1):
        found = [parts for kept in combinations(_PARTS, count) if (parts := _solved(rows, kept)) is not None]
        yield from found
        if count == len(_PARTS) and found:
            return


def _solved(rows: Sequence[tuple[float, ...]], kept: Sequence[int]) -> tuple[float, float, float] | None:
    """The least squares of Σ part × column = 1 over some columns; None where a part is negative or undetermined."""
    matrix = [[sum(row[i] * row[j] for row in rows) for j in kept] + [sum(row[i] for row in rows)] for i in kept]
    for i, pivot in enumerate(matrix):
        if abs(pivot[i]) < _FLAT * abs(sum(row[kept[i]] ** 2 for row in rows)):
            return None
        for j, other in enumerate(matrix):
            if j != i:
                factor = other[i] / pivot[i]
                matrix[j] = [value - factor * above for value, above in zip(other, pivot, strict=True)]
    parts = dict(zip(kept, (row[-1] / row[i] for i, row in enumerate(matrix)), strict=True))
    if min(parts.values()) < 0:
        return None
    return parts.get(0, 0.0), parts.get(1, 0.0), parts.get(2, 0.0)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One size: the logarithm of its figure, and the standard error of that.

    The figure is a geometric mean over rounds, of what is exact their median, whose error is 0. With a single round the
    error is None.
    """

    size: float
    log: float
    error: float | None
    rounds: int

    @property
    def value(self) -> float:
        """The figure, as `estimate` has it."""
        return math.exp(self.log)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A metric along an axis, everything else held: at least two sizes, ascending."""

    metric: Metric
    points: tuple[Point, ...]

    @property
    def sizes(self) -> list[float]:
        """The sizes, ascending."""
        return [point.size for point in self.points]

    @property
    def values(self) -> list[float]:
        """The figures at these sizes."""
        return [point.value for point in self.points]

    @property
    def has_spread(self) -> bool:
        """Whether the error of every point is known."""
        return all(point.error is not None for point in self.points)

    @cached_property
    def curve(self) -> Curve:
        """a + b·x + c·x² through the points."""
        return fit(self.sizes, self.values)

    @cached_property
    def miss_percent(self) -> float:
        """How far the curve is from the worst of the figures, in %."""
        return 100 * self.curve.worst(self.sizes, self.values)

    @property
    def has_curve(self) -> bool:
        """Whether there are enough sizes for a curve of three parts to say anything."""
        return len(self.points) >= LEAST_SIZES

    @property
    def fits_poorly(self) -> bool:
        """Whether the curve, where there is one, misses a figure by so much that its parts mean nothing."""
        return self.has_curve and self.miss_percent > _POOR_PERCENT

    @cached_property
    def drawn(self) -> list[list[float]]:
        """Values as other rounds might have given them: each mean drawn from Student's t around it. Seeded.

        A bootstrap of five rounds would be too narrow by a third: it knows nothing of how few they are.
        """
        draw = random.Random(0)
        return [[math.exp(p.log + (p.error or 0.0) * _student(draw, p.rounds - 1)) for p in self.points]
                for _ in range(_DRAWS)]  # fmt: skip


def line_of(cases: Sequence[tuple[float, Sequence[Record]]], metric: Metric) -> Line | None:
    """The line of a metric over (size, rounds of the case).

    None with fewer than two sizes that have a figure, or where one of them has two.
    """
    points = [point for size, records in sorted(cases, key=lambda c: c[0]) if (point := _point(size, records, metric))]
    distinct = len({point.size for point in points})
    return Line(metric=metric, points=tuple(points)) if distinct == len(points) > 1 else None


def exponent(line: Line) -> Slope:
    """The slope over all sizes with its interval at 95 %.

    From three sizes on it is the regression's, by Student's t on the residuals: what is no power law gets a wide one.
    """
    if len(line.points) == 2:
        return local_exponent(line, metrics.GROWTH_EXPONENT)
    xs, ys = [math.log(size) for size in line.sizes], [point.log for point in line.points]
    mean_x, mean_y = fmean(xs), fmean(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
    degrees = len(xs) - 2
    half = t_quantile(degrees) * math.sqrt(residual / degrees / spread)
    return _slope(metrics.GROWTH_EXPONENT, line, slope, half)


def local_exponent(line: Line, metric: Metric = metrics.GROWTH_EXPONENT_LOCAL) -> Slope:
    """The slope at the largest sizes; its interval is that of the rounds, None where they have no spread."""
    before, last = line.points[_before_last(line.sizes)], line.points[-1]
    width = math.log(last.size / before.size)
    slope = (last.log - before.log) / width
    half = _half_width(before, last)
    return _slope(metric, line, slope, None if half is None else half / width)


def quadratic_part(line: Line) -> Estimate | None:
    """What c·x² is of the figure at the largest size, in %; None where no curve of three parts comes near all sizes."""
    if not line.has_curve or line.fits_poorly:
        return None
    largest = line.sizes[-1]
    value = 100 * line.curve.quadratic_share(largest)
    if line.metric.exact or not line.has_spread:
        return _figure(metrics.QUADRATIC_SHARE, line, value, None, None, DRAWN)
    shares = [100 * fit(line.sizes, values).quadratic_share(largest) for values in line.drawn]
    low, high = _between(shares)
    return _figure(metrics.QUADRATIC_SHARE, line, value, min(low, value), max(high, value), DRAWN)


def expected(line: Line, size: float) -> Estimate | None:
    """What to expect at a size, by the curve; None where no interval can be given, or the curve comes not near.

    The interval is widened by what the curve misses. Beyond the sizes measured it holds two ways to go on: the curve,
    and the slope at that end.
    """
    if not line.has_curve or not line.has_spread or line.fits_poorly:
        return None
    inside = line.sizes[0] <= size <= line.sizes[-1]
    curves = [fit(line.sizes, values).at(size) for values in line.drawn]
    straight = [] if inside else [_straight(line.sizes, values, size) for values in line.drawn]
    bounds = [bound for values in (curves, straight) if values for bound in _between(values)]
    value, miss = line.curve.at(size), line.miss_percent / 100
    low, high = min(value, *bounds) / (1 + miss), max(value, *bounds) / (1 - miss)  # it is a share of the figures
    return _figure(line.metric, line, value, low, high, INTERPOLATED if inside else EXTRAPOLATED)


def measured_span(lines: Sequence[Line]) -> tuple[float, float]:
    """The least and the largest size at which these lines have a figure."""
    return min(line.sizes[0] for line in lines), max(line.sizes[-1] for line in lines)


def _before_last(sizes: Sequence[float]) -> int:
    """The index at which the slope at the end begins: sizes that are nearly alike would show nothing but noise."""
    return max((index for index, size in enumerate(sizes) if size <= _APART * sizes[-1]), default=0)


def _straight(sizes: Sequence[float], values: Sequence[float], size: float) -> float:
    """The value at a size beyond those measured, by the slope at the end that is nearer."""
    after_first = (index for index, one in enumerate(sizes) if one * _APART >= sizes[0])
    end, inner = (0, min(after_first, default=len(sizes) - 1)) if size < sizes[0] else (-1, _before_last(sizes))
    slope = math.log(values[end] / values[inner]) / math.log(sizes[end] / sizes[inner])
    return float(values[end] * (size / sizes[end]) ** slope)


def _point(size: float, records: Sequence[Record], metric: Metric) -> Point | None:
    found = [pair[0] for record in records if (pair := round_value(record, metric, "total", records)) is not None]
    if not found or min(found) <= 0:  # a growth of no bytes has no logarithm
        return None
    figure = fmean(found) if metric.combined == "mean" else over_rounds(found, exact=metric.exact)[0]
    spread = None if len(found) < 2 else stdev(map(math.log, found)) / math.sqrt(len(found))
    return Point(size=size, log=math.log(figure), error=0.0 if metric.exact else spread, rounds=len(found))


def _half_width(first: Point, second: Point) -> float | None:
    """Half the interval of the difference of two means, Welch's degrees of freedom."""
    if first.error is None or second.error is None or first.rounds < 2 or second.rounds < 2:
        return None
    squares = [(point.error or 0.0) ** 2 for point in (first, second)]
    weights = sum(s * s / (p.rounds - 1) for s, p in zip(squares, (first, second), strict=True))
    degrees = max(1, int(sum(squares) ** 2 / weights)) if weights else 1
    return t_quantile(degrees) * math.sqrt(sum(squares))


def _student(draw: random.Random, degrees: int) -> float:
    """A draw of Student's t, cut far outside the bounds that are read off: with two rounds it has no end."""
    if degrees < 1:
        return 0.0
    value = draw.gauss(0, 1) / math.sqrt(draw.gammavariate(degrees / 2, 2) / degrees)
    most = 2 * t_quantile(degrees)
    return max(-most, min(most, value))


def _between(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    cut = int(_TAIL * len(ordered))
    return ordered[cut], ordered[-1 - cut]


def _slope(metric: Metric, line: Line, slope: float, half: float | None) -> Slope:
    low, high = (None, None) if half is None else (slope - half, slope + half)
    return Slope(
        metric=metric, value=slope, low=low, high=high, rounds=min(point.rounds for point in line.points),
        samples_per_round=len(line.points),
    )  # fmt: skip


def _figure(
    metric: Metric, line: Line, value: float, low: float | None, high: float | None, statistic: str
) -> Estimate:
    return Estimate(
        metric=metric, value=value, low=low, high=high, rounds=min(point.rounds for point in line.points),
        samples_per_round=len(line.points), statistic=statistic,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Saturation:
    """The batch from which on a larger one gains less than a tenth, and the throughput there and at its best.

    `batch` is None where throughput still rises at the largest batch, by more than a tenth.
    """

    batch: BatchSize | None
    there: Estimate
    best: Estimate
    largest: float


def saturation(cases: Sequence[tuple[float, Sequence[Record]]]) -> Saturation | None:
    """From (batch, rounds of the case); None with fewer than two batches that have a throughput."""
    found = [
        (size, e)
        for size, records in sorted(cases, key=lambda case: case[0])
        if (e := estimate(records, metrics.THROUGHPUT))
    ]
    if len(found) < 2:
        return None
    best = max((figure for _, figure in found), key=lambda figure: figure.value)
    first = next((size, figure) for size, figure in found if figure.value >= NEAR * best.value)
    if first[0] == found[-1][0]:
        return Saturation(batch=None, there=first[1], best=best, largest=found[-1][0])
    low = next(size for size, figure in found if (figure.high or figure.value) >= NEAR * best.value)
    high = next((size for size, figure in found if (figure.low or figure.value) >= NEAR * best.value), found[-1][0])
    known = all(figure.low is not None for _, figure in found)
    batch = BatchSize(
        metric=metrics.SATURATION_BATCH,
        value=first[0],
        low=min(low, first[0]) if known else None,
        high=max(high, first[0]) if known else None,
        rounds=best.rounds,
        samples_per_round=len(found),
    )
    return Saturation(batch=batch, there=first[1], best=best, largest=found[-1][0])
