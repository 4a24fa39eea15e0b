"""Whether a cell needs more rounds: adaptive rounds go on where the spread is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.types import FAILED, Record

Reason = Literal["precision", "max_rounds", "failed"]


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """How many rounds: a fixed number where `least` and `most` agree, else until `precision` is met.

    `precision` is half the interval over rounds as a share of the figure.
    """

    least: int
    most: int
    precision: float = 0.05

    @property
    def adaptive(self) -> bool:
        """Whether the number depends on what is found."""
        return self.least < self.most


def settled(records: Sequence[Record], rounds: Rounds) -> Reason | None:
    """Why a case needs no further round after these; None when it does.

    A case that failed in every round so far is not tried for ever: after the least number it is left alone.
    """
    if len(records) < rounds.least:
        return None
    if len(records) >= rounds.most:
        return "max_rounds"
    if all(record.status in FAILED for record in records):
        return "failed"
    figure = estimate(records, metrics.LATENCY)
    if figure is None:
        return "precision"
    if figure.rounds < 2:  # no interval yet, so no precision
        return None
    return "precision" if (figure.half_width or 0.0) <= rounds.precision else None


def group_settled(groups: Iterable[Sequence[Record]], rounds: Rounds) -> bool:
    """Whether all cases of a cell are settled: cases measured together go on together, so that they can be paired."""
    return all(settled(records, rounds) is not None for records in groups)
