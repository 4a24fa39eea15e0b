"""Run a model on shapes alone: no weights in memory, no arithmetic, and the same operators. Imports torch.

Weights are torch's fake tensors, which know their shape, dtype and device and hold no data, and so is every
floating-point tensor computed from one. What no weight has touched stays real: the sound and its features. So do all
integers and booleans, because programs decide by them: positions, lengths, how far a decoder has come. An integer that
follows from a fake value (the arg max of logits) is *invented*: zero, and its storage is marked. So is memory into
which a fake value was written, and what a random generator drew: a real run draws something else.

An invented value must not decide a shape or a loop. Every way in which Python can read a value is watched (`.item()`,
`if`, `.tolist()`, `.numpy()`), and so is every operator whose output's shape depends on values (`nonzero`, masks as an
index, `unique`, `bincount`, packed lengths). There are three exceptions. A model that is still being built may draw
weights anew until they lie within bounds. In the loop around a decoder whose length is pinned no decision matters; but
inside a module's forward pass it does: there a value may route work. And a stage without weights may write text from
what a model found: there the refusal comes only if something is computed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from math import prod
from typing import Any, NoReturn
from unittest.mock import patch

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from speechmeter.core.errors import NeedsValuesError
from speechmeter.meters.flops import kinds
from speechmeter.meters.flops.formulas import has_formula, tensors_of
from speechmeter.meters.flops.running import in_new_threads

_ATEN = torch.ops.aten
_READS = frozenset({_ATEN.is_nonzero.default})
"""Operators that give a value to Python and lack torch's tag for it."""
_SHAPED_BY_LENGTHS = frozenset({_ATEN._pack_padded_sequence.default, _ATEN._pad_packed_sequence.default})
_TO_PYTHON = ("tolist", "numpy", "__array__", "__dlpack__", "tensor_split", "__repr__", "apply_", "map_", "map2_")
"""Methods of a tensor that read its memory without an operator."""
_TO_MEMORY = ("data_ptr", "__reduce_ex__")
"""Methods that give the memory itself, or a copy for a file. While a model is built, they are asked of weights too."""
_RECURRENT = frozenset(
    getattr(packet, overload)
    for packet in (_ATEN.lstm, _ATEN.gru, _ATEN.rnn_tanh, _ATEN.rnn_relu)
    for overload in ("input", "data")
)
_SPARSE = frozenset({torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc})
_SCALAR = 1
"""A float tensor of one element is kept real: such scalars steer, and cost nothing."""
_SMALL = 2**24
"""What a call makes from nothing (windows, masks, empty caches) is kept real up to this many elements."""
_FILLS = {
    _ATEN.new_zeros.default: 0, _ATEN.zeros_like.default: 0, _ATEN.new_ones.default: 1, _ATEN.ones_like.default: 1,
}  # fmt: skip
"""Operators that take only the shape of a tensor, and what they fill the new one with: masks begin like that."""
_SMALL_FILL = 2**22
"""Less than above: a cache of keys and values begins like that too, twice in every layer."""


