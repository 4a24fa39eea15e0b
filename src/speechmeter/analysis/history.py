"""One case over many runs: the levels that its figure had, and when each began.

The levels are the partition of the series that costs least, each new level at a price. The cost of a value is its
squared distance from the median of its level, in units of the noise, and bounded: a wild run costs the same wherever
the borders are drawn. A level has at least two values. The bound is less than a price and more than half of one: two
values at the end of a series can be a new level, a single one never is, and one that was left again takes three.
"""

from __future__ import annotations

import itertools
import math
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from speechmeter.analysis.compare import Word, is_worse, word_of_change
from speechmeter.analysis.conditions import environment_differences
from speechmeter.analysis.difference import independent
from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.intervals import over_rounds, t_quantile
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Case

LEAST = 2
"""Values of the shortest level."""
FEWEST = 2 * LEAST
"""Values that a series needs before there can be a shift in it."""
_BOUND = 0.8
"""The most that one value can cost, in prices of a level."""
_FEW = 5.0
"""By how much the noise is widened for few differences: by this share of it, divided by their number."""
_NORMAL = 1.4826
"""From the median of absolute deviations to the standard deviation of a normal distribution."""
_LEAST_NOISE = 0.002
"""Nothing that is timed repeats more closely from run to run."""
_COUNTED_NOISE = 1e-9
_FEWEST_COUNTED = 2
"""Values that a series of counts needs: any change of a count is a shift."""
_GIT = "git"
_MACHINE = ("host", "cpu", "cores", "gpu")
"""Facts by which two environments are two machines. Whatever else changed is named beside the shift it came with."""


def noise_of(values: Sequence[float], floor: float) -> float:
    """The standard deviation around the level, by neighbouring differences, which few shifts and wild runs disturb.

    Few differences may agree by chance: the fewer, the wider it is made. It is never below `floor`.
    """
    steps = [abs(b - a) for a, b in itertools.pairwise(values)]
    if not steps:
        return floor
    spread = _NORMAL * median(steps) / math.sqrt(2)
    return max(floor, spread * (1 + _FEW / len(steps)))


def price_of(count: int) -> float:
    """What a further level costs in a series of so many values.

    Chosen by simulation: of flat series with normal noise, heavy tails or 5 % wild runs, 4 to 100 values long, at most
    7 in 1000 get a shift (of exponential noise 25); steps of 5 standard deviations in 20 values are found in 93 of 100.
    """
    return 8.0 + 4.0 * math.log(count)


def level_starts(values: Sequence[float], noise: float) -> list[int]:
    """Where levels begin, 0 first."""
    count, price = len(values), price_of(max(1, len(values)))
    if count < FEWEST:
        return [0]
    # dynamic programming over the end of the last level: n² / 2 costs, which is little for the runs of a project
    best = [-price] + [math.inf] * count
    start_of = [0] * (count + 1)
    costs = _costs([value / noise for value in values], _BOUND * price)
    for end in range(LEAST, count + 1):
        for start in range(end - LEAST + 1):
            total = best[start] + costs[start][end] + price
            if total < best[end]:
                best[end], start_of[end] = total, start
    starts, end = [], count
    while end > 0:
        end = start_of[end]
        starts.append(end)
    return starts[::-1]


def changes(values: Sequence[float], least_step: float) -> list[int]:
    """Where values without noise change, 0 first: every change is a level, of however few values."""
    return [0] + [n for n, (a, b) in enumerate(itertools.pairwise(values), start=1) if abs(b - a) > least_step]


def settled(values: Sequence[float], starts: Sequence[int], noise: float) -> list[bool]:
    """Whether each value belongs to its level; a wild run does not.

    Where the median lies far from every value, all of them are the level: it is never left without one.
    """
    far = _BOUND * price_of(len(values))
    found: list[bool] = []
    for part in _cut(values, starts):
        near = [((value - median(part)) / noise) ** 2 < far for value in part]
        found += near if any(near) else [True] * len(part)
    return found


def joined(values: Sequence[float], starts: Sequence[int], least_step: float) -> list[int]:
    """The starts that are left when neighbouring levels whose medians differ by `least_step` or less are one."""
    left = list(starts)
    while len(left) > 1:
        steps = [abs(b - a) for a, b in itertools.pairwise(median(part) for part in _cut(values, left))]
        if min(steps) > least_step:
            break
        del left[steps.index(min(steps)) + 1]
    return left


def _cut(values: Sequence[float], starts: Sequence[int]) -> list[Sequence[float]]:
    return [values[start:end] for start, end in zip(starts, [*starts[1:], len(values)], strict=True)]


