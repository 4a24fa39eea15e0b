"""FLOP formulas that torch's counter lacks or has wrong, 2 per real multiply-accumulate. Imports torch.

A formula gets the operator's arguments with shapes in place of tensors, and the output's shape as `out_shape`. Biases,
activations and normalisations are not matrix arithmetic: they are in `kinds.py`. A formula knows no dtype: whoever asks
it counts a complex multiply-accumulate as four real ones, except for what is in `REAL_OPERATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log2, prod
from typing import Any

import torch
from torch.utils.flop_counter import sdpa_backward_flop_count

from speechmeter.meters.weights import tensors_in

Shape = Sequence[int]
Formula = Callable[..., int]


def _attention(query: Shape, key: Shape, value: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    """Scores and weighted sum, every pair of positions; fewer key heads than query heads are shared."""
    *outer, queries, width = query
    return 2 * prod(outer) * queries * key[-2] * (width + value[-1])


def _attention_backward(grad: Shape, query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    """The fused kernel computes the scores again: 2.5 times the forward pass."""
    return int(sdpa_backward_flop_count(grad, query, key, value))


def _matrices(weights: Iterable[Shape]) -> int:
    return sum(prod(weight) for weight in weights if len(weight) == 2)


def _recurrent(data: Shape, weights: Iterable[Shape]) -> int:
    """Every weight matrix is used once a step and item; `data` is (…, features), packed or not."""
    return 2 * prod(data[:-1]) * _matrices(weights)


def _whole_rnn(data: Shape, *rest: Any, **_: Any) -> int:
    """`aten::lstm`, `aten::gru` and plain ones, packed or not: of the lists they take, the last holds the weights."""
    return _recurrent(data, [argument for argument in rest if isinstance(argument, list)][-1])


def _mkldnn_rnn(data: Shape, w_input: Shape, w_hidden: Shape, *_: Any, **__: Any) -> int:
    """One layer and direction of a fused LSTM on the CPU."""
    return _recurrent(data, (w_input, w_hidden))


def _mkldnn_rnn_backward(data: Shape, w_input: Shape, w_hidden: Shape, *_: Any, **__: Any) -> int:
    return 2 * _mkldnn_rnn(data, w_input, w_hidden)


def _cudnn_rnn(data: Shape, weights: Sequence[Shape], *_: Any, **__: Any) -> int:
    """All layers and directions of a recurrent network on CUDA."""
    return _recurrent(data, weights)


def _cudnn_rnn_backward(data: Shape, weights: Sequence[Shape], *_: Any, **__: Any) -> int:
    return 2 * _recurrent(data, weights)


def _fft_real(signal: Shape, dims: Sequence[int], *_: Any, **__: Any) -> int:
    """Real to complex: 2.5 N log2 N for each transform of length N."""
    return _fft(2.5, signal, dims)


def _fft_inverse_real(spectrum: Shape, dims: Sequence[int], *_: Any, out_shape: Shape = (), **__: Any) -> int:
    """Complex to real: N is the length of what comes out."""
    return _fft(2.5, out_shape, dims)


def _fft_complex(signal: Shape, dims: Sequence[int], *_: Any, **__: Any) -> int:
    """Complex to complex: 5 N log2 N."""
    return _fft(5.0, signal, dims)


def _fft(factor: float, signal: Shape, dims: Sequence[int]) -> int:
    length = prod(signal[dim] for dim in dims)
    return round(prod(signal) * factor * log2(length)) if length > 1 else 0


def _convolution_backward(
    grad: Shape,
    data: Shape,
    weight: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: int,
    wanted: Sequence[bool],
    *_: Any,
    **__: Any,
) -> int:
    """As often the forward pass as gradients are wanted of input and weight. Groups are in the weight's shape."""
    places = data if transposed else grad
    return 2 * places[0] * prod(places[2:]) * prod(weight) * (int(wanted[0]) + int(wanted[1]))


