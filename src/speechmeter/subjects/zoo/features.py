"""What stands before the models of the zoo, on the CPU and in float32: log-mel frames, or a levelled waveform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from speechmeter.core.types import Batch
from speechmeter.subjects.mel import HOP
from speechmeter.subjects.zoo.log_mel import LogMel

_LEAST_VARIANCE = 1e-7


class Inputs(NamedTuple):
    """What a model is handed: items along the first axis, time along the second.

    `lengths` are the true lengths along time, on the CPU; None where all items are equally long and nothing is masked.
    """

    data: torch.Tensor
    lengths: torch.Tensor | None = None


Features = Callable[[Batch], Inputs]


def log_mel_frames(front: LogMel) -> Features:
    """(items, frames, bands): each band of each item brought to zero mean and unit variance."""

    def features(batch: Batch) -> Inputs:
        with torch.inference_mode():
            frames = front(torch.from_numpy(batch.data)).transpose(1, 2)
            return _standardised(frames, [length // HOP + 1 for length in _lengths(batch)])

    return features


def levelled_waveform(batch: Batch) -> Inputs:
    """(items, samples): each item brought to zero mean and unit variance."""
    with torch.inference_mode():
        return _standardised(torch.from_numpy(batch.data), _lengths(batch))


def _lengths(batch: Batch) -> Sequence[int]:
    return batch.lengths or (batch.data.shape[1],) * batch.items


def _standardised(items: torch.Tensor, lengths: Sequence[int]) -> Inputs:
    """Statistics are over the true length of each item; what lies behind it becomes zero."""
    parts = [_standard(item[:length]) for item, length in zip(items, lengths, strict=True)]
    alike = len(set(lengths)) == 1
    return Inputs(pad_sequence(parts, batch_first=True), None if alike else torch.tensor(lengths))


def _standard(item: torch.Tensor) -> torch.Tensor:
    variance, mean = torch.var_mean(item, dim=0, correction=0, keepdim=True)
    return (item - mean) / torch.sqrt(variance + _LEAST_VARIANCE)
