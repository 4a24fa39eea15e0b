"""The batch from which on a larger one buys little: where throughput comes within a tenth of the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.core import metrics
from speechmeter.core.types import Record

NEAR = 0.9
"""Of the best throughput: what counts as saturated."""
SIZE = "size"
"""The statistic of a figure that is one of the sizes measured."""


@dataclass(frozen=True, kw_only=True)
class Saturation:
    """The saturating batch, and the throughput there and at its best.

    `batch` is None where throughput still rises at the largest batch, by more than a tenth.
    """

    batch: Estimate | None
    there: Estimate
    best: Estimate
    largest: float


def saturation(cases: Sequence[tuple[float, Sequence[Record]]]) -> Saturation | None:
    """From (batch, rounds of the case); None with fewer than two batches that have a throughput."""
    found = [(size, e) for size, records in sorted(cases, key=lambda case: case[0]) if (e := _rate(records))]
    if len(found) < 2:
        return None
    best = max((figure for _, figure in found), key=lambda figure: figure.value)
    first = next((size, figure) for size, figure in found if figure.value >= NEAR * best.value)
    if first[0] == found[-1][0]:
        return Saturation(batch=None, there=first[1], best=best, largest=found[-1][0])
    low = next(size for size, figure in found if (figure.high or figure.value) >= NEAR * best.value)
    high = next((size for size, figure in found if (figure.low or figure.value) >= NEAR * best.value), found[-1][0])
    known = all(figure.low is not None for _, figure in found)
    batch = Estimate(
        metric=metrics.SATURATION_BATCH,
        value=first[0],
        low=min(low, first[0]) if known else None,
        high=max(high, first[0]) if known else None,
        rounds=best.rounds,
        samples_per_round=len(found),
        statistic=SIZE,
    )
    return Saturation(batch=batch, there=first[1], best=best, largest=found[-1][0])


def _rate(records: Sequence[Record]) -> Estimate | None:
    return estimate(records, metrics.THROUGHPUT)
