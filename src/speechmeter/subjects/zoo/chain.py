"""The stages of the zoo's encoders: features → copy → model → decode, with those that a model has. Imports torch.

Features are computed on the CPU in float32: log-mel frames, or the waveform at zero mean and unit variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.common import SYNTHETIC
from speechmeter.subjects.mel import HOP, WINDOW, frames_in, mel_bands

_QUANTIZED = (torch.nn.Linear, torch.nn.LSTM, torch.nn.GRU)
"""Layers that torch can run in int8 with activations quantised at each call; convolutions stay as they are."""
_LEAST_VARIANCE = 1e-7


class Inputs(NamedTuple):
    """What a model is called with: items along the first axis, time along the second.

    `lengths` are the true lengths along time; None where all items are equally long and nothing is masked. They stay on
    the CPU, where torch needs them to pack sequences.
    """

    data: torch.Tensor
    lengths: torch.Tensor | None = None


class LogMel(torch.nn.Module):  # type: ignore[misc]
    """Log of the mel-weighted power spectrum: (batch, samples) → (batch, bands, frames). No parameters.

    80 bands, windows of 25 ms every 10 ms, at 16 kHz.
    """

    window: torch.Tensor
    bands: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW))
        self.register_buffer("bands", torch.tensor(mel_bands(), dtype=torch.float32))

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        """One frame for every begun hop, and one more: windows are centred, the edges padded with zeros."""
        spectrum = torch.stft(
            samples, n_fft=WINDOW, hop_length=HOP, window=self.window, pad_mode="constant", return_complex=True
        )
        return torch.log(torch.matmul(self.bands, spectrum.abs().square()) + 1e-10)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A model, what computes its input, and what reads its output; None where there is no such stage.

    The model is called with the data, and with the lengths of its items where they differ.
    """

    model: torch.nn.Module
    front: LogMel | None = None
    features: Callable[[Batch], Inputs] | None = None
    decode: Callable[[Any], Any] | None = None

    @classmethod
    def on_log_mel(cls, model: torch.nn.Module, decode: Callable[[Any], Any] | None = None) -> Parts:
        """A model that is fed log-mel frames: (items, frames, bands), each band of each item standardised."""
        front = LogMel()

        def features(batch: Batch) -> Inputs:
            with torch.inference_mode():
                frames = front(torch.from_numpy(batch.data)).transpose(1, 2)
                return _standardised(frames, [frames_in(length) for length in _lengths(batch)])

        return cls(model=model, front=front, features=features, decode=decode)

    @classmethod
    def on_waveform(cls, model: torch.nn.Module, *, levelled: bool = False) -> Parts:
        """A model that is fed the waveform: as it comes, or each item standardised."""

        def features(batch: Batch) -> Inputs:
            with torch.inference_mode():
                return _standardised(torch.from_numpy(batch.data), _lengths(batch))

        return cls(model=model, features=features if levelled else None)


def _lengths(batch: Batch) -> Sequence[int]:
    return batch.lengths or (batch.data.shape[1],) * batch.items


def _standardised(items: torch.Tensor, lengths: Sequence[int]) -> Inputs:
    """Zero mean and unit variance over the true length of each item; what follows it becomes zero."""
    parts = []
    for item, length in zip(items, lengths, strict=True):
        variance, mean = torch.var_mean(item[:length], dim=0, correction=0, keepdim=True)
        parts.append((item[:length] - mean) / torch.sqrt(variance + _LEAST_VARIANCE))
    alike = len(set(lengths)) == 1
    return Inputs(pad_sequence(parts, batch_first=True), None if alike else torch.tensor(lengths))


def prepare_chain(name: str, build: Callable[[], Parts], case: Case, device: str) -> Prepared:
    """Build the model and its stages; after the settings, so that its random weights follow from the seed."""
    dtype = runtime.configure(case)
    parts = build()
    network = runtime.quantized(parts.model.eval().to(device=device, dtype=dtype), case, _QUANTIZED)
    call = runtime.inference(runtime.compiled(network, case))
    fronts = {} if parts.front is None else {"log-mel": parts.front}

    def copy(state: Batch | Inputs) -> Inputs:
        inputs = Inputs(torch.from_numpy(state.data)) if isinstance(state, Batch) else state
        return inputs._replace(data=inputs.data.to(device=device, dtype=dtype))

    def model(inputs: Inputs) -> Any:
        return call(inputs.data) if inputs.lengths is None else call(inputs.data, inputs.lengths)

    stages = [Stage(name="copy", fn=copy), Stage(name="model", fn=model, modules={name: network})]
    if parts.features is not None:
        stages.insert(0, Stage(name="features", fn=parts.features, modules=fronts))
    if parts.decode is not None:
        stages.append(Stage(name="decode", fn=parts.decode))
    return Prepared(
        stages=tuple(stages),
        modules={**fronts, name: network},
        sync=runtime.sync_for(device),
        notes=(SYNTHETIC,) if any(True for _ in network.parameters()) else (),
    )
