"""Figures that rest on something the reader states: a rated power, a price, the CO2 of a kilowatt-hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record

_JOULES_PER_KWH = 3.6e6
ASSUMPTIONS = {
    "tdp_w": "rated power of the device in watts",
    "co2_g_per_kwh": "grams of CO2 for a kilowatt-hour",
    "price_per_kwh": "price of a kilowatt-hour, in your currency",
    "price_per_hour": "price of an hour of the machine, in your currency",
}
"""What may be stated."""
OF_CAPACITY = "price_per_hour"
"""What the table of capacity takes; all others are for that of energy."""

Assumed = Mapping[str, float]


def read_assumptions(words: Iterable[str]) -> dict[str, float]:
    """`tdp_w=65` and the like as numbers. Raises InputError for anything else."""
    stated: dict[str, float] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in ASSUMPTIONS:
            raise InputError(
                f"there is no assumption {name!r}", key="assume", fix=f"choose from: {', '.join(ASSUMPTIONS)}"
            )
        try:
            stated[name] = float(value)
        except ValueError:
            stated[name] = -1.0
        if not 0 < stated[name] < float("inf"):
            raise InputError(
                f"{name} must be a number greater than 0, not {value!r}", key="assume", fix=f"for example {name}=65"
            )
    return stated


def check_view(stated: Assumed, view: str) -> None:
    """Raise InputError for an assumption that the figures of a view do not rest on."""
    for name in stated:
        if (name == OF_CAPACITY) != (view == "capacity"):
            other = "energy" if view == "capacity" else "capacity"
            raise InputError(f"{name} applies to the view {other} only", key="assume", fix=f"add `metric: {other}`")


def assumed_metrics(stated: Assumed) -> list[Metric]:
    """The metrics that follow from what was stated."""
    wanted = {
        "tdp_w": metrics.ENERGY_TDP,
        "co2_g_per_kwh": metrics.CO2_PER_AUDIO_HOUR,
        "price_per_kwh": metrics.COST_PER_1000_AUDIO_HOURS,
    }
    return [metric for name, metric in wanted.items() if name in stated]


def assumed_estimate(records: Sequence[Record], metric: Metric, energy: Metric, stated: Assumed) -> Estimate | None:
    """One such figure for the rounds of a case; `energy` is the measured gross energy it rests on."""
    if metric is metrics.ENERGY_TDP:
        latency = estimate(records, metrics.LATENCY)
        return latency.scaled(metric, stated["tdp_w"]) if latency is not None else None
    per_hour = estimate(records, metrics.ENERGY_PER_AUDIO_HOUR[energy])
    if per_hour is None:
        return None
    factor = stated["co2_g_per_kwh"] if metric is metrics.CO2_PER_AUDIO_HOUR else 1000 * stated["price_per_kwh"]
    return per_hour.scaled(metric, factor / _JOULES_PER_KWH)
