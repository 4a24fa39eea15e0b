"""What the transformers of the zoo share: attention, a post-norm layer, sinusoids, and the mask of padding."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

_AWAY = -10_000.0
"""Added to the score of a padded frame: its weight is then zero in every number format."""


class Attention(nn.Module):  # type: ignore[misc]
    """Self-attention over all heads by torch's own kernel, which need not hold the scores."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """`mask` is added to the scores, (items, 1, 1, frames)."""
        query, key, value = (split_heads(part(states), self.heads) for part in (self.query, self.key, self.value))
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.output(attended.transpose(1, 2).flatten(2))


class Layer(nn.Module):  # type: ignore[misc]
    """Attention, then feed-forward; each is added to what it was given, and the sum is normalised."""

    def __init__(self, width: int, heads: int, inner: int, *, epsilon: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.attention_norm = nn.LayerNorm(width, eps=epsilon)
        self.feed_forward = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))
        self.feed_forward_norm = nn.LayerNorm(width, eps=epsilon)

    def forward(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """(items, frames, width) → the same shape."""
        states = self.attention_norm(states + self.attention(states, mask))
        return self.feed_forward_norm(states + self.feed_forward(states))


def split_heads(states: torch.Tensor, heads: int) -> torch.Tensor:
    """(items, frames, width) → (items, heads, frames, width / heads)."""
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def is_real(lengths: torch.Tensor, frames: int, device: torch.device) -> torch.Tensor:
    """(items, frames): true where a frame is not padding."""
    return torch.arange(frames, device=device) < lengths.to(device)[:, None]


def padding_mask(lengths: torch.Tensor | None, states: torch.Tensor) -> torch.Tensor | None:
    """What attention adds to the scores of these states, (items, 1, 1, frames); None where nothing is padded."""
    if lengths is None:
        return None
    padded = ~is_real(lengths, states.shape[1], states.device)
    return (padded.to(states.dtype) * _AWAY)[:, None, None]


def sinusoids(positions: torch.Tensor, width: int) -> torch.Tensor:
    """(positions, width) in float32: sines in even places, cosines in odd ones, periods from 2π to 20,000π."""
    rates = 10_000.0 ** (-torch.arange(0, width, 2, device=positions.device, dtype=torch.float32) / width)
    angles = positions[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
