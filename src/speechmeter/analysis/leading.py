"""Which of several figures of one metric is best, and which of the others cannot be distinguished from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.quality import order_of


@dataclass(frozen=True, kw_only=True)
class Lead:
    """The best of several figures, by name.

    `close` are those whose intervals overlap that of the best, or whose figures are equal. `certain` is False where an
    interval is missing: then the best is only the best of what was measured.
    """

    best: str
    figure: Estimate
    close: tuple[str, ...]
    certain: bool


def lead(figures: Mapping[str, Estimate], *, largest: bool | None = None) -> Lead | None:
    """The best by the direction of the metric; with `largest` the largest or the least. None for fewer than two."""
    if len(figures) < 2:
        return None
    direction = next(iter(figures.values())).metric.direction
    ordered = sorted(
        figures, key=lambda name: figures[name].value, reverse=direction == "higher" if largest is None else largest
    )
    best, *others = ordered
    first = figures[best]
    equal = [name for name in others if figures[name].value == first.value]
    if first.metric.exact:
        return Lead(best=best, figure=first, close=tuple(equal), certain=True)
    known = [name for name in others if figures[name].low is not None]
    certain = first.low is not None and len(known) == len(others)
    close = [name for name in known if first.low is not None and order_of(first, figures[name]) == "not resolvable"]
    return Lead(best=best, figure=first, close=tuple(dict.fromkeys([*equal, *close])), certain=certain)
