"""Our own losses, as implementations among others. Imports torch."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Joint, Labels, Pruned, Sides
from speechmeter.subjects.losses.known import DURATIONS
from speechmeter.subjects.losses.truths import big_blanks_of
from speechmeter.transducer import (
    joint_rnnt_loss,
    multi_blank_loss,
    prune_ranges,
    pruned_joint_rnnt_loss,
    pruned_rnnt_loss,
    rnnt_loss,
    simple_rnnt_loss,
    take_states,
    tdt_loss,
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
    """The exact loss over the logits. Lengths and targets are not checked, so that nothing waits for the GPU."""
    return partial(_exact, in_place=True, check=False)


def joint() -> Joint:
    """The exact loss with its joiner. Lengths and targets are not checked."""

    def loss(sides: Sides, labels: Labels, ranges: Any, states: int) -> torch.Tensor:
        return joint_rnnt_loss(*sides, *labels.arguments, blank=BLANK, reduction="none", check=False)

    return Joint(loss=loss)


def pruned_joint() -> Joint:
    """The pruned loss with its joiner. Lengths and targets are not checked."""

    def loss(sides: Sides, labels: Labels, ranges: Any, states: int) -> torch.Tensor:
        targets, *lengths = labels.arguments
        return pruned_joint_rnnt_loss(
            *sides, targets, ranges, *lengths, states, blank=BLANK, reduction="none", check=False
        )

    return Joint(loss=loss, ranges=partial(_ranges, check=False))


def tdt() -> Exact:
    """The token-and-duration loss; the last outputs are those of the durations."""

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        tokens, waits = logits.split([logits.shape[-1] - len(DURATIONS), len(DURATIONS)], -1)
        return tdt_loss(
            tokens.contiguous(), waits, *labels.arguments, durations=DURATIONS, blank=BLANK, reduction="none"
        )

    return loss


def multi_blank() -> Exact:
    """The multi-blank loss; the last ids are the big blanks."""

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        return multi_blank_loss(
            logits, *labels.arguments, big_blanks_of(logits.shape[-1]), blank=BLANK, reduction="none"
        )

    return loss


def pruned() -> Pruned:
    """The pruned loss: smoothed simple loss, ranges, joiner, loss."""

    def join(encoder: torch.Tensor, predictor: torch.Tensor, ranges: Any, states: int) -> torch.Tensor:
        return encoder.unsqueeze(2) + take_states(predictor, ranges, states=states)

    def loss(logits: torch.Tensor, labels: Labels, ranges: Any) -> torch.Tensor:
        targets, frames, counts = labels.arguments
        return pruned_rnnt_loss(logits, targets, ranges, frames, counts, blank=BLANK, reduction="none")

    return Pruned(ranges=_ranges, join=join, loss=loss)


def _exact(logits: torch.Tensor, labels: Labels, **how: bool) -> torch.Tensor:
    return rnnt_loss(logits, *labels.arguments, blank=BLANK, reduction="none", **how)


def _ranges(
    encoder: torch.Tensor, predictor: torch.Tensor, labels: Labels, states: int, check: bool = True
) -> tuple[Any, Any]:
    simple = simple_rnnt_loss(
        encoder, predictor, *labels.arguments, blank=BLANK, predictor_only=PREDICTOR_ONLY, reduction="none", check=check
    )
    return prune_ranges(simple, labels.frames, labels.labels, states=states, check=check), simple
