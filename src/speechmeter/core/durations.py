"""Durations as people write them, `100ms` or `2 s`, in seconds."""

from __future__ import annotations

import math
import re
from typing import Any

_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_FORM = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\s*(ms|s|min|h|)\s*", re.ASCII | re.IGNORECASE)


def seconds_of(value: Any) -> Any:
    """The seconds of a number or of a text with a unit; anything else as it is, for whoever checks it.

    They are the nearest to what was written: `20ms` is 0.02, not a product that differs in its last digit.
    """
    found = _FORM.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    number, unit = float(found[1]), found[2].lower()
    seconds = number / 1000 if unit == "ms" else number * _UNITS[unit]
    return seconds if math.isfinite(seconds) else value
