"""Many cells at once: which of them are regressions, what they say together, and the exit code.

Sixty cells at 95 % are three false alarms. So a cell is a regression only after Holm's correction over all cells and
metrics, one-sided, with variances that the cells of a metric steady together. The geometric mean of
the cells of a metric is one more test. Nothing got worse where no test says so and the interval of that mean is within
the smallest effect; otherwise the verdict is CANNOT TELL.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from speechmeter.analysis.compare import Verdict, Word, allowed, is_same, is_worse, word_of_change
from speechmeter.analysis.difference import Difference, mean_of, moderated
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import EVERYTHING

LEVEL = 0.05
"""How often an unchanged grid may be called a regression."""
_WHOLE = ("total", EVERYTHING)
"""Scopes of whole calls: the mean is over these, not over the modules inside."""

Exit = Literal[0, 1, 3]


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The geometric mean of NEW / BASE over the cells of a metric, with its interval."""

    metric: Metric
    cells: int
    ratio: float
    low: float
    high: float
    word: Word
    regression: bool
    settled: bool
    reason: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Family:
    """The cells of a comparison, and the mean of each metric that has several of them."""

    verdicts: tuple[Verdict, ...]
    means: tuple[Mean, ...] = ()

    def __repr__(self) -> str:
        return f"Family({len(self.verdicts)} verdicts, exit_code={self.exit_code()})"

    def exit_code(self) -> Exit:
        """1 with a regression, 0 where there is none and enough is known, else 3."""
        seen = self.verdicts
        if any(v.regression for v in seen) or any(mean.regression for mean in self.means):
            return 1
        settled = {mean.metric.id for mean in self.means if mean.settled}
        settled |= {v.metric.id for v in seen if v.scope == EVERYTHING and _is_settled(v)}
        return 3 if not seen or any(_is_open(v, settled) for v in seen) else 0


def _is_settled(verdict: Verdict) -> bool:
    return verdict.word not in ("CANNOT TELL", "MISSING") and not verdict.corrected


def _is_open(verdict: Verdict, settled: Collection[str]) -> bool:
    """Whether a cell keeps the whole from being settled. One that varies is covered by the mean of its metric."""
    return not _is_settled(verdict) and (verdict.difference is None or verdict.metric.id not in settled)


def alone(verdicts: Sequence[Verdict]) -> Family:
    """Every cell by itself: none is corrected for the number of the others, and none covers another."""
    return Family(verdicts=tuple(verdicts))


def together(verdicts: Sequence[Verdict]) -> Family:
    """Judge the cells of a comparison together."""
    compared = list(dict.fromkeys(v.metric for v in verdicts if v.difference is not None))
    steadied = {index: found for metric in compared for index, found in _steadied(verdicts, metric)}
    means = {}
    tails: dict[int | Metric, tuple[float, float]] = {}  # by index of a cell, by metric of a mean
    for index, v in enumerate(verdicts):
        pair = _tails(steadied[index], v.metric) if index in steadied else v.tails
        if pair is not None:
            tails[index] = pair
    for metric in compared:
        cells = [v.difference for v in _cells(verdicts, metric) if v.difference is not None]
        found = mean_of(cells) if len(cells) > 1 else None
        if found is not None:
            means[metric], tails[metric] = found, _tails(found, metric)
    if len(tails) < 2:
        return Family(verdicts=tuple(verdicts))
    worse, better = (dict(zip(tails, _holm([pair[side] for pair in tails.values()]), strict=True)) for side in (0, 1))
    judged = [
        _corrected(v, steadied.get(index), worse[index], better[index], len(tails)) if index in tails else v
        for index, v in enumerate(verdicts)
    ]
    made = [
        _judged_mean(metric, found, _cells(verdicts, metric), worse[metric], better[metric])
        for metric, found in means.items()
    ]
    return Family(verdicts=tuple(judged), means=tuple(made))


def _cells(verdicts: Sequence[Verdict], metric: Metric) -> list[Verdict]:
    return [v for v in verdicts if v.metric == metric and v.difference is not None and v.scope in _WHOLE]


def _steadied(verdicts: Sequence[Verdict], metric: Metric) -> list[tuple[int, Difference]]:
    """(index, difference) of every cell of a metric, each side's variances steadied by those of the other cells."""
    found = [(i, v.difference) for i, v in enumerate(verdicts) if v.metric == metric and v.difference is not None]
    made = []
    for sides in {len(difference.sides) for _, difference in found}:
        alike = [(index, difference) for index, difference in found if len(difference.sides) == sides]
        columns = [moderated([one.sides[side].variance for _, one in alike]) for side in range(sides)]
        rows = zip(*columns, strict=True)
        made += [(index, one.with_variances(row)) for (index, one), row in zip(alike, rows, strict=True)]
    return made


def _tails(difference: Difference, metric: Metric) -> tuple[float, float]:
    worse = 1.0 if is_worse(metric, 1.0) else -1.0
    return difference.tail(worse), difference.tail(-worse)


def _holm(tails: Sequence[float]) -> list[float]:
    """P-values adjusted for their number, by Holm's steps down."""
    adjusted = [0.0] * len(tails)
    reached = 0.0
    for step, index in enumerate(sorted(range(len(tails)), key=tails.__getitem__)):
        reached = max(reached, min(1.0, (len(tails) - step) * tails[index]))
        adjusted[index] = reached
    return adjusted


def _corrected(verdict: Verdict, steadied: Difference | None, worse: float, better: float, tests: int) -> Verdict:
    """The word of a cell with the others taken into account, and the smallest change that would have been noticed."""
    if steadied is None:  # a score: its own interval, and the correction
        changed = verdict.word not in ("SAME", "CANNOT TELL")
        kept = changed and (worse if verdict.regression else better) < LEVEL
        return replace(verdict, corrected=changed and not kept, regression=verdict.regression and kept)
    edge = math.log1p(verdict.min_effect)
    shown = math.expm1(max(edge, steadied.smallest_shown(LEVEL / tests)))
    beyond = abs(steadied.mean) > edge
    holds = beyond and (worse if is_worse(verdict.metric, steadied.mean) else better) < LEVEL
    if holds:
        word = word_of_change(verdict.metric, steadied.mean)
        note = (
            ""
            if verdict.word == word
            else "the verdict combines the spread of this cell with that of all compared cells"
        )
        return replace(
            verdict, word=word, regression=is_worse(verdict.metric, steadied.mean), shown=shown,
            reason=note or verdict.reason, rounds_to_settle=None,
        )  # fmt: skip
    changed = verdict.word not in ("SAME", "CANNOT TELL")
    return replace(verdict, regression=False, corrected=changed, shown=shown)


def _judged_mean(metric: Metric, found: Difference, cells: Sequence[Verdict], worse: float, better: float) -> Mean:
    edge = math.log1p(min(v.min_effect for v in cells))
    low, high = found.bounds
    word: Word = "CANNOT TELL"
    is_regression = is_worse(metric, found.mean)
    if abs(found.mean) > edge and (worse if is_regression else better) < LEVEL:
        word = word_of_change(metric, found.mean)
    elif is_same(found, edge):
        word = "SAME"
    changed = word not in ("SAME", "CANNOT TELL")
    hidden = word == "CANNOT TELL" and found.allowance and (low > 0 or high < 0)
    return Mean(
        metric=metric,
        cells=len(cells),
        ratio=math.exp(found.mean),
        low=math.exp(low),
        high=math.exp(high),
        word=word,
        regression=changed and is_regression,
        settled=word == "SAME" or (changed and not is_regression),
        reason=allowed(found) if hidden else "",
    )
