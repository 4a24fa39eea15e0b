"""Subjects whose memory is known: tensors of a stated size that live for a stated time, and a small real model."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from speechmeter import Prepared, Stage

_MIB = 2**20
_SECONDS, _BATCH = 4, 2


def _chain(call: Callable[[Any], Any], modules: dict[str, Any] | None = None) -> Prepared:
    return Prepared(stages=(Stage(name="model", fn=call),), modules=modules or {})


def _filled(mib: int) -> torch.Tensor:
    return torch.ones(mib * _MIB, dtype=torch.uint8)


def _held(mib: int, held_s: float) -> Prepared:
    def call(batch: Any) -> int:
        tensor = _filled(mib)
        time.sleep(held_s)
        return tensor.numel()

    return _chain(call)


def spike() -> Prepared:
    """64 MiB alive for 5 ms."""
    return _held(64, 0.005)


def gibibyte() -> Prepared:
    """1 GiB alive for 50 ms."""
    return _held(1024, 0.05)


def ten() -> Prepared:
    """Ten tensors of 4 MiB alive at once."""
    return _chain(lambda batch: len([_filled(4) for _ in range(10)]))


def encoder() -> Prepared:
    """A wav2vec 2.0 of three layers with random weights on 2 × 4 s; its peak is told by torch's own profiler."""
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    torch.manual_seed(0)
    config = Wav2Vec2Config(hidden_size=256, num_hidden_layers=3, num_attention_heads=4, intermediate_size=1024)
    model = Wav2Vec2Model(config).eval()
    samples = torch.randn(_BATCH, _SECONDS * 16_000)

    def call(batch: Any) -> Any:
        with torch.inference_mode():
            return model(samples).last_hidden_state

    return _chain(call, {"model": model})
