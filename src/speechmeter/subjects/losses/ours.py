"""Our own losses, as implementations among others. Imports torch."""

from __future__ import annotations

from typing import Any

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Labels, Pruned
from speechmeter.transducer import prune_ranges, pruned_rnnt_loss, rnnt_loss, simple_rnnt_loss, take_states
from speechmeter.transducer.engines import TORCH, only

PREDICTOR_ONLY = 0.25
"""The share of smoothing of the original study; the encoder's is 0."""


def fastest() -> Exact:
    """The exact loss by whichever engine takes the logits."""
    return _exact


def plain_torch() -> Exact:
    """The exact loss by plain torch, whatever else is installed."""

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        with only(TORCH):
            return _exact(logits, labels)

    return loss


def pruned() -> Pruned:
    """The pruned loss: smoothed simple loss, ranges, joiner, loss."""
    return Pruned(ranges=_ranges, join=_join, loss=_pruned_loss)


def _exact(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
    return rnnt_loss(logits, labels.targets, labels.frames, labels.labels, blank=BLANK, reduction="none")


def _ranges(encoder: torch.Tensor, predictor: torch.Tensor, labels: Labels, states: int) -> tuple[Any, Any]:
    simple = simple_rnnt_loss(
        encoder,
        predictor,
        labels.targets,
        labels.frames,
        labels.labels,
        blank=BLANK,
        predictor_only=PREDICTOR_ONLY,
        reduction="none",
    )
    return prune_ranges(simple, labels.frames, labels.labels, states=states), simple


def _join(encoder: torch.Tensor, predictor: torch.Tensor, ranges: Any, states: int) -> torch.Tensor:
    return encoder.unsqueeze(2) + take_states(predictor, ranges, states=states)


def _pruned_loss(logits: torch.Tensor, labels: Labels, ranges: Any) -> torch.Tensor:
    return pruned_rnnt_loss(logits, labels.targets, ranges, labels.frames, labels.labels, blank=BLANK, reduction="none")
