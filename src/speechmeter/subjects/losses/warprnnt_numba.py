"""warprnnt_numba's loss. Imports it when it is loaded."""

from __future__ import annotations

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Labels
from speechmeter.subjects.losses.numba_cuda import lend_dropped_names


def load() -> Exact:
    """`RNNTLossNumba` without fastemit and without clamping; it takes logits on the CPU too."""
    lend_dropped_names()
    from warprnnt_numba import RNNTLossNumba

    compute = RNNTLossNumba(blank=BLANK, reduction="none", fastemit_lambda=0.0, clamp=-1)

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        losses: torch.Tensor = compute(logits.contiguous(), labels.targets, labels.frames, labels.labels)
        return losses

    return loss
