"""Launches without looking at every argument again: a launch by Triton takes longer than many a kernel. Imports triton.

Seen on an H200: 67 µs by Triton, of which the kernel's own launch is a few. Half of the rest is one question to the
driver for each tensor, so that kernels which are compiled get addresses instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import itemgetter, or_
from typing import Any

import torch
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor

SPECIALISED = ("size", "vocabulary")
"""The numbers that kernels are compiled for; all others are in their `do_not_specialize`."""
FIRST = "first"
LARGEST_INT32 = 2**31 - 1
_ALIGNMENT = 16
_NO_HOOKS = None, None, None
_compiled: dict[tuple[Any, ...], Any] = {}
_signatures: dict[int, _Signature] = {}


class Launch:
    """A kernel with its arguments by name, to be launched once or several times with another number `first`."""

    def __init__(self, kernel: Any, grid: tuple[int, ...], options: dict[str, int], **arguments: Any) -> None:
        self._kernel, self._options, self._arguments = kernel, options, arguments
        self._grid = (*grid, 1, 1)[:3]
        arguments.setdefault(FIRST, 0)
        signature = _signatures.get(id(kernel)) or _Signature(kernel, arguments)
        self._device, kinds, self._values = signature.of(arguments)
        self._key = (id(kernel), *options.values(), self._device, *kinds)

    def __call__(self, first: int = 0) -> None:
        """Launch it, for the chunk that starts with tile `first` where the kernel asks for one."""
        if self._device < 0 or self._device == torch.cuda.current_device():
            self._launch(first)
        else:
            with torch.cuda.device(self._device):
                self._launch(first)

    def _launch(self, first: int) -> None:
        compiled = _compiled.get(self._key)
        index = _signatures[id(self._kernel)].first
        if compiled is None:
            names = self._kernel.arg_names
            arguments = {name: self._arguments[name] for name in names} | ({} if index is None else {FIRST: first})
            _compiled[self._key] = self._kernel[self._grid](**arguments, **self._options)
            return
        if index is not None:
            self._values[index] = first
        stream = driver.active.get_current_stream(self._device)
        compiled.run(*self._grid, stream, compiled.function, compiled.packed_metadata, *_NO_HOOKS, *self._values)


class _Signature:
    """Which arguments of a kernel are tensors, descriptors, numbers, and things that it is compiled for."""

    def __init__(self, kernel: Any, arguments: dict[str, Any]) -> None:
        names = kernel.arg_names
        tensors = [name for name in names if isinstance(arguments[name], torch.Tensor)]
        self._descriptors = [name for name in names if isinstance(arguments[name], TensorDescriptor)]
        fixed = [name for name in names if name.isupper() or name in SPECIALISED]
        numbers = [name for name in names if name not in {*tensors, *self._descriptors, *fixed}]
        self._all, self._tensors, self._fixed, self._numbers = map(_getter, (names, tensors, fixed, numbers))
        self._indices = [names.index(name) for name in tensors]
        self.first = names.index(FIRST) if FIRST in names else None
        _signatures[id(kernel)] = self

    def of(self, arguments: dict[str, Any]) -> tuple[int, list[Any], list[Any]]:
        """Return the device, what Triton compiles for, and the values that a compiled kernel gets."""
        tensors = self._tensors(arguments)
        addresses = [tensor.data_ptr() for tensor in tensors]
        numbers = self._numbers(arguments)
        kinds = [tensor.dtype for tensor in tensors]
        kinds += self._fixed(arguments)
        if reduce(or_, addresses) % _ALIGNMENT:
            kinds += [address % _ALIGNMENT == 0 for address in addresses]
        if numbers and max(numbers) > LARGEST_INT32:
            kinds += [number > LARGEST_INT32 for number in numbers]
        for name in self._descriptors:
            kinds += arguments[name].base.dtype, *arguments[name].block_shape
        values = list(self._all(arguments))
        for index, address in zip(self._indices, addresses, strict=True):
            values[index] = address
        return tensors[0].get_device(), kinds, values


def blocks_for(length: int, block: int) -> int:
    """Return how many blocks hold `length` things."""
    return -(-length // block)


def next_power_of_2(number: int) -> int:
    """Return the least power of two that is not below a positive number."""
    return 1 << (number - 1).bit_length()


def _getter(names: list[str]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """Return what takes the values of these names out of a dictionary."""
    if len(names) == 1:
        return lambda arguments: (arguments[names[0]],)
    return itemgetter(*names) if names else lambda arguments: ()