class _Marked:
    """Memory that holds values which no real run would have. A view of it is marked too."""

    def __init__(self) -> None:
        self._storages: dict[int, StorageWeakRef] = {}

    def add(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        self._storages[storage._cdata] = StorageWeakRef(storage)

    def __contains__(self, tensor: torch.Tensor) -> bool:
        if not self._storages or tensor.layout is not torch.strided:
            return False
        mark = self._storages.get(tensor.untyped_storage()._cdata)
        return mark is not None and not mark.expired()  # the address of freed memory is used again


class ShapesOnly(TorchDispatchMode):  # type: ignore[misc]
    """While `building`, floating-point tensors that are made hold no data; afterwards, what is computed from those.

    `pinned` allows the loop around a model to decide by invented values; `depth` is the number of modules whose forward
    pass is under way. `writing` allows reading them at the end of a call; `decided` says what was read then. `refused`
    is the first refusal: a model may catch the error and do something else, which is not what it does on a real run.
    """

    def __init__(self) -> None:
        super().__init__()
        self.building = True
        self.pinned = False
        self.depth = 0
        self.writing = False
        self.decided = ""
        self.refused = ""
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._invented = _Marked()
        self._drawn = _Marked()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator: really when no fake tensor has a part in it, else on shapes."""
        try:
            return self._run(func, types, args, kwargs or {})
        except Exception as error:
            if not self.building:
                self.refused = self.refused or str(error) or type(error).__name__
            raise

    def _run(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        tensors = [*tensors_of(args), *tensors_of(kwargs.values())]
        faked = any(isinstance(tensor, FakeTensor) for tensor in tensors)
        if self.decided and (faked or has_formula(func._overloadpacket)) and _computes(func):
            self.refuse(self.decided)
        if faked or any(map(self._unreal, tensors)):
            self._check(func, args, tensors)
        if faked or (not tensors and _makes_floats(func, args, kwargs, _SCALAR if self.building else _SMALL)):
            output = self._on_shapes(func, types, args, kwargs)
            for written in _written(func, args, kwargs):
                if not isinstance(written, FakeTensor):
                    self._invented.add(written)
                    if not written.untyped_storage().resizable():
                        self._decide("the model writes a computed value into memory of another library, such as NumPy")
            return output
        return self._marked(func(*args, **kwargs), func, tensors)

    def check_read(self, tensor: torch.Tensor, how: str) -> None:
        """Raise NeedsValuesError where Python reads a value which a real run would not have, and may decide by it."""
        reason = f"the model reads a computed value ({how}), which may decide what it does next"
        if isinstance(tensor, FakeTensor):
            self.refuse(reason)
        if not self._in_loop and (tensor in self._drawn or (tensor in self._invented and not self.building)):
            self._decide(reason)

    @property
    def _in_loop(self) -> bool:
        """Whether what runs now is the loop around a decoder of pinned length, and no module."""
        return self.pinned and not self.depth

    def _decide(self, reason: str) -> None:
        """Refuse, or where the result may never be computed with, note it: what computes after it is refused."""
        if not self.writing and not self._in_loop:
            self.refuse(reason)
        self.decided = reason

    def refuse(self, reason: str) -> NoReturn:
        """Raise NeedsValuesError, and remember it: see `check_refused`."""
        self.refused = self.refused or reason
        raise NeedsValuesError(reason)

    def check_refused(self) -> None:
        """Raise NeedsValuesError where something was refused and the model went on all the same."""
        if self.refused:
            raise NeedsValuesError(self.refused)

    def _unreal(self, tensor: torch.Tensor) -> bool:
        return isinstance(tensor, FakeTensor) or tensor in self._invented or tensor in self._drawn

    def _check(self, func: Any, args: Any, tensors: list[torch.Tensor]) -> None:
        if func in _READS or torch.Tag.data_dependent_output in func.tags:
            self.check_read(next(filter(self._unreal, tensors)), str(func))
        elif any(map(self._unreal, _deciding_shape(func, args, tensors))):
            self._decide(f"the size of a result depends on a computed value ({func})")

    def _on_shapes(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _FILLS and not self.building and (filled := self._filled(func, types, args, kwargs)) is not None:
            return filled
        if func in _RECURRENT:
            return self._recurrent(*args)
        if func is _ATEN._cudnn_rnn.default and args[3] is None:
            # cuDNN gathers the weights in a buffer if they lie apart, and its backward pass wants that buffer
            with self._fake:
                buffer = torch.empty(0, dtype=args[0].dtype, device=args[0].device)
            args = (*args[:3], buffer, *args[4:])
        if func is _ATEN._cudnn_rnn_backward.default:
            return self._recurrent_backward(*args)
        if func is _ATEN._pack_padded_sequence.default:
            return self._pack(*args)
        return self._with_real_integers(self._fake.dispatch(func, types, _without_masks(func, args), kwargs))

    def _filled(self, func: Any, types: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
        """A real tensor of zeros or ones; None where it would be large."""
        like = self._fake.dispatch(func, types, args, kwargs)
        if like.numel() > _SMALL_FILL:
            return None
        return torch.full(like.shape, _FILLS[func], dtype=like.dtype, device=like.device)

    def _with_real_integers(self, output: Any) -> Any:
        def real(tensor: FakeTensor) -> Any:
            if tensor.is_floating_point() or tensor.is_complex():
                return tensor
            made = torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
            self._invented.add(made)
            return made

        return tree_map_only(FakeTensor, real, output)

    def _marked(self, output: Any, func: Any, tensors: list[torch.Tensor]) -> Any:
        """What follows from an invented value is invented, and what follows from a random one is random."""
        random = torch.Tag.nondeterministic_seeded in func.tags
        for marks, made_here in ((self._invented, False), (self._drawn, random)):
            if made_here or any(tensor in marks for tensor in tensors):
                for tensor in tensors_of((output,)):
                    if tensor.layout is torch.strided:
                        marks.add(tensor)
        return output

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


def active() -> ShapesOnly | None:
    """The mode that is in force; None in an ordinary run."""
    return _active[-1] if _active else None


_active: list[ShapesOnly] = []


@contextmanager
def shapes_only() -> Iterator[ShapesOnly]:
    """Build and call models on shapes alone."""
    with ShapesOnly() as mode, ExitStack() as patched:
        patched.enter_context(patch.object(torch.nn.Module, "_apply", _convert))
        for name in _TO_PYTHON:
            patched.enter_context(patch.object(torch.Tensor, name, _watched(mode, name)))
        for name in _TO_MEMORY:
            patched.enter_context(patch.object(torch.Tensor, name, _watched(mode, name, while_building=False)))
        patched.enter_context(patch.object(torch, "tensor_split", torch.Tensor.tensor_split))
        patched.enter_context(_depth_of(mode))
        patched.enter_context(in_new_threads(partial(_refuse_thread, mode)))
        _active.append(mode)
        try:
            yield mode
        finally:
            _active.pop()


def _watched(mode: ShapesOnly, name: str, *, while_building: bool = True) -> Any:
    """The method of a tensor, which first checks whether the values may be read."""
    read = getattr(torch.Tensor, name)

    def method(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        decides = tensor if name != "tensor_split" else next(tensors_of((*args, *kwargs.values())), None)
        if decides is not None and (while_building or not mode.building):
            mode.check_read(decides, f"Tensor.{name}")
        return read(tensor, *args, **kwargs)

    return method


def _refuse_thread(mode: ShapesOnly) -> AbstractContextManager[None]:
    """The mode holds in the thread that it was entered in, so what others read could not be watched."""
    if not mode.building:
        mode.refuse("the model starts threads itself and computes in them")
    return nullcontext()


@contextmanager
def _depth_of(mode: ShapesOnly) -> Iterator[None]:
    def enter(module: Any, inputs: Any) -> None:
        mode.depth += 1

    def leave(module: Any, inputs: Any, output: Any) -> None:
        mode.depth -= 1

    before = register_module_forward_pre_hook(enter)
    after = register_module_forward_hook(leave, always_call=True)
    try:
        yield
    finally:
        before.remove()
        after.remove()


def _convert(module: Any, fn: Any, recurse: bool = True) -> Any:
    """`Module._apply` by plain replacement: torch's own swaps fake tensors in place, which fails. Ties stay tied."""
    for child in module.children() if recurse else ():
        child._apply(fn)
    for name, old in module._parameters.items():
        if old is None:
            continue
        known = getattr(old, "_speechmeter_converted", None)
        if known is None or known[0] is not fn:
            with torch.no_grad():
                known = (fn, torch.nn.Parameter(fn(old), requires_grad=old.requires_grad))
            old._speechmeter_converted = known
        module._parameters[name] = known[1]
    for name, old in module._buffers.items():
        if old is not None:
            module._buffers[name] = fn(old)
    return module


def _computes(func: Any) -> bool:
    """Whether an operator does more than to move data or, as those of `prim`, to ask a tensor about itself."""
    packet = func._overloadpacket
    return func.namespace != "prim" and (has_formula(packet) or kinds.kind_of(packet)[0] != kinds.MOVES)


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
    if not _indexes(func) or len(args) < 2:
        return args
    positions: list[Any] = []
    for index in args[1]:
        positions += index.nonzero().unbind(1) if _is_mask(index) else [index]
    return (args[0], positions, *args[2:])


def _indexes(func: Any) -> bool:
    return func._overloadpacket in (_ATEN.index, _ATEN.index_put, _ATEN.index_put_, _ATEN._index_put_impl_)


def _is_mask(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)


def _deciding_shape(func: Any, args: Any, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors on whose values the shape of an operator's output depends; none for nearly every operator."""
    if _indexes(func) and len(args) > 1:
        return [index for index in args[1] if _is_mask(index)]
    if func in _SHAPED_BY_LENGTHS:
        return tensors[1:]
    if func._overloadpacket is _ATEN.masked_select:
        return tensors[1:2]
    if "sparse" in func.__name__ or any(tensor.layout in _SPARSE for tensor in tensors):
        return tensors  # values say which elements are there, and how many
    if func._overloadpacket in (_ATEN._ctc_loss, _ATEN._cudnn_ctc_loss):
        return []  # of its output only what the backward pass keeps: no matrix arithmetic follows from it
    if torch.Tag.dynamic_output_shape in func.tags or func.__name__.startswith("_nested_tensor_from_mask"):
        return tensors
    return []


def _written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors that an operator writes into."""
    if not func._schema.is_mutable:
        return []
    given = zip(func._schema.arguments, args, strict=False)
    named = ((argument, kwargs[argument.name]) for argument in func._schema.arguments if argument.name in kwargs)
    return [
        tensor
        for argument, value in (*given, *named)
        if argument.alias_info is not None and argument.alias_info.is_write
        for tensor in tensors_of((value,))
    ]
