"""One case over many runs: the levels that its figure had, and when each began."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from speechmeter.analysis.compare import Word, independent_ratio, is_worse, word_of_change
from speechmeter.analysis.conditions import environment_differences
from speechmeter.analysis.estimate import Estimate, over_rounds
from speechmeter.analysis.shifts import FEWEST, changes, joined, level_starts, noise_of, settled
from speechmeter.analysis.student import t_quantile
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Case

_LEAST_NOISE = 0.002
"""Nothing that is timed repeats more closely from run to run."""
_COUNTED_NOISE = 1e-9
_FEWEST_COUNTED = 2
"""Of what is counted, so that any change is one."""
_GIT = "git"
_MACHINE = ("host", "cpu", "cores", "gpu")
"""Facts by which two environments are two machines. Whatever else changed is named beside the shift it came with."""


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
        """Whether the newest run failed or the newest shift is for the worse: what was mended since does not count."""
        last = self.levels[-1].shift
        return bool(self.failing) or (last is not None and last.regression)


def series_of(
    case: Case, metric: Metric, machine: str, points: Sequence[Point], min_effect: float, failed: Sequence[Failure] = ()
) -> Series:
    """Levels of a case's figures. Shifts of `min_effect` or less are none; of what is counted, any is one.

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
        yield Level(
            figure=_level_figure(metric, kept),
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
    ratio, low, high = independent_ratio(old, new)
    old_facts, new_facts = (
        {name: fact for name, fact in point.facts.items() if name != _GIT} for point in (before, began)
    )
    machine, code = environment_differences(old_facts, new_facts, ("before", "after"))
    return Shift(
        word=word_of_change(metric, math.log(ratio)),
        regression=is_worse(metric, math.log(ratio)),
        ratio=ratio,
        low=None if metric.exact else low,
        high=None if metric.exact else high,
        before=before,
        changed=(*machine, *code),
    )


def _level_figure(metric: Metric, logs: Sequence[float]) -> Estimate:
    """The level with its interval, as a figure is made of rounds; here each run is one."""
    value, low, high = over_rounds([math.exp(value) for value in logs], exact=metric.exact)
    return Estimate(metric=metric, value=value, low=low, high=high, rounds=len(logs), samples_per_round=1)
