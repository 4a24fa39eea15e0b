"""The Conformer encoder of the published transducer: 12 layers of 512, 8 heads, two feed-forwards of 2048, kernel 31.

Its parameters are those of the original, one by one. What the original does in training to keep activations in bounds
is left out: it has no parameters. Layers have learnt scales: a weight is multiplied by the exponential of a scalar that
is learnt beside it, and so is a bias; a norm divides by the root mean square and has one scalar. They cost little, and
they count: the published number of parameters includes them. Imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from speechmeter.core.axes import NONE
from speechmeter.subjects.zoo.conformer import aligned, distances_of
from speechmeter.subjects.zoo.transformer import is_real, padding_mask, split_heads

BANDS = 80
_CHANNELS = (8, 32, 128)
REENTRANT, NON_REENTRANT = "reentrant", "non-reentrant"


@dataclass(frozen=True, kw_only=True)
class Size:
    """Of the encoder and the layers around it; the published one by default."""

    layers: int = 12
    width: int = 512
    heads: int = 8
    inner: int = 2048
    kernel: int = 31
    vocabulary: int = 500
    dropout: float = 0.1


def _scale() -> nn.Parameter:
    return nn.Parameter(torch.zeros(()))


def _scaled(layer: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    bias = None if layer.bias is None else layer.bias * layer.bias_scale.exp()
    return layer.weight * layer.weight_scale.exp(), bias


class ScaledLinear(nn.Linear):  # type: ignore[misc]
    """A linear layer with a scale for its weight and one for its bias."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.weight_scale = _scale()
        self.bias_scale = _scale() if bias else None

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(…, inputs) → (…, outputs)."""
        return functional.linear(values, *_scaled(self))


class _ScaledConv:
    """What makes the convolution beside it a scaled one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.weight_scale = _scale()
        self.bias_scale = _scale() if self.bias is not None else None  # type: ignore[attr-defined]

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(items, channels, …) → the same with the layer's channels."""
        return self._conv_forward(values, *_scaled(self))  # type: ignore[attr-defined]


class ScaledConv1d(_ScaledConv, nn.Conv1d):  # type: ignore[misc]
    """Over time."""


class ScaledConv2d(_ScaledConv, nn.Conv2d):  # type: ignore[misc]
    """Over time and frequency."""


class ScaledEmbedding(nn.Embedding):  # type: ignore[misc]
    """A table of vectors with one scale."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__(count, width)
        self.scale = _scale()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(…) → (…, width)."""
        return functional.embedding(ids, self.weight * self.scale.exp())


class RootMeanSquareNorm(nn.Module):  # type: ignore[misc]
    """Divide by the root of the mean square plus a number, which is learnt unless it is fixed."""

    def __init__(self, *, learnt: bool = True) -> None:
        super().__init__()
        start = torch.tensor(0.25).log()
        if learnt:
            self.epsilon = nn.Parameter(start)
        else:
            self.register_buffer("epsilon", start)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Over the last dimension."""
        return values * (values.square().mean(dim=-1, keepdim=True) + self.epsilon.exp()).rsqrt()


class DoubleSwish(nn.Module):  # type: ignore[misc]
    """x · sigmoid(x − 1)."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Element by element."""
        return values * torch.sigmoid(values - 1.0)


