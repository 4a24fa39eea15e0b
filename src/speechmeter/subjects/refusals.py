"""Why an axis cannot be honoured, told without importing what cannot honour it."""

from __future__ import annotations

from speechmeter.core.types import Case
from speechmeter.subjects.generation import NONE


def cpu_engine(case: Case, name: str) -> str | None:
    """The reason in one line when a case asks for a device, a number format or torch.compile; None when it does not."""
    axes = case.axes
    if not case.device.is_cpu:
        return f"{name} runs on the CPU only, not on {case.device}"
    if axes["dtype"] != "float32":
        return f"{name} keeps the number format of its weights: dtype {axes['dtype']} cannot be had"
    if axes["compile"]:
        return f"{name} is no torch module: torch.compile cannot take it"
    return None


def torch_quantizing(case: Case) -> str | None:
    """Why torch cannot quantise the weights as a case asks; None when it can, or when nothing is to be quantised."""
    axes = case.axes
    kind = axes.get("quantize", NONE)
    if kind == NONE:
        return None
    if not case.device.is_cpu:
        return f"quantize {kind}: torch's int8 matrices run on the CPU only, not on {case.device}"
    if axes["dtype"] != "float32":
        return f"quantize {kind}: starts from float32 weights, not from {axes['dtype']}"
    if axes["compile"]:
        return f"quantize {kind}: torch.compile cannot take packed int8 weights"
    return None
