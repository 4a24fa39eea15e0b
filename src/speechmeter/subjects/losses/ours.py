"""Our own losses, as implementations among others. Imports torch."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Joint, Labels, Pruned, Sides
from speechmeter.transducer import (
    joint_rnnt_loss,
    prune_ranges,
    pruned_joint_rnnt_loss,
    pruned_rnnt_loss,
    rnnt_loss,
    simple_rnnt_loss,
    take_states,
)
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


def in_place() -> Exact:
    """The exact loss over the logits, which trusts lengths and targets: nothing waits for the GPU."""

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        losses: torch.Tensor = rnnt_loss(
            logits, *_of(labels), blank=BLANK, reduction="none", in_place=True, check=False
        )
        return losses

    return loss


def joint() -> Joint:
    """The exact loss with its joiner, which trusts lengths and targets."""

    def loss(sides: Sides, labels: Labels, ranges: Any, states: int) -> torch.Tensor:
        losses: torch.Tensor = joint_rnnt_loss(*sides, *_of(labels), blank=BLANK, reduction="none", check=False)
        return losses

    return Joint(loss=loss)


def pruned_joint() -> Joint:
    """The pruned loss with its joiner, which trusts lengths and targets."""

    def loss(sides: Sides, labels: Labels, ranges: Any, states: int) -> torch.Tensor:
        targets, *lengths = _of(labels)
        losses: torch.Tensor = pruned_joint_rnnt_loss(
            *sides, targets, ranges, *lengths, states, blank=BLANK, reduction="none", check=False
        )
        return losses

    return Joint(loss=loss, ranges=partial(_ranges, check=False))


def pruned() -> Pruned:
    """The pruned loss: smoothed simple loss, ranges, joiner, loss."""
    return Pruned(ranges=_ranges, join=_join, loss=_pruned_loss)


def _exact(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
    losses: torch.Tensor = rnnt_loss(logits, *_of(labels), blank=BLANK, reduction="none")
    return losses


def _of(labels: Labels) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return labels.targets, labels.frames, labels.labels


def _ranges(
    encoder: torch.Tensor, predictor: torch.Tensor, labels: Labels, states: int, check: bool = True
) -> tuple[Any, Any]:
    simple = simple_rnnt_loss(
        encoder,
        predictor,
        *_of(labels),
        blank=BLANK,
        predictor_only=PREDICTOR_ONLY,
        reduction="none",
        check=check,
    )
    return prune_ranges(simple, labels.frames, labels.labels, states=states, check=check), simple


def _join(encoder: torch.Tensor, predictor: torch.Tensor, ranges: Any, states: int) -> torch.Tensor:
    return encoder.unsqueeze(2) + take_states(predictor, ranges, states=states)


def _pruned_loss(logits: torch.Tensor, labels: Labels, ranges: Any) -> torch.Tensor:
    return pruned_rnnt_loss(logits, labels.targets, ranges, labels.frames, labels.labels, blank=BLANK, reduction="none")
