"""APC: three layers of gated recurrent units over log-mel frames that foretell a later frame.

4,105,296 parameters: what s3prl's upstream has, and the published 4.11 M. The linear layer that foretells the frame
(41,040 of them) is counted and run, as it is there. s3prl takes its frames from Kaldi's filter banks; ours are the
zoo's log-mel, of the same 80 bands and the same rate.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from speechmeter.subjects.mel import BANDS

_WIDTH, _LAYERS = 512, 3


class AutoregressivePredictor(nn.Module):  # type: ignore[misc]
    """(items, frames, bands) → the states (items, frames, width) and the foretold frames (items, frames, bands)."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [BANDS, *[_WIDTH] * (_LAYERS - 1)]
        self.layers = nn.ModuleList(nn.GRU(size, _WIDTH, batch_first=True) for size in sizes)
        self.prediction = nn.Linear(_WIDTH, BANDS)

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
            states = _sum(states, layer(states)[0])
        return states


def _sum(
    inputs: torch.Tensor | PackedSequence, outputs: torch.Tensor | PackedSequence
) -> torch.Tensor | PackedSequence:
    if isinstance(outputs, PackedSequence):
        return outputs._replace(data=inputs.data + outputs.data)
    return inputs + outputs
