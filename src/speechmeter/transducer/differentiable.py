"""The two places where the lattice meets torch's differentiation: losses of rows, and losses of cells."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.engines import engine_for
from speechmeter.transducer.rows import Rows


class LossOfRows(torch.autograd.Function):  # type: ignore[misc]
    """Losses in float64 of logits (B, T, S, V). For the backward pass it keeps posteriors, nothing of the logits' size.

    `places` (B, T, S) says which state of the lattice each row stands for; None where row s stands for state s.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, rows: Rows, sizes: Sizes, clamp: float, places: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the loss of each utterance."""
        engine = engine_for(logits)
        blank, emit = (_spread(cells, places, sizes) for cells in engine.cell_scores(logits, rows))
        if not ctx.needs_input_grad[0]:
            return -engine.log_likelihood(blank, emit, sizes)
        likelihood, *uses = engine.posteriors(blank, emit, sizes)
        if places is not None:
            uses = [use.gather(2, places) for use in uses]
        ctx.save_for_backward(logits, *uses)
        ctx.rows, ctx.clamp, ctx.engine = rows, clamp, engine
        return -likelihood

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, weights: torch.Tensor) -> tuple[torch.Tensor, None, None, None, None]:
        """Return the gradient with respect to the logits."""
        logits, blank_use, label_use = ctx.saved_tensors
        return ctx.engine.gradient(logits, ctx.rows, blank_use, label_use, weights, ctx.clamp), None, None, None, None


class LossOfCells(torch.autograd.Function):  # type: ignore[misc]
    """Losses in float64 of log-probabilities of blank and label (B, T, U + 1), and the posteriors of both."""

    @staticmethod
    def forward(
        ctx: Any, blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the loss of each utterance, and the probabilities of leaving each cell by blank and by label."""
        likelihood, *uses = engine_for(blank).posteriors(blank.contiguous(), emit.contiguous(), sizes)
        ctx.save_for_backward(*uses)
        ctx.mark_non_differentiable(*uses)
        return -likelihood, uses[0], uses[1]

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, weights: torch.Tensor, *_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return the gradients with respect to the cells."""
        blank_use, label_use = ctx.saved_tensors
        weights = weights.view(-1, 1, 1)
        return -blank_use * weights, -label_use * weights, None


def _spread(cells: torch.Tensor, places: torch.Tensor | None, sizes: Sizes) -> torch.Tensor:
    """Return the cells at their places in the whole lattice, -inf elsewhere."""
    if places is None:
        return cells
    whole = cells.new_full((*cells.shape[:2], sizes.padded_labels + 1), -torch.inf)
    return whole.scatter_(2, places, cells)
