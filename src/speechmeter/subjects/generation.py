"""What models that generate share: their axes, each defined once, and the words for random weights."""

from __future__ import annotations

from speechmeter.core.axes import (
    BEAM,
    INT8_DYNAMIC,
    MAX_LEN_A,
    MAX_LEN_B,
    MAX_NEW_TOKENS,
    MIN_NEW_TOKENS,
    NONE,
    QUANTIZE,
)

PINNED_TOKENS = 32
"""Tokens a random-weight decoder makes when the plan does not say: its own stopping means nothing."""
SYNTHETIC = "synthetic: random weights, same cost, no meaning"

__all__ = [
    "BEAM", "INT8_DYNAMIC", "MAX_LEN_A", "MAX_LEN_B", "MAX_NEW_TOKENS", "MIN_NEW_TOKENS", "NONE", "PINNED_TOKENS",
    "QUANTIZE", "SYNTHETIC", "pinned_note",
]  # fmt: skip


def pinned_note(tokens: int) -> str:
    """What a record says of a decode length that is fixed beforehand."""
    return f"decode length pinned to {tokens} tokens"
