"""Whether weights can be quantised as a case asks, told without importing torch."""

from __future__ import annotations

from speechmeter.core.types import Case
from speechmeter.subjects.generation import NONE


def why_not_quantized(case: Case) -> str | None:
    """Why torch cannot quantise this case's model; None when it can, or when nothing is to be quantised."""
    kind = case.axes.get("quantize", NONE)
    if kind == NONE:
        return None
    if not str(case.axes["device"]).startswith("cpu"):
        return f"quantize {kind}: torch's int8 matrices run on the CPU only"
    if case.axes["dtype"] != "float32":
        return f"quantize {kind}: starts from float32 weights, not {case.axes['dtype']}"
    if case.axes.get("compile"):
        return f"quantize {kind}: packed int8 weights cannot be compiled"
    return None
