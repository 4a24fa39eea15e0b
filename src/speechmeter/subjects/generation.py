"""What models that generate share: their axes, each defined once, and the words for random weights."""

from __future__ import annotations

from speechmeter.core.axes import Axis

PINNED_TOKENS = 32
"""Tokens a random-weight decoder makes when the plan does not say: its own stopping means nothing."""
SYNTHETIC = "synthetic: random weights, same cost, no meaning"
NONE, INT8_DYNAMIC = "none", "int8-dynamic"

BEAM = Axis(name="beam", kind=int, default=1, help="hypotheses that the decoder keeps; 1 is greedy", minimum=1)
MIN_NEW_TOKENS = Axis(
    name="min_new_tokens", kind=int, default=None, help="least length of a generated text, in tokens", minimum=0
)
MAX_NEW_TOKENS = Axis(
    name="max_new_tokens", kind=int, default=None, help="length of a generated text, in tokens", minimum=1
)
MAX_LEN_A = Axis(
    name="max_len_a", kind=float, default=None, help="a of: max new tokens = a × source length + b", minimum=0
)
MAX_LEN_B = Axis(
    name="max_len_b", kind=int, default=None, help="b of: max new tokens = a × source length + b", minimum=0
)
QUANTIZE = Axis(
    name="quantize",
    kind=str,
    default=NONE,
    help="none, or int8-dynamic: weights in int8, activations quantised at every call",
    choices=(NONE, INT8_DYNAMIC),
)


def pinned_note(tokens: int) -> str:
    """What a record says of a decode length that is fixed beforehand."""
    return f"decode length pinned to {tokens} tokens"
