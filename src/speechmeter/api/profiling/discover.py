"""Name every module that is called while a profile runs, without being told of any. Imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from speechmeter.meters.recording.profiler import module_ranges, named_modules


class Discovery:
    """Ranges for the given modules, and for every other that is called from outside of known ones, by its class.

    The first name that a module gets is its name, also inside another one. A context manager; afterwards no hook is
    left. `classes` is path → class of all that were named, `roots` the outermost ones by name.
    """

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self.roots = {name: root for name, root in roots.items() if isinstance(root, torch.nn.Module)}
        self.classes: dict[str, str] = {}
        self._known: set[int] = set()
        self._undo = ExitStack()

    def __enter__(self) -> Discovery:
        for name, root in self.roots.items():
            self._follow(name, root)
        self._undo.callback(register_module_forward_pre_hook(self._called).remove)
        return self

    def __exit__(self, *error: object) -> None:
        self._undo.close()

    def _follow(self, name: str, root: torch.nn.Module) -> None:
        known = frozenset(self._known)
        self._known |= {id(module) for module in named_modules({name: root}, known).values()}
        self.classes.update(self._undo.enter_context(module_ranges({name: root}, known=known)))

    def _called(self, module: torch.nn.Module, inputs: Any) -> None:
        """Before a call of any module. Its own hooks were gathered already: its range of this call is opened here."""
        if id(module) in self._known or torch.compiler.is_compiling():
            return
        name = self._free_name(type(module).__name__)
        self.roots[name] = module
        self._follow(name, module)
        if module._compiled_call_impl is None:
            opening = next(iter(module._forward_pre_hooks.values()))
            opening(module, inputs)

    def _free_name(self, name: str) -> str:
        number, free = 1, name
        while free in self.roots:
            number += 1
            free = f"{name}-{number}"
        return free
