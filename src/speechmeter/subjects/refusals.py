"""Why an axis cannot be honoured, for engines that run on the CPU and are no torch modules of their own."""

from __future__ import annotations

from speechmeter.core.types import Case


def cpu_engine(case: Case, name: str) -> str | None:
    """The reason in one line when a case asks for a device, a number format or torch.compile; None when it does not."""
    axes = case.axes
    if axes["device"] != "cpu":
        return f"{name} runs on the CPU only, not on {axes['device']}"
    if axes["dtype"] != "float32":
        return f"{name} keeps the number format of its weights: dtype {axes['dtype']} cannot be had"
    if axes["compile"]:
        return f"{name} is no torch module: torch.compile cannot take it"
    return None
