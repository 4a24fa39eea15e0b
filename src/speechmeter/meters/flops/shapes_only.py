"""Run a model on shapes alone: no weights in memory, no arithmetic, and the same operators. Imports torch.

Weights are torch's fake tensors, which know their shape, dtype and device and hold no data, and so is every
floating-point tensor computed from one. What no weight has touched stays real: the sound and its features. So do all
integers and booleans, because programs decide by them: positions, lengths, how far a decoder has come. An integer that
follows from a fake value (the arg max of logits) is *invented*: zero, and marked. Reading an invented one in order to
decide is refused, unless the subject says that its length is pinned and no decision matters, or the model is still
being built: weights that are drawn anew until they lie within bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any
from unittest.mock import patch

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from speechmeter.core.errors import NeedsValuesError

_INVENTED = "_speechmeter_invented"
_ATEN = torch.ops.aten
_READS = frozenset({_ATEN._local_scalar_dense.default, _ATEN.is_nonzero.default, _ATEN.item.default})
_TELLS_SHAPE = frozenset({_ATEN.nonzero.default, _ATEN.masked_select.default, _ATEN.repeat_interleave.Tensor})
_RECURRENT = frozenset(
    getattr(packet, overload)
    for packet in (_ATEN.lstm, _ATEN.gru, _ATEN.rnn_tanh, _ATEN.rnn_relu)
    for overload in ("input", "data")
)
_SCALAR = 1
"""A float tensor of one element is kept real: such scalars steer, and cost nothing."""
_SMALL = 2**24
"""What a call makes from nothing (windows, masks, empty caches) is kept real up to this many elements."""


class ShapesOnly(TorchDispatchMode):  # type: ignore[misc]
    """While `building`, floating-point tensors that are made hold no data; afterwards, what is computed from those.

    `pinned` allows decisions on invented values.
    """

    def __init__(self) -> None:
        super().__init__()
        self.building = True
        self.pinned = False
        self.decisions = 0
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator: really when no fake tensor has a part in it, else on shapes."""
        kwargs = kwargs or {}
        tensors = [*_tensors(args), *_tensors(kwargs.values())]
        faked = any(isinstance(tensor, FakeTensor) for tensor in tensors)
        invented = faked or any(hasattr(tensor, _INVENTED) for tensor in tensors)
        if func in _READS or func in _TELLS_SHAPE:
            self._check_read(func, tensors[0], invented)
        if faked or (not tensors and _makes_floats(func, args, kwargs, _SCALAR if self.building else _SMALL)):
            if func in _RECURRENT:
                return self._recurrent(*args)
            if func is _ATEN._cudnn_rnn.default:
                args = self._with_weight_buffer(*args)
            if func is _ATEN._cudnn_rnn_backward.default:
                return self._recurrent_backward(*args)
            if func is _ATEN._pack_padded_sequence.default:
                return self._pack(*args)
            return _real_integers(self._fake.dispatch(func, types, _without_masks(func, args), kwargs))
        return _marked(func(*args, **kwargs), invented)

    def _recurrent(self, data: torch.Tensor, *rest: Any) -> Any:
        """A whole recurrent network by its output's shape: taken apart it would be thousands of small steps."""
        packed = not isinstance(rest[0], list) and rest[0].dim() == 1  # then batch sizes come before the states
        states = rest[1] if packed else rest[0]
        carried = states if isinstance(states, list) else [states]
        bidirectional = [argument for argument in rest if isinstance(argument, bool)][2]
        width = carried[0].shape[-1] * (2 if bidirectional else 1)
        shapes = [(*data.shape[:-1], width), *(state.shape for state in carried)]
        with self._fake:
            return tuple(torch.empty(shape, dtype=data.dtype, device=data.device) for shape in shapes)

    def _with_weight_buffer(self, data: Any, weights: Any, stride: Any, buffer: Any, *rest: Any) -> Any:
        """cuDNN gathers the weights in a buffer if they lie apart, and its backward pass asks for that buffer."""
        with self._fake:
            gathered = torch.empty(0, dtype=data.dtype, device=data.device) if buffer is None else buffer
        return data, weights, stride, gathered, *rest

    def _recurrent_backward(self, data: torch.Tensor, weights: list[torch.Tensor], *rest: Any) -> Any:
        """cuDNN's gradients have the shapes of what they are gradients of; torch has no rule for them."""
        hidden, cell = rest[2:4]
        with self._fake:
            like = [None if part is None else torch.empty_like(part) for part in (data, hidden, cell)]
            return (*like, [torch.empty_like(weight) for weight in weights])

    def _pack(self, data: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> Any:
        """How the steps are packed follows from the lengths, which are real: pack one feature to see it."""
        one = torch.zeros((*data.shape[:2], 1), device=data.device)
        rows, batch_sizes = torch._C._VariableFunctions._pack_padded_sequence(one, lengths, batch_first)
        with self._fake:
            return torch.empty((len(rows), *data.shape[2:]), dtype=data.dtype, device=data.device), batch_sizes

    def _check_read(self, func: Any, tensor: torch.Tensor, invented: bool) -> None:
        if not invented:
            return
        if isinstance(tensor, FakeTensor) or not (self.pinned or self.building):
            raise NeedsValuesError(f"the model reads a computed value ({func}) to decide what it does next")
        self.decisions += 1


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def active() -> ShapesOnly | None:
    """The mode that is in force; None in an ordinary run."""
    return _active[-1] if _active else None


_active: list[ShapesOnly] = []


@contextmanager
def shapes_only() -> Iterator[ShapesOnly]:
    """Build and call models on shapes alone."""
    with ShapesOnly() as mode, patch.object(torch.nn.Module, "_apply", _convert):
        _active.append(mode)
        try:
            yield mode
        finally:
            _active.pop()


def _convert(module: Any, fn: Any, recurse: bool = True) -> Any:
    """`Module._apply` by plain replacement: torch's own swaps fake tensors in place, which fails. Ties stay tied."""
    for child in module.children() if recurse else ():
        child._apply(fn)
    for name, old in module._parameters.items():
        if old is not None:
            module._parameters[name] = _converted(old, fn)
    for name, old in module._buffers.items():
        if old is not None:
            module._buffers[name] = fn(old)
    return module


def _converted(old: Any, fn: Any) -> Any:
    known = getattr(old, "_speechmeter_converted", None)
    if known is not None and known[0] is fn:
        return known[1]
    with torch.no_grad():
        new = torch.nn.Parameter(fn(old), requires_grad=old.requires_grad)
    old._speechmeter_converted = (fn, new)
    return new


def _makes_floats(func: Any, args: Any, kwargs: Any, spared: int) -> bool:
    """Whether an operator without tensor input makes a floating-point tensor of more than `spared` elements."""
    if not any(isinstance(ret.type, torch.TensorType) for ret in func._schema.returns):
        return False
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    if (
        func is _ATEN.empty.memory_format
        and list(args[0]) == [0]
        and torch.device(kwargs.get("device") or "cpu").type == "cuda"
    ):
        return True  # it is about to take the storage of weights, which is not real
    sizes = next((arg for arg in args if isinstance(arg, list | tuple)), None)
    small = prod(sizes) <= spared if sizes is not None else spared > _SCALAR  # windows, ranges
    counts = func._overloadpacket in (_ATEN.arange, _ATEN.scalar_tensor)
    return bool(dtype.is_floating_point or dtype.is_complex) and not small and not counts


def _without_masks(func: Any, args: Any) -> Any:
    """A real boolean mask used as an index becomes positions, whose number is then known."""
    if func._overloadpacket not in (_ATEN.index, _ATEN.index_put, _ATEN.index_put_) or len(args) < 2:
        return args
    positions: list[Any] = []
    for index in args[1]:
        is_mask = isinstance(index, torch.Tensor) and index.dtype is torch.bool
        positions += index.nonzero().unbind(1) if is_mask else [index]
    return (args[0], positions, *args[2:])


def _real_integers(output: Any) -> Any:
    def real(tensor: FakeTensor) -> Any:
        if tensor.is_floating_point() or tensor.is_complex():
            return tensor
        made = torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        setattr(made, _INVENTED, True)
        return made

    return tree_map_only(FakeTensor, real, output)


def _marked(output: Any, invented: bool) -> Any:
    if not invented:
        return output

    def mark(tensor: torch.Tensor) -> torch.Tensor:
        setattr(tensor, _INVENTED, True)
        return tensor

    return tree_map_only(torch.Tensor, mark, output)
