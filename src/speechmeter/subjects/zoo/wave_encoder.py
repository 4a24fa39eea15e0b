"""wav2vec 2.0 base and HuBERT base: strided convolutions over the waveform, then a transformer. One network, two names.

94,371,712 parameters each, which is what transformers' `Wav2Vec2Model` and `HubertModel` have, and with their weights
ours gives their output. The vector that stands for masked frames in training is among them, as it is there. fairseq's
checkpoints hold what training needs besides, and are often quoted with it:

| | encoder | + in training | = fairseq |
|---|---|---|---|
| wav2vec 2.0 | 94,371,712 | quantizer 81,920 + 328,320, projections 65,792 + 196,864 | 95,044,608 |
| HuBERT | 94,371,712 | projection 196,864, embeddings of 504 labels 129,024 | 94,697,600 |

Padding is zeroed after the convolutions and masked in attention, as fairseq does and transformers when it is given an
attention mask.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from speechmeter.subjects.zoo.transformer import Layer, is_real, padding_mask

_CHANNELS, _WIDTH, _HEADS, _INNER, _LAYERS, _EPSILON = 512, 768, 12, 3072, 12, 1e-5
_KERNELS, _STRIDES = (10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2)
_POSITION_KERNEL, _POSITION_GROUPS = 128, 16


class WaveEncoder(nn.Module):  # type: ignore[misc]
    """(items, samples) → (items, frames, width), a frame every 20 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(*(_convolution(place) for place in range(len(_KERNELS))))
        self.projection = nn.Sequential(nn.LayerNorm(_CHANNELS, eps=_EPSILON), nn.Linear(_CHANNELS, _WIDTH))
        self.masked_frame = nn.Parameter(torch.rand(_WIDTH))  # training alone uses it
        self.positions = Positions()
        self.norm = nn.LayerNorm(_WIDTH, eps=_EPSILON)
        self.layers = nn.ModuleList(Layer(_WIDTH, _HEADS, _INNER, epsilon=_EPSILON) for _ in range(_LAYERS))

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
    """A wide grouped convolution whose output tells a frame where it stands."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = weight_norm(
            nn.Conv1d(_WIDTH, _WIDTH, _POSITION_KERNEL, padding=_POSITION_KERNEL // 2, groups=_POSITION_GROUPS),
            dim=2,
        )

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """The even kernel yields one frame too many, which is dropped."""
        return functional.gelu(self.convolution(states.transpose(1, 2))[..., :-1]).transpose(1, 2)


def _convolution(place: int) -> nn.Sequential:
    """One of the seven; the first alone is followed by a norm, over time in each channel."""
    inputs = _CHANNELS if place else 1
    convolution = nn.Conv1d(inputs, _CHANNELS, _KERNELS[place], stride=_STRIDES[place], bias=False)
    norm = () if place else (nn.GroupNorm(_CHANNELS, _CHANNELS, eps=_EPSILON),)
    return nn.Sequential(convolution, *norm, nn.GELU())


def frames_of(samples: torch.Tensor) -> torch.Tensor:
    """How many frames the convolutions leave of so many samples."""
    for kernel, stride in zip(_KERNELS, _STRIDES, strict=True):
        samples = torch.div(samples - kernel, stride, rounding_mode="floor") + 1
    return samples