def _costs(values: Sequence[float], bound: float) -> list[list[float]]:
    """What a level from `start` up to `end` costs, by start and end."""
    import numpy as np

    known = np.asarray(values, dtype=float)
    table = []
    for start in range(len(values)):
        line = [math.inf] * (len(values) + 1)
        ordered: list[float] = []
        for end in range(start + 1, len(values) + 1):
            insort(ordered, values[end - 1])
            half = len(ordered) // 2
            middle = ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
            line[end] = float(np.minimum((known[start:end] - middle) ** 2, bound).sum())
        table.append(line)
    return table


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run of the case. `facts` are those of its environment, empty where a crash left none; `started` is UTC."""

    run: str
    started: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        """The commit of the folder in which it was measured, `-dirty` where that was changed; empty if unknown."""
        return str(self.facts.get(_GIT, ""))


@dataclass(frozen=True, kw_only=True)
class Point(Entry):
    """A run with its figure."""

    figure: Estimate


@dataclass(frozen=True, kw_only=True)
class Failure(Entry):
    """A run in which the case was tried and has no figure; `reason` begins with the status."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Shift:
    """A change of level: NEW / BASE with its interval, and what of the environment changed with it."""

    word: Word
    regression: bool
    ratio: float
    low: float | None
    high: float | None
    before: Point
    changed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Level:
    """Runs in a row of one level. `wild` of them are too far off to count; `shift` is how it began, None the first."""

    figure: Estimate
    points: tuple[Point, ...]
    wild: int
    shift: Shift | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """All runs of a case on one machine, in the order of time. `noise` is the spread between runs, as a share.

    `failed` are those without a figure, which belong to no level.
    """

    case: Case
    metric: Metric
    machine: str
    points: tuple[Point, ...]
    noise: float
    levels: tuple[Level, ...]
    failed: tuple[Failure, ...] = ()

    @property
    def judged(self) -> bool:
        """Whether there are enough runs for a shift to be seen."""
        return len(self.points) >= (_FEWEST_COUNTED if self.metric.exact else FEWEST)

    @property
    def failing(self) -> tuple[Failure, ...]:
        """The failed runs since the last figure; none where the newest run has one."""
        return tuple(one for one in self.failed if one.started > self.points[-1].started)

    @property
    def regressed(self) -> bool:
        """Whether the newest run failed or the newest shift is for the worse; earlier shifts do not count."""
        last = self.levels[-1].shift
        return bool(self.failing) or (last is not None and last.regression)


def series_of(
    case: Case, metric: Metric, machine: str, points: Sequence[Point], min_effect: float, failed: Sequence[Failure] = ()
) -> Series:
    """Levels of a case's figures. Changes of `min_effect` or less are no shifts; of a count, any change is one.

    The figures must be above 0. Raises ValueError without any point.
    """
    if not points:
        raise ValueError("a history has at least one run")
    ordered = sorted(points, key=lambda point: point.started)
    logs = [math.log(point.figure.value) for point in ordered]
    noise = noise_of(logs, _floor(metric, ordered))
    parts = changes(logs, _COUNTED_NOISE) if metric.exact else level_starts(logs, noise)
    counted = settled(logs, parts, noise)  # before small shifts are joined, or all around the middle would be wild
    starts = parts if metric.exact else joined(logs, parts, math.log1p(min_effect))
    return Series(
        case=case, metric=metric, machine=machine, points=tuple(ordered), noise=noise,
        levels=tuple(_levels(metric, ordered, logs, starts, counted)),
        failed=tuple(sorted(failed, key=lambda one: one.started)),
    )  # fmt: skip


def _levels(
    metric: Metric, points: Sequence[Point], logs: Sequence[float], starts: Sequence[int], counted: Sequence[bool]
) -> Iterator[Level]:
    before: list[float] = []
    for start, end in zip(starts, [*starts[1:], len(logs)], strict=True):
        kept = list(itertools.compress(logs[start:end], counted[start:end]))
        value, low, high = over_rounds([math.exp(log) for log in kept], exact=metric.exact)  # each run is a round
        yield Level(
            figure=Estimate(metric=metric, value=value, low=low, high=high, rounds=len(kept), samples_per_round=1),
            points=tuple(points[start:end]),
            wild=end - start - len(kept),
            shift=_shift(metric, before, kept, points[start - 1], points[start]) if start else None,
        )
        before = kept


def machine_of(facts: Mapping[str, Any], host: str) -> tuple[str, ...]:
    """What names the machine of an environment; runs of different ones are never put into one series."""
    return tuple(str(facts.get(name, host if name == "host" else "")) for name in _MACHINE)


def history_exit(series: Sequence[Series]) -> int:
    """1 where a newest shift is a regression or a newest run failed, 3 where no series has enough runs, else 0."""
    if any(one.regressed for one in series):
        return 1
    return 0 if any(one.judged for one in series) else 3


def _floor(metric: Metric, points: Sequence[Point]) -> float:
    """The least noise between runs: what their own rounds say is inside each."""
    if metric.exact:
        return _COUNTED_NOISE
    errors = [
        point.figure.half_width / t_quantile(point.figure.rounds - 1)
        for point in points
        if point.figure.half_width is not None and point.figure.rounds > 1
    ]
    return max(_LEAST_NOISE, median(errors) if errors else 0.0)


def _shift(metric: Metric, old: Sequence[float], new: Sequence[float], before: Point, began: Point) -> Shift:
    known = independent(dict(enumerate(old)), dict(enumerate(new)))
    change = fmean(new) - fmean(old) if known is None else known.mean
    low, high = (None, None) if known is None or metric.exact else map(math.exp, known.bounds)
    old_facts, new_facts = (
        {name: fact for name, fact in point.facts.items() if name != _GIT} for point in (before, began)
    )
    machine, code = environment_differences(old_facts, new_facts, ("before", "after"))
    return Shift(
        word=word_of_change(metric, change),
        regression=is_worse(metric, change),
        ratio=math.exp(change),
        low=low,
        high=high,
        before=before,
        changed=(*machine, *code),
    )
