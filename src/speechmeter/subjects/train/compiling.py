"""torch.compile for what is trained: whole roots, or every repeated layer on its own. Imports torch."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Case


def compile_as_asked(modules: Mapping[str, torch.nn.Module], case: Case) -> None:
    """Compile in place, so that the modules stay what they are. Raises SubjectError where no layer repeats."""
    if case.axes.get("compile"):
        for module in modules.values():
            module.compile()
    elif case.axes.get("compile_blocks"):
        blocks = blocks_of(modules)
        if not blocks:
            raise SubjectError("compile_blocks is for layers in a ModuleList, and there is none", fix="use compile")
        for block in blocks:
            block.compile()


def blocks_of(modules: Mapping[str, torch.nn.Module]) -> list[torch.nn.Module]:
    """The members of every list of modules, outermost lists only."""
    found: list[torch.nn.Module] = []
    for root in modules.values():
        for child in root.children():
            found += list(child) if isinstance(child, torch.nn.ModuleList) else blocks_of({"": child})
    return found