def _mkldnn_convolution(data: Shape, weight: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    return 2 * out_shape[0] * prod(out_shape[2:]) * prod(weight)


def _packed_linear(data: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    """A linear layer whose weight is not to be seen: it joins every input feature with every output."""
    return 2 * prod(out_shape) * data[-1]


def _packed_convolution(data: Any, packed: Any, *_: Any, out_val: Any = None, **__: Any) -> int:
    """A quantised convolution: its packed weight can be asked for its shape."""
    weight = packed.weight().shape
    return int(2 * out_val.shape[0] * prod(out_val.shape[2:]) * prod(weight))


def _quantized_rnn(data: Any, *rest: Any, **_: Any) -> int:
    """A dynamically quantised LSTM or GRU: its matrices stand in packed cell parameters."""
    cells = [argument for argument in rest if isinstance(argument, list)][-1]
    return _recurrent(data.shape, [part.shape for part in tensors_in(cells)])


def _matrix_vector(matrix: Shape, *_: Any, **__: Any) -> int:
    return 2 * prod(matrix)


def _add_matrix_vector(_added: Any, matrix: Shape, *_: Any, **__: Any) -> int:
    return 2 * prod(matrix)


def _pack_mm(data: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    return 2 * prod(out_shape) * data[-1]


def _add_batched(_added: Shape, left: Shape, right: Shape, *_: Any, **__: Any) -> int:
    return 2 * prod(left) * right[-1]


def _time_batch_convolution(data: Shape, weight: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    """Data is (time, batch, channels), the weight (width, channels in, channels out)."""
    return 2 * out_shape[0] * out_shape[1] * prod(weight)


def _distances(left: Shape, right: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    return 2 * prod(out_shape) * left[-1]


def _product(left: Shape, right: Shape, *_: Any, out_shape: Shape = (), **__: Any) -> int:
    return 2 * prod(out_shape) * left[-1]


def _linear_backward(data: Shape, grad: Shape, _weight: Shape, wanted: Sequence[bool], *_: Any, **__: Any) -> int:
    return 2 * prod(grad) * data[-1] * (int(wanted[0]) + int(wanted[1]))


def _matmul_backward(grad: Shape, left: Shape, _right: Shape, wanted: Sequence[bool], *_: Any, **__: Any) -> int:
    return 2 * prod(grad) * left[-1] * (int(wanted[0]) + int(wanted[1]))


def _grouped(left: Shape, right: Shape, *_: Any, **__: Any) -> int:
    """Rows, columns or sums that are split into groups: each meets one group, so how they are split is no matter."""
    groups = left[0] if len(left) == len(right) == 3 else 1
    return 2 * groups * left[-2] * left[-1] * right[-1]


def _encoder_layer(
    data: Shape, width: int, _heads: int, qkv: Shape, _qkv_bias: Any, out: Shape, *rest: Any, **__: Any
) -> int:
    """The fused encoder layer of `nn.TransformerEncoder` in inference: four projections, attention, feed-forward."""
    *outer, length, _ = data
    items, places = prod(outer), prod(data[:-1])
    feed_forward = [shape for shape in rest if _is_matrix(shape)]
    return 2 * places * (prod(qkv) + prod(out) + sum(map(prod, feed_forward[:2]))) + 4 * items * length**2 * width


def _is_matrix(shape: Any) -> bool:
    return isinstance(shape, torch.Size | list | tuple) and len(shape) == 2


def _self_attention(
    query: Shape,
    key: Shape,
    value: Shape,
    width: int,
    _heads: int,
    qkv: Shape,
    _bias: Any,
    out: Shape,
    *_: Any,
    **__: Any,
) -> int:
    """The fused path of `nn.MultiheadAttention` in inference."""
    items, queries, keys = query[0], query[1], key[1]
    projections = prod(query) * width + (prod(key) + prod(value)) * width + items * queries * prod(out)
    return 2 * projections + 4 * items * queries * keys * width


_FORMULAS: dict[str, Formula] = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "aten::lstm": _whole_rnn,
    "aten::gru": _whole_rnn,
    "aten::rnn_tanh": _whole_rnn,
    "aten::rnn_relu": _whole_rnn,
    "aten::mkldnn_rnn_layer": _mkldnn_rnn,
    "aten::mkldnn_rnn_layer_backward": _mkldnn_rnn_backward,
    "aten::_cudnn_rnn": _cudnn_rnn,
    "aten::_cudnn_rnn_backward": _cudnn_rnn_backward,
    "aten::miopen_rnn": _cudnn_rnn,
    "aten::_fft_r2c": _fft_real,
    "aten::_fft_c2r": _fft_inverse_real,
    "aten::_fft_c2c": _fft_complex,
    "aten::convolution_backward": _convolution_backward,
    "aten::mkldnn_convolution": _mkldnn_convolution,
    "aten::mkldnn_linear": _packed_linear,
    "mkldnn::_linear_pointwise": _packed_linear,
    "mkldnn::_convolution_pointwise": _mkldnn_convolution,
    "mkl::_mkl_linear": _packed_linear,
    "quantized::linear": _packed_linear,
    "quantized::linear_relu": _packed_linear,
    "quantized::linear_dynamic": _packed_linear,
    "quantized::linear_relu_dynamic": _packed_linear,
    "quantized::linear_dynamic_fp16": _packed_linear,
    "quantized::linear_relu_dynamic_fp16": _packed_linear,
    "onednn::qlinear_pointwise": _packed_linear,
    "aten::_weight_int8pack_mm": _pack_mm,
    "aten::_weight_int4pack_mm": _pack_mm,
    "aten::_weight_int4pack_mm_for_cpu": _pack_mm,
    "aten::_dyn_quant_matmul_4bit": _pack_mm,
    "aten::_int_mm": _pack_mm,
    "aten::_grouped_mm": _grouped,
    "aten::_scaled_grouped_mm": _grouped,
    "aten::mv": _matrix_vector,
    "aten::addmv": _add_matrix_vector,
    "aten::addmv_": _add_matrix_vector,
    "aten::dot": _matrix_vector,
    "aten::vdot": _matrix_vector,
    "aten::addbmm": _add_batched,
    "aten::addbmm_": _add_batched,
    "aten::addmm_": _add_batched,
    "aten::baddbmm_": _add_batched,
    "aten::_addmm_activation": _add_batched,
    "aten::conv_tbc": _time_batch_convolution,
    "aten::_scaled_dot_product_fused_attention_overrideable": _attention,
    "aten::_scaled_dot_product_attention_math_for_mps": _attention,
    "aten::_cdist_forward": _distances,
    "aten::_transformer_encoder_layer_fwd": _encoder_layer,
    "aten::_native_multi_head_attention": _self_attention,
}
NESTED_FORMULAS: dict[Any, Formula] = {
    torch.ops.aten.linear: _packed_linear,
    torch.ops.aten.matmul: _product,
    torch.ops.aten.scaled_dot_product_attention: _attention,
    torch.ops.aten.linear_backward: _linear_backward,
    torch.ops.aten.matmul_backward: _matmul_backward,
}
"""Operators that torch takes apart, except on nested tensors."""
_RAW_FORMULAS: dict[str, Formula] = {
    "quantized::conv1d": _packed_convolution,
    "quantized::conv1d_relu": _packed_convolution,
    "quantized::conv2d": _packed_convolution,
    "quantized::conv2d_relu": _packed_convolution,
    "quantized::conv1d_dynamic": _packed_convolution,
    "aten::quantized_lstm": _quantized_rnn,
    "aten::quantized_gru": _quantized_rnn,
}
REAL_OPERATIONS = frozenset({torch.ops.aten._fft_r2c, torch.ops.aten._fft_c2r, torch.ops.aten._fft_c2c})
"""Operators on complex numbers whose formula says real operations already."""
_WHOLE = ("lstm", "gru", "rnn_tanh", "rnn_relu", "quantized_lstm", "quantized_gru")
"""Counted as they are asked for: taken apart, a thousand frames become ten thousand small products."""


def tensors_of(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among an operator's arguments, those in lists included."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_of(value)


def mappings() -> dict[Any, Formula]:
    """The formulas by operator, for the operators that this torch has; to be given to torch's counter."""
    found: dict[Any, Formula] = {}
    for name, formula in _FORMULAS.items():
        found.update(dict.fromkeys(_operators(name), formula))
    for name, formula in _RAW_FORMULAS.items():
        formula._get_raw = True  # type: ignore[attr-defined]  # torch's mark for formulas that want the tensors
        found.update(dict.fromkeys(_operators(name), formula))
    return found


def _operators(name: str) -> list[Any]:
    """The operator by name, and its overloads where the counter must not take it apart; none if torch lacks it."""
    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    if packet is None:
        return []
    return [packet, *(getattr(packet, overload) for overload in packet.overloads())] if operator in _WHOLE else [packet]