def subsampled(length: Any) -> Any:
    """How many frames are left of so many: of a number, or of each in a tensor."""
    return ((length - 1) // 2 - 1) // 2


class Encoder(nn.Module):  # type: ignore[misc]
    """(items, frames, 80) and the true lengths → (items, frames / 4, width) and theirs."""

    def __init__(self, size: Size, checkpointing: str = NONE) -> None:
        super().__init__()
        self.embed = Subsampling(size)
        self.layers = nn.ModuleList(ConformerLayer(size) for _ in range(size.layers))
        self.checkpointing = checkpointing

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Padding is masked in attention and before every depthwise convolution."""
        states, lengths = self.embed(frames), subsampled(lengths)
        mask, real = padding_mask(lengths, states), is_real(lengths, states.shape[1], states.device)
        distances = distances_of(states)
        for layer in self.layers:
            states = self._run(layer, states, distances, mask, real)
        return states, lengths

    def _run(self, layer: nn.Module, *values: Any) -> torch.Tensor:
        if self.checkpointing == NONE:
            return layer(*values)
        return checkpoint(layer, *values, use_reentrant=self.checkpointing == REENTRANT)


class Subsampling(nn.Module):  # type: ignore[misc]
    """Three convolutions over time and frequency, the last two halving both, and a projection."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        first, second, third = _CHANNELS
        self.conv = nn.Sequential(
            ScaledConv2d(1, first, 3, padding=1),
            DoubleSwish(),
            ScaledConv2d(first, second, 3, stride=2),
            DoubleSwish(),
            ScaledConv2d(second, third, 3, stride=2),
            DoubleSwish(),
        )
        self.out = ScaledLinear(third * subsampled(BANDS), size.width)
        self.norm = RootMeanSquareNorm(learnt=False)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """(items, frames, 80) → (items, frames / 4, width)."""
        return self.norm(self.out(self.conv(frames.unsqueeze(1)).transpose(1, 2).flatten(2)))


class ConformerLayer(nn.Module):  # type: ignore[misc]
    """Feed-forward, attention, convolution, feed-forward, each added to what it was given; then the norm."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.feed_forward_macaron = _feed_forward(size)
        self.self_attn = RelativeAttention(size)
        self.conv = Convolution(size)
        self.feed_forward = _feed_forward(size)
        self.norm = RootMeanSquareNorm()
        self.dropout = nn.Dropout(size.dropout)

    def forward(
        self, states: torch.Tensor, distances: torch.Tensor, mask: torch.Tensor, real: torch.Tensor
    ) -> torch.Tensor:
        """(items, frames, width) → the same shape."""
        states = states + self.dropout(self.feed_forward_macaron(states))
        states = states + self.dropout(self.self_attn(states, distances, mask))
        states = states + self.dropout(self.conv(states, real))
        return self.norm(states + self.dropout(self.feed_forward(states)))


def _feed_forward(size: Size) -> nn.Sequential:
    return nn.Sequential(
        ScaledLinear(size.width, size.inner),
        DoubleSwish(),
        nn.Dropout(size.dropout),
        ScaledLinear(size.inner, size.width),
    )


class RelativeAttention(nn.Module):  # type: ignore[misc]
    """Self-attention with scores by content and by distance (Transformer-XL); torch's own kernel takes their sum."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads, self.dropout = size.heads, size.dropout
        self.in_proj = ScaledLinear(size.width, 3 * size.width)
        self.out_proj = ScaledLinear(size.width, size.width)
        self.linear_pos = ScaledLinear(size.width, size.width, bias=False)
        each = partial(torch.empty, size.heads, 1, size.width // size.heads)
        self.content_bias, self.distance_bias = (nn.Parameter(nn.init.xavier_uniform_(each())) for _ in range(2))
        self.content_scale, self.distance_scale = (nn.Parameter(torch.zeros(())) for _ in range(2))

    def forward(self, states: torch.Tensor, distances: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(items, frames, width) → the same shape."""
        query, key, value = (split_heads(part, self.heads) for part in self.in_proj(states).chunk(3, dim=-1))
        far = split_heads(self.linear_pos(distances).unsqueeze(0), self.heads)
        by_content = (query + self.content_bias * self.content_scale.exp()).to(key.dtype)
        by_distance = (query + self.distance_bias * self.distance_scale.exp()).to(far.dtype)
        bias = aligned(by_distance @ far.transpose(-2, -1)) / query.shape[-1] ** 0.5
        attended = functional.scaled_dot_product_attention(
            by_content,
            key,
            value,
            attn_mask=bias + mask.to(bias.dtype),
            dropout_p=self.dropout if self.training else 0.0,
        )
        return self.out_proj(attended.transpose(1, 2).flatten(2))


class Convolution(nn.Module):  # type: ignore[misc]
    """Gate, mix neighbouring frames in each channel, project."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        width, kernel = size.width, size.kernel
        self.pointwise_in = ScaledConv1d(width, 2 * width, 1)
        self.depthwise = ScaledConv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.activation = DoubleSwish()
        self.pointwise_out = ScaledConv1d(width, width, 1)

    def forward(self, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """(items, frames, width) → the same shape."""
        gated = functional.glu(self.pointwise_in(states.transpose(1, 2)), dim=1) * real.unsqueeze(1)
        return self.pointwise_out(self.activation(self.depthwise(gated))).transpose(1, 2)
