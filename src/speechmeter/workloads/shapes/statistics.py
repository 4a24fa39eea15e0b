"""What a table of shapes looks like: quantiles, and the batches that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from speechmeter.workloads.shapes.batching import Groups, cells, cells_padded
from speechmeter.workloads.shapes.table import Shapes

PERCENTS = (0, 1, 5, 25, 50, 75, 95, 99, 100)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean, sample standard deviation (None of a single row) and the quantiles at `PERCENTS` of one column."""

    name: str
    mean: float
    sd: float | None
    quantiles: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class BatchFacts:
    """Batches in figures; pairs are the least and the largest. `largest_step` counts from the first of the pass."""

    batches: int
    items: tuple[int, int]
    frames: tuple[int, int]
    tokens: tuple[int, int]
    padded_mean: float
    padded_largest: int
    largest_step: int
    true_mean: float

    @property
    def waste(self) -> float:
        """The share of padded cells that hold nothing."""
        return 1 - self.true_mean / self.padded_mean


def spreads(shapes: Shapes) -> list[Spread]:
    """T, U and T/U, the last over rows that have tokens."""
    frames, tokens = shapes.rows[:, 0], shapes.rows[:, 1]
    some = tokens > 0
    columns = {"T": frames, "U": tokens, **({"T/U": frames[some] / tokens[some]} if some.any() else {})}
    return [_spread(name, column) for name, column in columns.items()]


def correlation(shapes: Shapes) -> float | None:
    """Pearson's correlation of T and U; None where one of them does not vary."""
    import numpy as np

    frames, tokens = shapes.rows[:, 0], shapes.rows[:, 1]
    return float(np.corrcoef(frames, tokens)[0, 1]) if frames.std() > 0 and tokens.std() > 0 else None


def batch_facts(groups: Groups, first: int = 0) -> BatchFacts:
    """The figures of all the groups; `first` is the number of the first of them in its pass."""
    rows = [groups.one(place) for place in range(len(groups))]
    true, padded = [cells(part) for part in rows], [cells_padded(part) for part in rows]
    return BatchFacts(
        batches=len(rows),
        items=_ends([len(part) for part in rows]),
        frames=_ends([int(part[:, 0].max()) for part in rows]),
        tokens=_ends([int(part[:, 1].max()) for part in rows]),
        padded_mean=sum(padded) / len(padded),
        padded_largest=max(padded),
        largest_step=first + padded.index(max(padded)),
        true_mean=sum(true) / len(true),
    )


def _ends(values: list[int]) -> tuple[int, int]:
    return min(values), max(values)


def _spread(name: str, column: Any) -> Spread:
    import numpy as np

    quantiles = tuple(float(value) for value in np.percentile(column, PERCENTS))
    sd = float(column.std(ddof=1)) if len(column) > 1 else None
    return Spread(name=name, mean=float(column.mean()), sd=sd, quantiles=quantiles)
