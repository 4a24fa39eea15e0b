"""APC and CPC: recurrent encoders that predict later frames. Imports torch.

APC has three layers of gated recurrent units over log-mel frames. 4,105,296 parameters: what s3prl's upstream has, and
the published 4.11 M. The linear layer that predicts the frame (41,040 of them) is counted and run, as it is there.
s3prl takes its frames from Kaldi's filter banks; ours are the zoo's log-mel, of the same 80 bands and the same rate.

CPC, as modified for CPC_audio, has five strided convolutions over the waveform, then an LSTM. 1,843,456 parameters:
what s3prl's `modified_cpc` has, and the published 1.84 M. The networks that predict later frames are only used in
training and are not part of it. As in s3prl, padding is not masked: nothing looks ahead.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from speechmeter.subjects.mel import BANDS

_APC_WIDTH, _APC_LAYERS = 512, 3
_CPC_WIDTH = 256
_CPC_CONVOLUTIONS = ((10, 5, 3), (8, 4, 2), (4, 2, 1), (4, 2, 1), (4, 2, 1))
"""Kernel, stride and padding of each."""


class AutoregressivePredictor(nn.Module):  # type: ignore[misc]
    """APC: (items, frames, bands) → states (items, frames, width) and predicted frames (items, frames, bands)."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [BANDS, *[_APC_WIDTH] * (_APC_LAYERS - 1)]
        self.layers = nn.ModuleList(nn.GRU(size, _APC_WIDTH, batch_first=True) for size in sizes)
        self.prediction = nn.Linear(_APC_WIDTH, BANDS)

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """No layer is run over padding."""
        if lengths is None:
            states = self._run(frames)
        else:
            packed = self._run(pack_padded_sequence(frames, lengths, batch_first=True, enforce_sorted=False))
            states, _ = pad_packed_sequence(packed, batch_first=True, total_length=frames.shape[1])
        return states, self.prediction(states)

    def _run(self, frames: torch.Tensor | PackedSequence) -> torch.Tensor | PackedSequence:
        states, _ = self.layers[0](frames)
        for layer in self.layers[1:]:
            outputs, _ = layer(states)
            if isinstance(outputs, PackedSequence):
                states = outputs._replace(data=states.data + outputs.data)
            else:
                states = states + outputs
        return states


class ContrastivePredictor(nn.Module):  # type: ignore[misc]
    """CPC: (items, samples) → (items, frames, width), a frame every 10 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv1d(_CPC_WIDTH if index else 1, _CPC_WIDTH, kernel, stride=stride, padding=padding),
                    ChannelNorm(_CPC_WIDTH),
                    nn.ReLU(),
                )
                for index, (kernel, stride, padding) in enumerate(_CPC_CONVOLUTIONS)
            )
        )
        self.context = nn.LSTM(_CPC_WIDTH, _CPC_WIDTH, batch_first=True)

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
