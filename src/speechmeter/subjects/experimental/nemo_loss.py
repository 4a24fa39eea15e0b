"""NeMo's loss: the numba kernels that warprnnt_numba was taken from. Never run by us."""

from __future__ import annotations

from importlib import import_module

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Labels


def load() -> Exact:
    """`RNNTLossNumba` without fastemit and without clamping."""
    home = import_module("nemo.collections.asr.parts.numba.rnnt_loss")
    compute = home.RNNTLossNumba(blank=BLANK, reduction="none", fastemit_lambda=0.0, clamp=-1)

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        losses: torch.Tensor = compute(logits.contiguous(), labels.targets, labels.frames, labels.labels)
        return losses

    return loss
