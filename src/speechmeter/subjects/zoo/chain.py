"""The stages of the zoo's encoders: features → copy → model → decode, with those that a model has. Imports torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.zoo.features import Features, Inputs, levelled_waveform, log_mel_frames
from speechmeter.subjects.zoo.log_mel import LogMel

_QUANTIZED = (torch.nn.Linear, torch.nn.LSTM, torch.nn.GRU)
"""Layers that torch can run in int8 with activations quantised at each call; convolutions stay as they are."""
_SYNTHETIC = "synthetic: random weights, same cost, no meaning"


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A model, what computes its input, and what reads its output; None where there is no such stage.

    The model is called with the data, and with the lengths of its items where they differ.
    """

    model: torch.nn.Module
    front: LogMel | None = None
    features: Features | None = None
    decode: Callable[[Any], Any] | None = None

    @classmethod
    def on_log_mel(cls, model: torch.nn.Module, decode: Callable[[Any], Any] | None = None) -> Parts:
        """A model that is fed log-mel frames."""
        front = LogMel()
        return cls(model=model, front=front, features=log_mel_frames(front), decode=decode)

    @classmethod
    def on_waveform(cls, model: torch.nn.Module, *, levelled: bool = False) -> Parts:
        """A model that is fed the waveform, brought to zero mean and unit variance or as it comes."""
        return cls(model=model, features=levelled_waveform if levelled else None)


def prepare_chain(name: str, build: Callable[[], Parts], case: Case, device: str) -> Prepared:
    """Settings first, then the model, so that its random weights follow from the seed."""
    dtype = runtime.configure(case)
    parts = build()
    model = runtime.quantized(parts.model.eval().to(device=device, dtype=dtype), case, _QUANTIZED)
    call = runtime.inference(runtime.compiled(model, case))
    fronts = {} if parts.front is None else {"log-mel": parts.front}
    stages = [Stage(name="copy", fn=_copy(device, dtype)), Stage(name="model", fn=_model(call), modules={name: model})]
    if parts.features is not None:
        stages.insert(0, Stage(name="features", fn=parts.features, modules=fronts))
    if parts.decode is not None:
        stages.append(Stage(name="decode", fn=parts.decode))
    return Prepared(
        stages=tuple(stages),
        modules={**fronts, name: model},
        sync=runtime.sync_for(device),
        notes=(_SYNTHETIC,) if any(True for _ in model.parameters()) else (),
    )


def _copy(device: str, dtype: torch.dtype) -> Callable[[Batch | Inputs], Inputs]:
    """Lengths stay where they are: what packs sequences asks for them on the CPU."""

    def copy(state: Batch | Inputs) -> Inputs:
        inputs = Inputs(torch.from_numpy(state.data)) if isinstance(state, Batch) else state
        return inputs._replace(data=inputs.data.to(device=device, dtype=dtype))

    return copy


def _model(call: Callable[..., Any]) -> Callable[[Inputs], Any]:
    def model(inputs: Inputs) -> Any:
        return call(inputs.data) if inputs.lengths is None else call(inputs.data, inputs.lengths)

    return model
