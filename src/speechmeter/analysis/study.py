"""A study as the rules see it that say what it found: its cases by name, and what an answer is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.frontier import Edge
from speechmeter.analysis.intervals import Quantity
from speechmeter.analysis.leading import Lead, lead
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record

Size = tuple[Any, Any]
"""Seconds and batch of a case, `all` where it has none."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The rounds of a case, and its name among the cases of its size: the model, and what else varies."""

    name: str
    model: str
    size: Size
    rounds: Sequence[Record]


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Settings that can be compared, such as the losses alone on one vocabulary. `title` says what they share."""

    title: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True, kw_only=True)
class Study:
    """What rules are given. `settings` are neither transducer losses nor trials of a search.

    `losses` are contests of the loss alone, `steps` of the whole step. `edges` are what fits, by what lines share.
    """

    settings: tuple[Setting, ...] = ()
    losses: tuple[Contest, ...] = ()
    steps: tuple[Contest, ...] = ()
    edges: Mapping[str, Sequence[Edge]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one rule found. `names` are the best and those that cannot be distinguished from it, of `of` in all.

    `rounds` are behind `figure`. `certain` is False where an interval is missing. `other` is what the answer is
    compared with, and `ratio` how many times its figure. `where` and `size` say what the compared ones share. `close`
    are the rounds of the further names, `models` how many models are among the `of`. Of `of` cells, `slow` are not
    faster than real time; `tried` are all, also those without a figure. `limit` is the least size that does not fit.
    """

    rule: str
    names: tuple[str, ...]
    figure: Quantity
    rounds: Sequence[Record]
    of: int = 1
    certain: bool = True
    where: str = ""
    size: Size | None = None
    other: str = ""
    other_figure: Quantity | None = None
    ratio: float | None = None
    slow: int = 0
    tried: int = 0
    close: tuple[Sequence[Record], ...] = ()
    models: int = 0
    limit: Quantity | None = None


def shared(settings: Sequence[Setting], metric: Metric) -> list[Setting]:
    """Settings of one size: the longest, in the least batch, that most of them have and that has a figure.

    Empty where no setting has the metric.
    """
    held: dict[Size, list[Setting]] = {}
    for setting in settings:
        held.setdefault(setting.size, []).append(setting)
    measured = {size: sum(_is_measured(one.rounds) for one in own) for size, own in held.items()}
    sizes = sorted(held, key=lambda size: (measured[size], order(size[0]), -order(size[1])), reverse=True)
    single: list[Setting] = []
    for size in sizes[:_TRIED]:
        figures = sum(estimate(one.rounds, metric) is not None for one in held[size])
        if figures > 1:
            return held[size]
        if figures and not single:
            single = held[size]
    return single


_TRIED = 200
"""Sizes that are looked at."""


def _is_measured(rounds: Sequence[Record]) -> bool:
    return any(record.status == "ok" for record in rounds)


def order(value: Any) -> float:
    """A seconds or batch as a number to sort by; what has none comes first."""
    return float(value) if isinstance(value, int | float) else 0.0


def best_of(rule: str, settings: Sequence[Setting], metric: Metric, **more: Any) -> Iterator[Answer]:
    """Which of some settings has the best figure of a metric; of a single one, that figure."""
    named = {one.name: one for one in settings}
    figures = {name: one for name, own in named.items() if (one := estimate(own.rounds, metric)) is not None}
    if not figures:
        return
    first = next(iter(figures))
    found = lead(figures) or Lead(best=first, figure=figures[first], close=(), certain=True)
    others = [name for name in figures if name not in (found.best, *found.close)]
    runner_up = lead({name: figures[name] for name in others})
    second = runner_up.best if runner_up is not None else next(iter(others), "")
    yield Answer(
        rule=rule, names=(found.best, *found.close), figure=found.figure, rounds=named[found.best].rounds,
        of=len(figures), certain=found.certain, size=named[found.best].size,
        close=tuple(named[name].rounds for name in found.close), models=len({named[name].model for name in figures}),
        **{**({"other": second, "other_figure": figures[second]} if second else {}), **more},
    )  # fmt: skip
