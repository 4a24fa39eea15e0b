"""Durations and forecasts in words: `3 min`, `between 3 min and 5 min`, and what an estimate is based on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speechmeter.launch.forecast import Basis, Forecast

_CLOSE = 1.3
"""Two ends of a range whose ratio is at most this are one figure."""


def duration(seconds: float) -> str:
    """`42 s`, `3 min`, `1 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def time_range(least_s: float, most_s: float) -> str:
    """`about 3 min`, `between 3 min and 5 min`."""
    low, high = duration(least_s), duration(most_s)
    return f"about {high}" if low == high or most_s <= _CLOSE * least_s else f"between {low} and {high}"


def forecast_words(found: Forecast) -> str:
    """How long measurements take, and what that is based on."""
    from speechmeter.report.numbers import counted

    parts = []
    if found.basis:
        basis = ", ".join(f"{count} from {one.value}" for one, count in sorted(found.basis.items(), key=_by_count))
        records = counted(found.records, "earlier record")
        parts.append(f"{time_range(found.least_s, found.most_s)} (based on {records} of this machine: {basis})")
    if found.unknown:
        limit = "no time limit is set" if found.limit_s is None else f"at most {duration(found.limit_s)} each"
        count = f"{found.unknown} more" if found.basis else "no similar case"
        was = (
            "of models that were never measured on this machine"
            if found.basis
            else "was measured on this machine before"
        )
        parts.append(f"{count} {was}: at least {duration(found.unknown_s)} together, {limit}")
    if found.extra and found.total:
        most = f", at most {duration(found.extra_s)} longer" if found.extra_s else ""
        parts.append(f"up to {found.extra} more rounds if intervals are too wide{most}")
    return "; ".join(parts)


def _by_count(entry: tuple[Basis, int]) -> int:
    return -entry[1]


def left_words(found: Forecast) -> str:
    """How much time is left."""
    from speechmeter.report.numbers import counted

    more_models = f", not counting {counted(found.unknown, 'measurement')} of new models"
    new = more_models if found.unknown and found.basis else ""
    more = ", then perhaps more rounds" if found.extra else ""
    known = f"{time_range(found.least_s, found.most_s)} left" if found.basis else ""
    start = f"at least {duration(found.unknown_s)} left" if found.unknown_s >= 0.5 and not found.basis else ""
    return f"{known or start}{new}{more}"
