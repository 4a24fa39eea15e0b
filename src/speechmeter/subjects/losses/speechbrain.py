"""SpeechBrain's loss: numba kernels for CUDA. Imports it when it is loaded."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Labels
from speechmeter.subjects.losses.numba_cuda import lend_dropped_names
from speechmeter.subjects.torchaudio_stand_in import torchaudio_or_stand_in

_HOME = "speechbrain.integrations.numba.transducer_loss"
_OLD_HOME = "speechbrain.nnet.loss.transducer_loss"
"""Where it lived before 1.1."""


def load() -> Exact:
    """`TransducerLoss` by utterance, its division by the frames undone."""
    lend_dropped_names()
    with torchaudio_or_stand_in():
        compute = _module().TransducerLoss(blank=BLANK, reduction="none")

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        by_frame = compute(logits, labels.targets, labels.frames, labels.labels)
        return _undivided(by_frame, labels.frames)

    return loss


def _module() -> Any:
    try:
        return import_module(_HOME)
    except ModuleNotFoundError as error:
        if error.name not in ("speechbrain.integrations", "speechbrain.integrations.numba", _HOME):
            raise
        return import_module(_OLD_HOME)


def _undivided(by_frame: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
    """The loss times its frames. Its gradient was never divided, so the factor must not reach that."""
    return by_frame + by_frame.detach() * (frames - 1)
