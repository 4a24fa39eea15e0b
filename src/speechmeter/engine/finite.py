"""Readings that are no numbers: a record holds finite ones alone, so that every reader of JSON can read it."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import Any

from speechmeter.core.types import Measurement


def finite(measurement: Measurement) -> Measurement:
    """The measurement as it is; unavailable, with the reason, where a value is NaN or infinite."""
    bad = next((value for value in measurement.values if not isfinite(value)), None)
    if bad is not None:
        measurement = replace(measurement, values=(), unavailable=f"a reading was {bad}, which is no number")
    return replace(measurement, notes=_plain(measurement.notes)) if measurement.notes else measurement


def _plain(value: Any) -> Any:
    """Notes with words in the place of numbers that are none."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
