"""FLOP formulas that torch's counter lacks or has wrong, 2 per real multiply-accumulate. Imports torch.

A formula gets the operator's arguments with shapes in place of tensors, and the output's shape as `out_shape`. Biases,
activations and normalisations are not matrix arithmetic: they are in `kinds.py`. A formula knows no dtype: `flops_of`
counts a complex multiply-accumulate as four real ones, except for what is in `_REAL_OPERATIONS`.

Nested tensors are batches of items of unlike lengths without padding. In the jagged layout torch runs every operator on
one plain tensor that holds all items, and that one is counted. The strided layout has kernels of its own: such an
operator is counted item by item, by the formula for plain tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import log2, prod
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, shape_wrapper

from speechmeter.meters.weights import tensors_in

Shape = Sequence[int]
Formula = Callable[..., int]
_COMPLEX = 4
"""A complex multiply-accumulate is four real ones."""


def _product(left: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    """A matrix product, or a linear layer whose weight is packed: every input feature meets every output."""
    return 2 * prod(out_shape) * left[-1]


def _matrix_vector(matrix: Shape, *_: Any, **__: Any) -> int:
    return 2 * prod(matrix)


def _add_matrix_vector(_added: Any, matrix: Shape, *_: Any, **__: Any) -> int:
    return 2 * prod(matrix)


def _add_batched(_added: Shape, left: Shape, right: Shape, *_: Any, **__: Any) -> int:
    return 2 * prod(left) * right[-1]


def _grouped(left: Shape, right: Shape, *_: Any, **__: Any) -> int:
    """Rows, columns or sums that are split into groups: each meets one group, so it does not matter how they split."""
    groups = left[0] if len(left) == len(right) == 3 else 1
    return 2 * groups * left[-2] * left[-1] * right[-1]


def _linear_backward(data: Shape, grad: Shape, _weight: Shape, wanted: Sequence[bool], *_: Any, **__: Any) -> int:
    return 2 * prod(grad) * data[-1] * (int(wanted[0]) + int(wanted[1]))


def _matmul_backward(grad: Shape, left: Shape, _right: Shape, wanted: Sequence[bool], *_: Any, **__: Any) -> int:
    return 2 * prod(grad) * left[-1] * (int(wanted[0]) + int(wanted[1]))


def _attention(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    """Scores and weighted sum, every pair of positions; fewer key heads than query heads are shared."""
    *outer, queries, width = query
    return 2 * prod(outer) * queries * key[-2] * (width + value[-1])


def _attention_backward(grad: Shape, query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    """The fused kernel computes the scores again: 2.5 times the forward pass."""
    return int(sdpa_backward_flop_count(grad, query, key, value))


def _encoder_layer(data: Shape, width: int, _heads: int, qkv: Shape, *rest: Any, **_: Any) -> int:
    """The fused encoder layer of `nn.TransformerEncoder` in inference: four projections, attention, feed-forward."""
    _bias, out, *others = rest
    *outer, length, _width = data
    matrices = [shape for shape in others if isinstance(shape, torch.Size | list | tuple) and len(shape) == 2]
    projections: int = prod(qkv) + prod(out) + sum(map(prod, matrices[:2]))
    return 2 * prod(data[:-1]) * projections + 4 * prod(outer) * length**2 * width


def _self_attention(query: Shape, key: Shape, value: Shape, width: int, *rest: Any, **_: Any) -> int:
    """The fused path of `nn.MultiheadAttention` in inference."""
    _heads, _qkv, _bias, out = rest[:4]
    items, queries, keys = query[0], query[1], key[1]
    projections: int = prod(query) * width + (prod(key) + prod(value)) * width + items * queries * prod(out)
    return 2 * projections + 4 * items * queries * keys * width


def _recurrent(data: Shape, weights: Iterable[Shape]) -> int:
    """Every weight matrix is used once a step and item; `data` is (…, features), packed or not."""
    return 2 * prod(data[:-1]) * sum(prod(weight) for weight in weights if len(weight) == 2)


def _whole_rnn(data: Shape, *rest: Any, **_: Any) -> int:
    """`aten::lstm`, `aten::gru` and plain ones, packed or not: of the lists they take, the last holds the weights."""
    return _recurrent(data, [argument for argument in rest if isinstance(argument, list)][-1])


def _mkldnn_rnn(data: Shape, w_input: Shape, w_hidden: Shape, *_: Any, **__: Any) -> int:
    """One layer and direction of a fused LSTM on the CPU."""
    return _recurrent(data, (w_input, w_hidden))


def _mkldnn_rnn_backward(data: Shape, w_input: Shape, w_hidden: Shape, *_: Any, **__: Any) -> int:
    return 2 * _recurrent(data, (w_input, w_hidden))


def _cudnn_rnn(data: Shape, weights: Sequence[Shape], *_: Any, **__: Any) -> int:
    """All layers and directions of a recurrent network on CUDA."""
    return _recurrent(data, weights)


def _cudnn_rnn_backward(data: Shape, weights: Sequence[Shape], *_: Any, **__: Any) -> int:
    return 2 * _recurrent(data, weights)


def _quantized_rnn(data: Any, *rest: Any, **_: Any) -> int:
    """A dynamically quantised LSTM or GRU: its matrices are in packed cell parameters."""
    cells = [argument for argument in rest if isinstance(argument, list)][-1]
    return _recurrent(data.shape, [part.shape for part in tensors_in(cells)])


def _fft_real(signal: Shape, dims: Sequence[int], *_: Any, **__: Any) -> int:
    """Real to complex: 2.5 N log2 N for each transform of length N."""
    return _fft(2.5, signal, dims)


def _fft_inverse_real(_spectrum: Shape, dims: Sequence[int], *_: Any, out_shape: Shape = (), **__: Any) -> int:
    """Complex to real: N is the length of the output."""
    return _fft(2.5, out_shape, dims)


def _fft_complex(signal: Shape, dims: Sequence[int], *_: Any, **__: Any) -> int:
    """Complex to complex: 5 N log2 N."""
    return _fft(5.0, signal, dims)


def _fft(factor: float, signal: Shape, dims: Sequence[int]) -> int:
    length = prod(signal[dim] for dim in dims)
    return round(prod(signal) * factor * log2(length)) if length > 1 else 0


def _convolution(data: Shape, weight: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    return 2 * out_shape[0] * prod(out_shape[2:]) * prod(weight)


def _convolution_backward(grad: Shape, data: Shape, weight: Shape, *rest: Any, **_: Any) -> int:
    """As often the forward pass as gradients are wanted of input and weight. Groups are in the weight's shape."""
    _bias, _stride, _padding, _dilation, transposed, _output_padding, _groups, wanted = rest[:8]
    positions = data if transposed else grad
    return 2 * positions[0] * prod(positions[2:]) * prod(weight) * (int(wanted[0]) + int(wanted[1]))


