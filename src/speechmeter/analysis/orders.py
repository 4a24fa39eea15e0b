"""How a first figure compares with a second: a difference over what both sides share, and the order that it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from speechmeter.analysis.estimate import Estimate

Order = Literal["better", "worse", "same", "not resolvable"]
"""How a first figure compares with a second, by their intervals."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """First minus second over the utterances that both have; `estimate` is None with the reason why not."""

    estimate: Estimate | None
    order: Order
    reason: str = ""


def no_difference(reason: str) -> Difference:
    """None, and why."""
    return Difference(estimate=None, order="not resolvable", reason=reason)
