"""What the operators outside matrix arithmetic do: arithmetic by the element, or only moving data. Imports torch.

The split makes coverage honest: an operator that is neither counted by a formula, nor here, is unknown and is listed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

_OF_INPUT = {
    "sum": 1, "mean": 1, "amax": 1, "amin": 1, "aminmax": 2, "max": 1, "min": 1, "argmax": 1, "argmin": 1, "prod": 1,
    "any": 1, "all": 1, "nansum": 1, "cumsum": 1, "cumprod": 1, "cummax": 1, "cummin": 1, "logcumsumexp": 3,
    "logsumexp": 3, "var": 3, "var_mean": 3, "std": 3, "std_mean": 3, "norm": 2, "linalg_vector_norm": 2,
    "_softmax": 5, "_log_softmax": 5, "_softmax_backward_data": 4, "_log_softmax_backward_data": 4, "_safe_softmax": 5,
    "native_layer_norm": 8, "native_layer_norm_backward": 12, "native_group_norm": 8, "native_group_norm_backward": 12,
    "native_batch_norm": 4, "_native_batch_norm_legit": 4, "_native_batch_norm_legit_no_training": 4,
    "cudnn_batch_norm": 4, "cudnn_batch_norm_backward": 8, "native_batch_norm_backward": 8, "batch_norm_backward": 8,
    "_batch_norm_with_update": 4, "_batch_norm_no_update": 4, "_fused_rms_norm": 5, "_fused_rms_norm_backward": 9,
    "_weight_norm_interface": 4, "_weight_norm_interface_backward": 6, "renorm": 3, "bincount": 1, "histc": 1,
    "sort": 1, "topk": 1, "kthvalue": 1, "median": 1, "unique_dim": 1, "_unique2": 1, "multinomial": 1,
    "nll_loss_forward": 1, "nll_loss2d_forward": 1, "_ctc_loss": 3, "_cudnn_ctc_loss": 3, "mse_loss": 3,
    "glu": 3, "glu_backward": 5,
    "smooth_l1_loss": 3, "max_pool2d_with_indices": 1, "avg_pool2d": 1, "avg_pool1d": 1, "adaptive_max_pool2d": 1,
    "_adaptive_avg_pool2d": 1, "native_dropout": 2, "_thnn_fused_lstm_cell": 8, "_thnn_fused_gru_cell": 8,
    "count_nonzero": 1, "mode": 1, "nanmedian": 1, "_aminmax": 2,
    "trace": 1, "dist": 3, "unique_consecutive": 1, "batch_norm_stats": 3, "_logcumsumexp": 3, "_cummin_helper": 1,
    "segment_reduce": 1, "searchsorted": 1, "allclose": 4, "_foreach_norm": 2, "trapezoid": 2, "max_pool1d": 1,
}  # fmt: skip
"""Operations for each element of the first tensor: stated conventions, not hardware truth."""

_OF_OUTPUT = {
    "upsample_nearest1d": 0, "upsample_linear1d": 3, "upsample_nearest2d": 0, "upsample_bilinear2d": 8,
    "grid_sampler_2d": 8, "_euclidean_dist": 3, "bernoulli": 1,
    "rand": 1, "randn": 1, "rand_like": 1, "randn_like": 1, "randint": 1,
    "randperm": 1, "index_add": 1, "scatter_add": 1, "scatter_reduce": 1,
    "embedding_dense_backward": 1, "nll_loss_backward": 1, "_ctc_loss_backward": 3,
    "max_pool2d_with_indices_backward": 1,
    "avg_pool2d_backward": 1, "linspace": 2, "hann_window": 4, "_cummax_helper": 1, "quantize_per_tensor": 2,
    "quantize_per_channel": 2, "_embedding_bag": 1, "_thnn_fused_lstm_cell_backward_impl": 8, "angle": 1,
    "_thnn_fused_gru_cell_backward": 8, "quantize_per_tensor_dynamic": 2, "tril_indices": 1, "triu_indices": 1,
    "floor_divide": 1, "hardswish": 3, "_prelu_kernel": 2, "complex": 0, "polar": 4, "binary_cross_entropy": 6,
    "huber_loss": 3, "log_sigmoid_forward": 3, "_masked_softmax": 5, "rrelu_with_noise": 2, "random": 1, "uniform": 1,
    "normal": 1, "exponential": 1, "_add_relu": 2, "threshold": 1, "addr": 2, "range": 1, "logspace": 2,
    "_fused_adam": 12, "_fused_adamw": 14, "_fused_sgd": 4, "_fused_adagrad": 6, "batch_norm_elemt": 4,
    "dequantize": 2, "clamp": 1, "isin": 1, "bucketize": 1, "equal": 1, "_fused_dropout": 2, "copysign": 1,
}  # fmt: skip
"""Operations for each element that comes out."""

_MOVES = frozenset({
    "copy", "clone", "_to_copy", "cat", "stack", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d",
    "replication_pad1d", "replication_pad2d", "index", "index_put", "_index_put_impl", "_unsafe_index",
    "_unsafe_index_put", "index_select", "index_fill", "index_copy", "gather", "scatter", "masked_fill",
    "masked_select", "masked_scatter", "take_along_dim", "embedding", "empty", "empty_like", "empty_strided",
    "empty_permuted", "new_empty", "new_empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full",
    "full_like", "new_zeros", "new_ones", "new_full", "zero", "fill", "arange", "scalar_tensor", "eye", "roll",
    "flip", "repeat", "repeat_interleave", "unfold_copy", "im2col", "col2im", "unfold_backward", "as_strided",
    "lift_fresh", "lift_fresh_copy", "lift", "detach", "_reshape_alias", "resize", "set", "nonzero", "tril", "triu",
    "slice_scatter", "select_scatter", "slice_backward", "select_backward", "diagonal_copy", "expand_copy",
    "select_copy", "view_copy", "permute_copy", "constant", "_local_scalar_dense", "item", "is_nonzero", "real",
    "imag", "view_as_real", "view_as_complex", "conj_physical", "_conj", "_neg_view", "resolve_conj", "resolve_neg",
    "_pack_padded_sequence", "_pack_padded_sequence_backward", "_pad_packed_sequence", "_nested_tensor_from_mask",
    "_fft_fill_with_conjugate_symmetry", "reflection_pad1d_backward", "constant_pad_nd_backward", "where_copy",
    "split_with_sizes_copy", "pixel_shuffle", "channel_shuffle", "_transform_bias_rescale_qkv", "is_same_size",
    "_cudnn_init_dropout_state", "_cudnn_rnn_flatten_weight", "record_stream", "_has_compatible_shallow_copy_type",
    "_use_cudnn_ctc_loss", "_version", "swapaxes", "alias",
    "nan_to_num_copy", "mkldnn_reorder_conv2d_weight", "to_mkldnn", "to_dense", "_mkldnn_reshape",
    "_mkldnn_transpose", "_reshape_copy", "narrow_copy", "squeeze_copy", "unsqueeze_copy", "transpose_copy",
    "_to_sparse", "max_unpool2d", "set_data", "retain_grad", "_assert_async", "_assert_tensor_metadata", "sym_size",
    "sym_numel", "sym_stride", "sym_storage_offset", "is_pinned", "_pin_memory", "pin_memory", "unsafe_split",
    "unsafe_split_with_sizes", "unsafe_chunk", "_unsafe_view", "_stack", "take", "put", "rot90", "pixel_unshuffle",
    "diag_embed", "block_diag", "nonzero_static", "masked_scatter_backward", "int_repr", "_is_any_true",
    "_is_all_true", "is_set_to", "_copy_from", "_lazy_clone", "transpose", "t", "squeeze", "unsqueeze", "swapdims",
    "to_padded_tensor",
})  # fmt: skip

_MOVING = ("_nested", "reflection_pad", "replication_pad", "_fused_sdp_choice", "q_", "_assert", "_functional_")
_POOLING = ("upsample", "_upsample", "avg_pool", "adaptive_", "_adaptive_", "max_pool", "fractional_", "grid_sampler")
_ELEMENT_BACKWARDS = (
    "elu_backward", "hardsigmoid_backward", "hardswish_backward", "hardtanh_backward", "leaky_relu_backward",
    "softplus_backward", "shrink_backward", "log_sigmoid_backward", "_loss_backward", "cross_entropy_backward",
    "_prelu_kernel_backward", "noise_backward", "with_logits", "_masked_softmax_backward", "nll_loss2d_backward",
)  # fmt: skip

MATRIX, ELEMENTS, MOVES, WRAPS, UNKNOWN = KINDS = ("matrix", "elements", "moves", "wraps", "unknown")


@cache
def kind_of(packet: Any) -> tuple[str, int, bool]:
    """(kind, operations an element, whether elements are those of the input) of an operator without a formula."""
    name = packet.__name__ if packet.__name__.endswith("__") else packet.__name__.removesuffix("_")
    if name in _OF_INPUT:
        return ELEMENTS, _OF_INPUT[name], True
    if name in _OF_OUTPUT:
        return ELEMENTS, _OF_OUTPUT[name], False
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    if name in _MOVES or name.endswith("_copy") or name.startswith(_MOVING) or any(o.is_view for o in overloads):
        return MOVES, 0, False
    # families of operators that touch each element about once
    by_element = name.startswith(("_foreach_", *_POOLING)) or name.endswith(("_window", *_ELEMENT_BACKWARDS))
    if by_element or any(torch.Tag.pointwise in overload.tags for overload in overloads):
        return ELEMENTS, 1, False
    return UNKNOWN, 0, False
