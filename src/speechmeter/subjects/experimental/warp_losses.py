"""warp-transducer and warp-rnnt, two libraries with similar names. Imports the one that is loaded. Never run by us."""

from __future__ import annotations

from importlib import import_module

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Labels


def warp_transducer() -> Exact:
    """`warprnnt_pytorch.rnnt_loss`, which makes log-probs itself where it needs them."""
    rnnt_loss = import_module("warprnnt_pytorch").rnnt_loss

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        losses: torch.Tensor = rnnt_loss(
            logits.contiguous(), labels.targets, labels.frames, labels.labels, blank=BLANK, reduction="none"
        )
        return losses

    return loss


def warp_rnnt() -> Exact:
    """`warp_rnnt.rnnt_loss`; the log-softmax it needs is part of the loss here."""
    rnnt_loss = import_module("warp_rnnt").rnnt_loss

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        losses: torch.Tensor = rnnt_loss(
            logits.log_softmax(-1), labels.targets, labels.frames, labels.labels, blank=BLANK, reduction="none"
        )
        return losses

    return loss