def _packed_convolution(data: Any, packed: Any, *_: Any, out_val: Any = None, **__: Any) -> int:
    """A quantised convolution: its packed weight has a method that returns it."""
    weight = packed.weight().shape
    return int(2 * out_val.shape[0] * prod(out_val.shape[2:]) * prod(weight))


def _time_batch_convolution(data: Shape, weight: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    """Data is (time, batch, channels), the weight (width, channels in, channels out)."""
    return 2 * out_shape[0] * out_shape[1] * prod(weight)


_FORMULAS: Mapping[Formula, str] = {
    _product: """
        aten::mkldnn_linear mkldnn::_linear_pointwise mkl::_mkl_linear onednn::qlinear_pointwise
        quantized::linear quantized::linear_relu quantized::linear_dynamic quantized::linear_relu_dynamic
        quantized::linear_dynamic_fp16 quantized::linear_relu_dynamic_fp16
        aten::_weight_int8pack_mm aten::_weight_int4pack_mm aten::_weight_int4pack_mm_for_cpu
        aten::_dyn_quant_matmul_4bit aten::_int_mm aten::_cdist_forward""",
    _matrix_vector: "aten::mv aten::dot aten::vdot",
    _add_matrix_vector: "aten::addmv aten::addmv_",
    _add_batched: "aten::addbmm aten::addbmm_ aten::addmm_ aten::baddbmm_ aten::_addmm_activation",
    _grouped: "aten::_grouped_mm aten::_scaled_grouped_mm",
    _attention: """
        aten::_scaled_dot_product_flash_attention_for_cpu aten::_scaled_dot_product_fused_attention_overrideable
        aten::_scaled_dot_product_attention_math_for_mps""",
    _attention_backward: "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    _encoder_layer: "aten::_transformer_encoder_layer_fwd",
    _self_attention: "aten::_native_multi_head_attention",
    _whole_rnn: "aten::lstm aten::gru aten::rnn_tanh aten::rnn_relu",
    _mkldnn_rnn: "aten::mkldnn_rnn_layer",
    _mkldnn_rnn_backward: "aten::mkldnn_rnn_layer_backward",
    _cudnn_rnn: "aten::_cudnn_rnn aten::miopen_rnn",
    _cudnn_rnn_backward: "aten::_cudnn_rnn_backward",
    _fft_real: "aten::_fft_r2c",
    _fft_inverse_real: "aten::_fft_c2r",
    _fft_complex: "aten::_fft_c2c",
    _convolution: "aten::mkldnn_convolution mkldnn::_convolution_pointwise",
    _convolution_backward: "aten::convolution_backward",
    _time_batch_convolution: "aten::conv_tbc",
}
_RAW_FORMULAS: Mapping[Formula, str] = {
    _packed_convolution: """
        quantized::conv1d quantized::conv1d_relu quantized::conv2d quantized::conv2d_relu quantized::conv1d_dynamic""",
    _quantized_rnn: "aten::quantized_lstm aten::quantized_gru",
}
"""Formulas that want the tensors and not their shapes."""
_NESTED_FORMULAS: dict[Any, Formula] = {
    torch.ops.aten.linear: _product,
    torch.ops.aten.matmul: _product,
    torch.ops.aten.scaled_dot_product_attention: _attention,
    torch.ops.aten.linear_backward: _linear_backward,
    torch.ops.aten.matmul_backward: _matmul_backward,
}
"""Operators that torch takes apart, except on nested tensors."""
_REAL_OPERATIONS = frozenset({torch.ops.aten._fft_r2c, torch.ops.aten._fft_c2r, torch.ops.aten._fft_c2c})
"""Operators on complex numbers whose formula is in real operations already."""
_WHOLE = ("lstm", "gru", "rnn_tanh", "rnn_relu", "quantized_lstm", "quantized_gru")
"""Counted as they are called: taken apart, a thousand frames become ten thousand small products."""


@cache
def registry() -> dict[Any, Any]:
    """Torch's formulas and ours by operator, for the operators that this torch has."""
    found: dict[Any, Formula] = {}
    for formulas in (_FORMULAS, _RAW_FORMULAS):
        for formula, names in formulas.items():
            if formulas is _RAW_FORMULAS:
                formula._get_raw = True  # type: ignore[attr-defined]  # torch's mark for formulas that want the tensors
            for name in names.split():
                namespace, _, operator = name.partition("::")
                packet = getattr(getattr(torch.ops, namespace), operator, None)
                if packet is not None:
                    found[packet] = formula
                    if operator in _WHOLE:  # by its overloads too: the counter must not take it apart
                        found.update({getattr(packet, overload): formula for overload in packet.overloads()})
    return dict(FlopCounterMode(display=False, custom_mapping=found).flop_registry)


def has_formula(packet: Any) -> bool:
    """Whether the FLOPs of an operator are known: it is matrix arithmetic."""
    return packet in registry()


def tensors_of(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among an operator's arguments, those in lists included."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_of(value)


def flops_of(packet: Any, args: Any, kwargs: Any, out: Any) -> int | None:
    """FLOPs of an operator by its formula; None where it has none."""
    formula = registry().get(packet)
    if formula is None:
        return None
    flops = int(formula(*args, **kwargs, out_val=out))
    is_complex = packet not in _REAL_OPERATIONS and any(tensor.is_complex() for tensor in tensors_of(args))
    return flops * _COMPLEX if is_complex else flops


def is_strided(tensor: torch.Tensor) -> bool:
    """Whether a tensor is nested in the strided layout."""
    return bool(tensor.is_nested) and tensor.layout is torch.strided


def nested_flops_of(packet: Any, args: Any, kwargs: Any, out: Any) -> int | None:
    """FLOPs of an operator on nested tensors: the sum over its items. None where it has no formula."""
    formula = registry().get(packet)
    if formula is None and packet in _NESTED_FORMULAS:
        formula = shape_wrapper(_NESTED_FORMULAS[packet])
    if formula is None:
        return None

    def sizes(tensor: torch.Tensor) -> list[list[int]]:
        found: list[list[int]] = tensor._nested_tensor_size().tolist()
        return found

    def item(value: Any, number: int) -> Any:
        """A batch of one item, without data, in place of a nested tensor; anything else as it is."""
        if isinstance(value, torch.Tensor) and is_strided(value):
            return torch.empty(1, *sizes(value)[number], device="meta")
        if isinstance(value, list | tuple):
            return type(value)(item(one, number) for one in value)
        return value

    items = next(len(sizes(tensor)) for tensor in tensors_of((*args, *kwargs.values())) if is_strided(tensor))
    total = 0
    for number in range(items):
        named = {name: item(value, number) for name, value in kwargs.items()}
        total += int(formula(*(item(value, number) for value in args), **named, out_val=item(out, number)))
    return total
