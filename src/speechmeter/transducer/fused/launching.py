"""Launches without looking at every argument again: a launch by Triton takes longer than many a kernel. Imports triton.

Seen on an H200: 67 µs by Triton, of which the kernel's own launch is a few. Half of the rest is one question to the
driver for each tensor, so that kernels which are compiled get addresses instead.
"""

from __future__ import annotations

from typing import Any

import torch
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor

SPECIALISED = ("size", "vocabulary")
"""The numbers that kernels are compiled for; all others stand in their `do_not_specialize`."""
FIRST = "first"
LARGEST_INT32 = 2**31 - 1
_ALIGNED = 15
_compiled: dict[tuple[Any, ...], Any] = {}
_names: dict[int, tuple[tuple[str, bool], ...]] = {}


class Launch:
    """A kernel with its arguments by name, to be launched once or several times with another number `first`."""

    def __init__(self, kernel: Any, grid: tuple[int, ...], options: dict[str, int], **arguments: Any) -> None:
        self._kernel, self._options, self._arguments = kernel, options, arguments
        self._grid = (*grid, *(1 for _ in range(3 - len(grid))))
        self._values: list[Any] = []
        self._device: int | None = None
        key: list[Any] = [id(kernel), *options.values()]
        for name, compiled_for in _names_of(kernel):
            key.append(self._taken(arguments.get(name), compiled_for))
        self._key = (self._device, *key)

    def __call__(self, first: int | None = None) -> None:
        """Launch it, for the chunk that starts with tile `first` where the kernel asks for one."""
        if self._device is None or self._device == torch.cuda.current_device():
            self._launch(first)
        else:
            with torch.cuda.device(self._device):
                self._launch(first)

    def _launch(self, first: int | None) -> None:
        compiled = _compiled.get(self._key)
        if first is not None:
            self._arguments[FIRST] = first
        if compiled is None:
            _compiled[self._key] = self._kernel[self._grid](**self._arguments, **self._options)
            return
        if first is not None:
            self._values[self._kernel.arg_names.index(FIRST)] = first
        stream = driver.active.get_current_stream(self._device)
        no_hooks = None, None, None
        compiled.run(*self._grid, stream, compiled.function, compiled.packed_metadata, *no_hooks, *self._values)

    def _taken(self, argument: Any, compiled_for: bool) -> Any:
        """Note the value that a compiled kernel gets, and return all of it that Triton compiles for."""
        value, kind = argument, argument
        if isinstance(argument, torch.Tensor):
            value = argument.data_ptr()
            self._device = argument.get_device() if argument.is_cuda else None
            kind = argument.dtype, value & _ALIGNED == 0
        elif isinstance(argument, TensorDescriptor):
            kind = argument.base.dtype, *argument.block_shape
        elif not compiled_for:
            kind = argument is not None and argument > LARGEST_INT32
        self._values.append(value)
        return kind


def blocks_for(length: int, block: int) -> int:
    """Return how many blocks hold `length` things."""
    return -(-length // block)


def next_power_of_2(number: int) -> int:
    """Return the least power of two that is not below a positive number."""
    return 1 << (number - 1).bit_length()


def _names_of(kernel: Any) -> tuple[tuple[str, bool], ...]:
    """Return the names of a kernel's arguments, and whether it is compiled for the value of each."""
    found = _names.get(id(kernel))
    if found is None:
        found = tuple((name, name.isupper() or name in SPECIALISED) for name in kernel.arg_names)
        _names[id(kernel)] = found
    return found
