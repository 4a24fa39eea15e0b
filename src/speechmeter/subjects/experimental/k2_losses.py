"""The losses of k2 and of fast_rnnt, which share their interface. Imports the one that is loaded. Never run by us."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Labels, Pruned
from speechmeter.subjects.losses.ours import PREDICTOR_ONLY


def k2() -> Exact:
    """`k2.rnnt_loss`."""
    return _exact("k2")


def fast_rnnt() -> Exact:
    """`fast_rnnt.rnnt_loss`."""
    return _exact("fast_rnnt")


def k2_pruned() -> Pruned:
    """`k2.rnnt_loss_smoothed` to `k2.rnnt_loss_pruned`."""
    return _pruned("k2")


def fast_rnnt_pruned() -> Pruned:
    """`fast_rnnt.rnnt_loss_smoothed` to `fast_rnnt.rnnt_loss_pruned`."""
    return _pruned("fast_rnnt")


def _exact(package: str) -> Exact:
    rnnt_loss = import_module(package).rnnt_loss

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        losses: torch.Tensor = rnnt_loss(
            logits=logits,
            symbols=labels.targets,
            termination_symbol=BLANK,
            boundary=_boundary(labels),
            reduction="none",
        )
        return losses

    return loss


def _pruned(package: str) -> Pruned:
    library = import_module(package)

    def ranges(encoder: torch.Tensor, predictor: torch.Tensor, labels: Labels, states: int) -> tuple[Any, Any]:
        simple, (px_grad, py_grad) = library.rnnt_loss_smoothed(
            lm=predictor,
            am=encoder,
            symbols=labels.targets,
            termination_symbol=BLANK,
            lm_only_scale=PREDICTOR_ONLY,
            am_only_scale=0.0,
            boundary=_boundary(labels),
            reduction="none",
            return_grad=True,
        )
        found = library.get_rnnt_prune_ranges(
            px_grad=px_grad, py_grad=py_grad, boundary=_boundary(labels), s_range=states
        )
        return found, simple

    def join(encoder: torch.Tensor, predictor: torch.Tensor, ranges: Any, states: int) -> torch.Tensor:
        from_encoder, from_predictor = library.do_rnnt_pruning(am=encoder, lm=predictor, ranges=ranges)
        joined: torch.Tensor = from_encoder + from_predictor
        return joined

    def loss(logits: torch.Tensor, labels: Labels, ranges: Any) -> torch.Tensor:
        losses: torch.Tensor = library.rnnt_loss_pruned(
            logits=logits,
            symbols=labels.targets,
            ranges=ranges,
            termination_symbol=BLANK,
            boundary=_boundary(labels),
            reduction="none",
        )
        return losses

    return Pruned(ranges=ranges, join=join, loss=loss)


def _boundary(labels: Labels) -> torch.Tensor:
    """[0, 0, labels, frames] of each utterance; without it both libraries take padding for speech."""
    first = torch.zeros_like(labels.labels)
    return torch.stack([first, first, labels.labels, labels.frames], dim=1)
