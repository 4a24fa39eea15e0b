"""What would settle a comparison that intervals leave open: how many rounds, or how many utterances."""

from __future__ import annotations

import math

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.intervals import t_quantile

MOST_ROUNDS = 100
"""More rounds than this are not proposed: figures that are so close are alike."""


def rounds_to_separate(first: Estimate, second: Estimate) -> int | None:
    """About how many rounds of each would keep two intervals apart, if figures and spreads stay as they are.

    None where more than `MOST_ROUNDS` are needed, and where there is no spread to go by.
    """
    spreads = _spread(first), _spread(second)
    if None in spreads or min(first.value, second.value) <= 0:
        return None
    return _needed(abs(math.log(first.value / second.value)), sum(one for one in spreads if one is not None), first)


def rounds_to_decide(figure: Estimate, limit: float) -> int | None:
    """About how many rounds would keep an interval on one side of a limit; None as above."""
    spread = _spread(figure)
    if spread is None or figure.value <= 0:
        return None
    return _needed(abs(math.log(figure.value / limit)), spread, figure)


def _spread(figure: Estimate) -> float | None:
    """The standard deviation of the logarithms of the rounds, from the interval; None where there is none."""
    if figure.low is None or figure.high is None or figure.rounds < 2 or figure.low <= 0 or math.isinf(figure.high):
        return None
    half = math.log(figure.high / figure.low) / 2
    return half * math.sqrt(figure.rounds) / t_quantile(figure.rounds - 1)


def _needed(gap: float, spread: float, figure: Estimate) -> int | None:
    """The first number of rounds, above those that there are, at which half-widths add up to less than the gap."""
    rounds = range(figure.rounds + 1, MOST_ROUNDS + 1)
    return next((n for n in rounds if t_quantile(n - 1) * spread / math.sqrt(n) < gap), None)


def utterances_to_separate(difference: Estimate) -> int | None:
    """About how many utterances a paired difference needs so that its interval leaves 0 out, if it stays as it is.

    None without an interval, and where the difference is 0. The width falls with the root of the number.
    """
    if difference.low is None or difference.high is None or not difference.value:
        return None
    half = (difference.high - difference.low) / 2
    return math.ceil(difference.samples_per_round * (half / abs(difference.value)) ** 2)
