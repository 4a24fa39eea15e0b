"""Launches without looking at every argument again: a launch by Triton takes longer than many a kernel. Imports triton.

Seen on an H200: 67 µs by Triton, of which the kernel's own launch is a few.
"""

from __future__ import annotations

from typing import Any

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

SPECIALISED = ("size", "vocabulary")
"""The numbers that kernels are compiled for; all others stand in their `do_not_specialize`."""
LARGEST_INT32 = 2**31 - 1
_compiled: dict[tuple[Any, ...], Any] = {}


class Launch:
    """A kernel with its arguments by name, to be launched once or several times with another number `first`."""

    def __init__(self, kernel: Any, grid: tuple[int, ...], options: dict[str, int], **arguments: Any) -> None:
        self._kernel, self._options, self._arguments = kernel, options, arguments
        self._grid = (*grid, *(1 for _ in range(3 - len(grid))))
        kinds = (_kind(name, arguments.get(name)) for name in kernel.arg_names)
        self._key = (id(kernel), *options.values(), *kinds)

    def __call__(self, first: int | None = None) -> None:
        """Launch it, for the chunk that starts with tile `first` where the kernel asks for one."""
        if first is not None:
            self._arguments["first"] = first
        compiled = _compiled.get(self._key)
        if compiled is None:
            _compiled[self._key] = self._kernel[self._grid](**self._arguments, **self._options)
        else:
            compiled[self._grid](*(self._arguments[name] for name in self._kernel.arg_names))


def _kind(name: str, argument: Any) -> Any:
    """Return all of an argument that Triton compiles for."""
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.data_ptr() % 16 == 0, argument.device.index
    if isinstance(argument, TensorDescriptor):
        return argument.base.dtype, *argument.block_shape
    if name.isupper() or name in SPECIALISED:
        return argument
    return argument is not None and argument > LARGEST_INT32
