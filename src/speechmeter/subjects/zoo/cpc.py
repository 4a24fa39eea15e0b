"""CPC, as modified for CPC_audio: five strided convolutions over the waveform, then an LSTM.

1,843,456 parameters: what s3prl's `modified_cpc` has, and the published 1.84 M. The networks that foretell later frames
are for training only and are not there. Padding is not masked, as it is not there: nothing looks ahead.
"""

from __future__ import annotations

import torch
from torch import nn

_WIDTH = 256
_KERNELS, _STRIDES, _PADDINGS = (10, 8, 4, 4, 4), (5, 4, 2, 2, 2), (3, 2, 1, 1, 1)


class ContrastivePredictor(nn.Module):  # type: ignore[misc]
    """(items, samples) → (items, frames, width), a frame every 10 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(*(_convolution(place) for place in range(len(_KERNELS))))
        self.context = nn.LSTM(_WIDTH, _WIDTH, batch_first=True)

    def forward(self, samples: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """The states of the LSTM."""
        states, _ = self.context(self.features(samples[:, None]).transpose(1, 2))
        return states


class ChannelNorm(nn.Module):  # type: ignore[misc]
    """Normalises every frame over its channels, by the unbiased variance: (items, channels, frames)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, 1))
        self.bias = nn.Parameter(torch.zeros(channels, 1))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """The same shape."""
        variance, mean = torch.var_mean(states, dim=1, keepdim=True)
        return (states - mean) * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


def _convolution(place: int) -> nn.Sequential:
    inputs = _WIDTH if place else 1
    sizes = {"stride": _STRIDES[place], "padding": _PADDINGS[place]}
    return nn.Sequential(nn.Conv1d(inputs, _WIDTH, _KERNELS[place], **sizes), ChannelNorm(_WIDTH), nn.ReLU())
