"""Mockingjay and TERA: transformers over log-mel frames, of the sizes that s3prl's upstreams have.

| | layers | ours | paper |
|---|---|---|---|
| Mockingjay | 12 | 85,118,208 | LARGE 85.4 M, BASE (3 layers) 21.4 M |
| TERA | 3 | 21,327,360 | base 21.3 M |

Both: 80 bands in, width 768, 12 heads, 3072 inside, post-norm, sinusoids for positions. Ours equal what s3prl builds
as the upstream: input projection, its norm, and the layers; the head that rebuilds the spectrum is for training only
and is not there. The sizes of Mockingjay's paper are those of wider inputs: 12 layers on 480 values (three frames of
160) make 85.4 M, 3 layers on 160 make 21.4 M.

As in s3prl, a sound longer than the model was trained on (500 frames for Mockingjay, 1500 for TERA) is cut into equal
pieces that are encoded one after the other. Attention here is torch's own kernel where s3prl writes the products out:
the arithmetic is the same, but the scores need not be held.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import nn

from speechmeter.subjects.mel import BANDS
from speechmeter.subjects.zoo.transformer import Layer, padding_mask, sinusoids

_WIDTH, _HEADS, _INNER, _EPSILON = 768, 12, 3072, 1e-12


class MaskedAcoustic(nn.Module):  # type: ignore[misc]
    """(items, frames, bands) → (items, frames, width); pieces of at most `longest` frames do not see each other."""

    positions: torch.Tensor

    def __init__(self, *, layers: int, longest: int) -> None:
        super().__init__()
        self.input = nn.Linear(BANDS, _WIDTH)
        self.input_norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)
        self.layers = nn.ModuleList(Layer(_WIDTH, _HEADS, _INNER, epsilon=_EPSILON) for _ in range(layers))
        self.longest = longest
        self.register_buffer("positions", sinusoids(torch.arange(longest), _WIDTH), persistent=False)

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """The last layer's states."""
        return torch.cat([self._encode(piece, real) for piece, real in self._pieces(frames, lengths)], dim=1)

    def _pieces(
        self, frames: torch.Tensor, lengths: torch.Tensor | None
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
        start = 0
        for piece in frames.chunk(math.ceil(frames.shape[1] / self.longest), dim=1):
            yield piece, None if lengths is None else (lengths - start).clamp(0, piece.shape[1])
            start += piece.shape[1]

    def _encode(self, frames: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
        states = self.input_norm(self.input(frames) + self.positions[: frames.shape[1]])
        mask = padding_mask(lengths, states)
        for layer in self.layers:
            states = layer(states, mask)
        return states


def mockingjay() -> MaskedAcoustic:
    """s3prl's default Mockingjay."""
    return MaskedAcoustic(layers=12, longest=500)


def tera() -> MaskedAcoustic:
    """s3prl's default TERA."""
    return MaskedAcoustic(layers=3, longest=1500)
