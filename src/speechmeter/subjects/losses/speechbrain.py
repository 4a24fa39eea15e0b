"""SpeechBrain's loss: numba kernels for CUDA. Imports it when it is loaded."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Labels

_HOMES = ("speechbrain.integrations.numba.transducer_loss", "speechbrain.nnet.loss.transducer_loss")
"""Where it lives, and where it lived before 1.1."""


def load() -> Exact:
    """`TransducerLoss` by utterance, its division by the frames undone."""
    home = next(name for name in _HOMES if _exists(name))
    compute = import_module(home).TransducerLoss(blank=BLANK, reduction="none")

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        by_frame = compute(logits, labels.targets, labels.frames, labels.labels)
        return _undivided(by_frame, labels.frames)

    return loss


def _undivided(by_frame: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
    """The loss times its frames. Its gradient was never divided, so the factor must not reach that."""
    return by_frame + by_frame.detach() * (frames - 1)


def _exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
