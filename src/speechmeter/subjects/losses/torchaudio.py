"""torchaudio's loss. Imports torchaudio when it is loaded."""

from __future__ import annotations

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Labels


def load() -> Exact:
    """`torchaudio.functional.rnnt_loss` with blank 0 and its own log-softmax."""
    from torchaudio.functional import rnnt_loss

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        losses: torch.Tensor = rnnt_loss(
            logits.contiguous(), labels.targets, labels.frames, labels.labels, blank=BLANK, reduction="none"
        )
        return losses

    return loss
