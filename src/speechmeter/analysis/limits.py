"""A figure against a limit: within it, beyond it, or undecided because the interval crosses it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.metric_names import find_metric, metric_names, no_metric
from speechmeter.core.errors import InputError

Judgement = Literal["within", "beyond", "undecided"]

_UNITS = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "bytes": {"bytes": 1.0, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30},
}
"""How a limit's unit may be written, by the metric's own. A metric of any other unit takes the bare number."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most, or the least, that a metric may be, in the metric's own unit. `name` is as users write it."""

    key: str
    name: str
    value: float
    is_most: bool

    def judge(self, figure: Estimate) -> Judgement:
        """By the whole interval; a figure that varies and has none, of a single round, decides nothing."""
        low, high = figure.low, figure.high
        if low is None or high is None:
            if not figure.metric.exact:
                return "undecided"
            low = high = figure.value
        if not self.is_most:
            low, high = -high, -low
        bound = self.value if self.is_most else -self.value
        if high <= bound:
            return "within"
        return "beyond" if low > bound else "undecided"


def limit_named(key: str, value: Any, *, where: str) -> Limit:
    """`max_latency_ms=50`, `max_memory_mib=200`, `max_rtf=0.3`, `min_rtfx=10`. Raises InputError for anything else."""
    side, _, rest = key.partition("_")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InputError(
            f"{key} must be a number of at least 0, not {value!r}", where=where, fix=f"for example {key}=50"
        )
    name, unit = (rest, "") if _unit(rest) is not None else (rest.rpartition("_")[0], rest.rpartition("_")[2])
    own = _unit(name)
    if own is None:
        raise no_metric(name or rest, metric_names(), where=where)
    choices = _UNITS.get(own, {"": 1.0})
    if unit not in choices:
        ways = ", ".join(f"{side}_{name}_{word}" for word in choices) if own in _UNITS else f"{side}_{name}"
        raise InputError(f"{name} cannot be given in the unit of {key}", where=where, fix=f"write {ways}")
    return Limit(key=key, name=name, value=float(value) * choices[unit], is_most=side == "max")


def _unit(name: str) -> str | None:
    found = find_metric(name)
    return found.unit if found is not None else None
