"""A Conformer with a CTC head: 12 layers of 256, 4 heads, kernel 31, relative positions, a frame every 40 ms.

The layers, the subsampling and the head are those of ESPnet's recipe for 100 hours of LibriSpeech (`rel_pos`,
`conv2d`, 1024 inside the feed-forwards, pre-norm, two half-weighted feed-forwards a layer); its CTC variant stacks 18
of the layers, its joint one 12. With 500 tokens, the blank among them, it has 21,034,996 parameters. Padding is masked
in attention and, as there, nowhere else.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from speechmeter.subjects.mel import BANDS
from speechmeter.subjects.zoo.transformer import padding_mask, sinusoids, split_heads

_WIDTH, _HEADS, _INNER, _KERNEL, _LAYERS, _EPSILON = 256, 4, 1024, 31, 12, 1e-12
BLANK = 0


class Scores(NamedTuple):
    """Of every token at every frame, (items, frames, tokens); frames in each item, None where all are alike."""

    logits: torch.Tensor
    lengths: torch.Tensor | None


class ConformerCtc(nn.Module):  # type: ignore[misc]
    """(items, frames, bands) → scores."""

    def __init__(self, *, vocabulary: int) -> None:
        super().__init__()
        self.subsampling = Subsampling()
        self.layers = nn.ModuleList(ConformerLayer() for _ in range(_LAYERS))
        self.norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)
        self.ctc = nn.Linear(_WIDTH, vocabulary)

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor | None = None) -> Scores:
        """Of a quarter of the frames."""
        states = self.subsampling(frames) * math.sqrt(_WIDTH)
        if lengths is not None:  # how many of these frames, each on four of the input, begin inside an item
            lengths = ((lengths + 3) // 4).clamp(max=states.shape[1])
        mask, distances = padding_mask(lengths, states), distances_of(states)
        for layer in self.layers:
            states = layer(states, distances, mask)
        return Scores(self.ctc(self.norm(states)), lengths)


class Subsampling(nn.Module):  # type: ignore[misc]
    """Two convolutions over time and frequency, each halving both, and a projection."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, _WIDTH, 3, stride=2), nn.ReLU(), nn.Conv2d(_WIDTH, _WIDTH, 3, stride=2), nn.ReLU()
        )
        self.projection = nn.Linear(_WIDTH * (((BANDS - 1) // 2 - 1) // 2), _WIDTH)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """(items, frames, bands) → (items, frames / 4, width)."""
        return self.projection(self.convolutions(frames[:, None]).transpose(1, 2).flatten(2))


class ConformerLayer(nn.Module):  # type: ignore[misc]
    """Half a feed-forward, attention, convolution, half a feed-forward; each on a normalised copy, then added."""

    def __init__(self) -> None:
        super().__init__()
        self.feed_forward_1 = _feed_forward()
        self.attention_norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)
        self.attention = RelativeAttention()
        self.convolution_norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)
        self.convolution = Convolution()
        self.feed_forward_2 = _feed_forward()
        self.norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)

    def forward(self, states: torch.Tensor, distances: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """(items, frames, width) → the same shape."""
        states = states + 0.5 * self.feed_forward_1(states)
        states = states + self.attention(self.attention_norm(states), distances, mask)
        states = states + self.convolution(self.convolution_norm(states))
        return self.norm(states + 0.5 * self.feed_forward_2(states))


class RelativeAttention(nn.Module):  # type: ignore[misc]
    """Self-attention whose scores have a second part, of every query with every distance (Transformer-XL)."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(_WIDTH, _WIDTH)
        self.key = nn.Linear(_WIDTH, _WIDTH)
        self.value = nn.Linear(_WIDTH, _WIDTH)
        self.distance = nn.Linear(_WIDTH, _WIDTH, bias=False)
        self.output = nn.Linear(_WIDTH, _WIDTH)
        self.content_bias = nn.Parameter(nn.init.xavier_uniform_(torch.empty(_HEADS, _WIDTH // _HEADS)))
        self.distance_bias = nn.Parameter(nn.init.xavier_uniform_(torch.empty(_HEADS, _WIDTH // _HEADS)))

    def forward(self, states: torch.Tensor, distances: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """`distances` are 2 · frames − 1 rows, from the farthest ahead to the farthest behind."""
        query, key, value = (split_heads(part(states), _HEADS) for part in (self.query, self.key, self.value))
        far = split_heads(self.distance(distances)[None], _HEADS)
        by_distance = torch.matmul(query + self.distance_bias[:, None], far.transpose(-2, -1))
        bias = aligned(by_distance) / math.sqrt(_WIDTH // _HEADS)
        attended = functional.scaled_dot_product_attention(
            query + self.content_bias[:, None], key, value, attn_mask=bias if mask is None else bias + mask
        )
        return self.output(attended.transpose(1, 2).flatten(2))


class Convolution(nn.Module):  # type: ignore[misc]
    """Gate, mix neighbouring frames in each channel, project."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Conv1d(_WIDTH, 2 * _WIDTH, 1)
        self.depthwise = nn.Conv1d(_WIDTH, _WIDTH, _KERNEL, padding=_KERNEL // 2, groups=_WIDTH)
        self.norm = nn.BatchNorm1d(_WIDTH)
        self.output = nn.Conv1d(_WIDTH, _WIDTH, 1)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(items, frames, width) → the same shape."""
        gated = functional.glu(self.gate(states.transpose(1, 2)), dim=1)
        return self.output(functional.silu(self.norm(self.depthwise(gated)))).transpose(1, 2)


def _feed_forward() -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(_WIDTH, eps=_EPSILON), nn.Linear(_WIDTH, _INNER), nn.SiLU(), nn.Linear(_INNER, _WIDTH)
    )


def distances_of(states: torch.Tensor) -> torch.Tensor:
    """Sinusoids of 2 · frames − 1 distances, from the farthest ahead to the farthest behind."""
    frames, width = states.shape[1:]
    return sinusoids(torch.arange(frames - 1, -frames, -1, device=states.device), width).to(states.dtype)


def aligned(scores: torch.Tensor) -> torch.Tensor:
    """(…, queries, distances) → (…, queries, keys): row by row the window of distances moves by one."""
    *outer, frames, distances = scores.shape
    shifted = functional.pad(scores, (1, 0)).reshape(*outer, distances + 1, frames)
    return shifted[..., 1:, :].reshape(*outer, frames, distances)[..., :frames]


def greedy(scores: Scores) -> list[list[int]]:
    """The best token of every frame, repeats merged and blanks dropped: one list an item."""
    best = scores.logits.argmax(dim=-1).tolist()
    lengths = [None] * len(best) if scores.lengths is None else scores.lengths.tolist()
    return [
        [token for token, _ in groupby(row[:length]) if token != BLANK]
        for row, length in zip(best, lengths, strict=True)
    ]
