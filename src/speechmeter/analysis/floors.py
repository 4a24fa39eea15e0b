"""The least time a transducer loss can take on a device: what must be moved or computed, by the measured peaks.

The loss alone must read every true logit once and write the gradient of every padded one. The step must compute the
three matrix products of the joiner over the true cells; its logits need not be stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JOINER_WIDTH = 512
"""Outputs of encoder and predictor that the joiner takes, as in the original study."""
_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_PRODUCTS = 3


def floor_s(
    axes: Mapping[str, Any], *, cells: float, padded: float, bytes_per_s: float | None, flop_per_s: float | None
) -> float | None:
    """Seconds for one call with this many cells; None for a case that is no loss, or without the peak it needs."""
    vocabulary, size = axes.get("vocabulary"), _BYTES.get(str(axes.get("dtype")))
    if vocabulary is None or size is None:
        return None
    if axes.get("part") == "loss":
        return (cells + padded) * vocabulary * size / bytes_per_s if bytes_per_s else None
    flop = 2 * _PRODUCTS * cells * JOINER_WIDTH * vocabulary
    return flop / flop_per_s if axes.get("part") == "step" and flop_per_s else None
