"""Arithmetic whose operations are known, to find out whether a counter counts. A list of events tells nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from speechmeter.core.errors import SensorError
from speechmeter.meters.hardware.base import Counter

_ELEMENTS = 1 << 14
_ROUNDS = 600
KNOWN_FLOPS = 2 * _ELEMENTS * _ROUNDS
"""About ten milliseconds: events that share a counter take turns every few milliseconds."""
_TOLERANCE = 0.2


def check(counter: Counter) -> None:
    """Raise SensorError for a counter that reads zero, or far from the truth, over known work."""
    flops = counter.count(_multiplications()).flops
    if flops <= 0:
        raise SensorError(f"the counter opens but reads 0 after {KNOWN_FLOPS} multiplications")
    if abs(flops / KNOWN_FLOPS - 1) > _TOLERANCE:
        raise SensorError(f"the counter reads {flops:.0f} after {KNOWN_FLOPS} multiplications")


def _multiplications() -> Callable[[], None]:
    """One multiplication an element, in turns of single and double precision, on the calling thread."""
    import numpy as np  # here: its threads must not start while a counter counts

    single: Any = np.ones(_ELEMENTS, np.float32)
    double: Any = np.ones(_ELEMENTS, np.float64)

    def multiply() -> None:
        for _ in range(_ROUNDS):
            np.multiply(single, single, out=single)
            np.multiply(double, double, out=double)

    return multiply
