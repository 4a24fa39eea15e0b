"""Post-norm transformers of the zoo: Mockingjay and TERA on log-mel, wav2vec 2.0 and HuBERT on the waveform.

| | layers | ours | published |
|---|---|---|---|
| Mockingjay | 12 | 85,118,208 | LARGE 85.4 M, BASE (3 layers) 21.4 M |
| TERA | 3 | 21,327,360 | base 21.3 M |
| wav2vec 2.0, HuBERT | 12 | 94,371,712 | see below |

Mockingjay and TERA: 80 bands in, width 768, 12 heads, 3072 inside, sinusoids for positions. Ours equal what s3prl
builds as the upstream: input projection, its norm, and the layers; the head that rebuilds the spectrum is only used in
training and is not part of it. The sizes of Mockingjay's paper are those of wider inputs: 12 layers on 480 values
(three frames of 160) make 85.4 M, 3 layers on 160 make 21.4 M. As in s3prl, a sound longer than the model was trained
on (500 frames for Mockingjay, 1500 for TERA) is cut into equal pieces that are encoded one after the other. Attention
here is torch's own kernel where s3prl writes the products out: the arithmetic is the same, but the scores need not be
kept.

wav2vec 2.0 base and HuBERT base are one network with two names: strided convolutions, then a transformer, as
transformers' `Wav2Vec2Model` and `HubertModel`; with their weights ours gives their output. The vector that replaces
masked frames in training is counted, as it is there. fairseq's checkpoints contain what training needs besides, and are
often quoted with it: wav2vec 2.0 + quantizer 81,920 + 328,320 + projections 65,792 + 196,864 = 95,044,608; HuBERT +
projection 196,864 + embeddings of 504 labels 129,024 = 94,697,600. Padding is zeroed after the convolutions and masked
in attention, as fairseq does it, and transformers when it is given an attention mask.

`Attention`, `Layer`, the sinusoids and the masks also serve the Conformers. Imports torch.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from speechmeter.subjects.mel import BANDS

_WIDTH, _HEADS, _INNER, _LAYERS = 768, 12, 3072, 12
_MASKED_EPSILON, _WAVE_EPSILON = 1e-12, 1e-5
_CHANNELS = 512
_KERNELS, _STRIDES = (10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2)
_POSITION_KERNEL, _POSITION_GROUPS = 128, 16
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


class MaskedAcoustic(nn.Module):  # type: ignore[misc]
    """(items, frames, bands) → (items, frames, width); pieces of at most `longest` frames do not see each other."""

    positions: torch.Tensor

    def __init__(self, *, layers: int, longest: int) -> None:
        super().__init__()
        self.input = nn.Linear(BANDS, _WIDTH)
        self.input_norm = nn.LayerNorm(_WIDTH, eps=_MASKED_EPSILON)
        self.layers = nn.ModuleList(Layer(_WIDTH, _HEADS, _INNER, epsilon=_MASKED_EPSILON) for _ in range(layers))
        self.longest = longest
        self.register_buffer("positions", sinusoids(torch.arange(longest), _WIDTH), persistent=False)

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """The last layer's states."""
        encoded, start = [], 0
        for piece in frames.chunk(math.ceil(frames.shape[1] / self.longest), dim=1):
            real = None if lengths is None else (lengths - start).clamp(0, piece.shape[1])
            states = self.input_norm(self.input(piece) + self.positions[: piece.shape[1]])
            mask = padding_mask(real, states)
            for layer in self.layers:
                states = layer(states, mask)
            encoded.append(states)
            start += piece.shape[1]
        return torch.cat(encoded, dim=1)


def mockingjay() -> MaskedAcoustic:
    """s3prl's default Mockingjay."""
    return MaskedAcoustic(layers=12, longest=500)


def tera() -> MaskedAcoustic:
    """s3prl's default TERA."""
    return MaskedAcoustic(layers=3, longest=1500)


class WaveEncoder(nn.Module):  # type: ignore[misc]
    """(items, samples) → (items, frames, width), a frame every 20 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(*(_convolution(index) for index in range(len(_KERNELS))))
        self.projection = nn.Sequential(nn.LayerNorm(_CHANNELS, eps=_WAVE_EPSILON), nn.Linear(_CHANNELS, _WIDTH))
        self.masked_frame = nn.Parameter(torch.rand(_WIDTH))  # only used in training
        self.positions = Positions()
        self.norm = nn.LayerNorm(_WIDTH, eps=_WAVE_EPSILON)
        self.layers = nn.ModuleList(Layer(_WIDTH, _HEADS, _INNER, epsilon=_WAVE_EPSILON) for _ in range(_LAYERS))

    def forward(self, samples: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """The last layer's states."""
        states = self.projection(self.features(samples[:, None]).transpose(1, 2))
        lengths = None if lengths is None else frames_of(lengths)
        if lengths is not None:
            states = states * is_real(lengths, states.shape[1], states.device)[..., None]
        states = self.norm(states + self.positions(states))
        mask = padding_mask(lengths, states)
        for layer in self.layers:
            states = layer(states, mask)
        return states


class Positions(nn.Module):  # type: ignore[misc]
    """A wide grouped convolution whose output encodes the position of a frame."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = weight_norm(
            nn.Conv1d(_WIDTH, _WIDTH, _POSITION_KERNEL, padding=_POSITION_KERNEL // 2, groups=_POSITION_GROUPS),
            dim=2,
        )

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """The even kernel yields one frame too many, which is dropped."""
        return functional.gelu(self.convolution(states.transpose(1, 2))[..., :-1]).transpose(1, 2)


def _convolution(index: int) -> nn.Sequential:
    """Only the first of the seven is followed by a norm, over time in each channel."""
    inputs = _CHANNELS if index else 1
    convolution = nn.Conv1d(inputs, _CHANNELS, _KERNELS[index], stride=_STRIDES[index], bias=False)
    norm = () if index else (nn.GroupNorm(_CHANNELS, _CHANNELS, eps=_WAVE_EPSILON),)
    return nn.Sequential(convolution, *norm, nn.GELU())


def frames_of(samples: torch.Tensor) -> torch.Tensor:
    """How many frames the convolutions leave of so many samples."""
    for kernel, stride in zip(_KERNELS, _STRIDES, strict=True):
        samples = torch.div(samples - kernel, stride, rounding_mode="floor") + 1
    return samples
