"""The two functions that join the lattice to torch's differentiation: losses of rows, and losses of cells."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.engines import engine_for, engine_for_cells
from speechmeter.transducer.errors import OptionError
from speechmeter.transducer.rows import Rows


@dataclass(frozen=True, kw_only=True)
class Options:
    """What changes a loss or its gradient beside the scores, see `rnnt_loss`; and the `kind` of the losses."""

    clamp: float = -1.0
    fastemit: float = 0.0
    delay_penalty: float = 0.0
    in_place: bool = False
    kind: torch.dtype = torch.float64

    def __post_init__(self) -> None:
        for name in ("clamp", "fastemit", "delay_penalty"):
            if not isfinite(getattr(self, name)):
                raise OptionError(f"{name} is {getattr(self, name)}; give a finite number")
        if self.fastemit < 0:
            raise OptionError(f"fastemit is {self.fastemit}; give 0 or more")


class LossOfRows(torch.autograd.Function):  # type: ignore[misc]
    """Losses of logits (B, T, S, V), or packed (N, V). Keeps posteriors, nothing of the logits' size."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, rows: Rows, options: Options) -> torch.Tensor:
        """Return the loss of each utterance."""
        engine = engine_for(logits)
        blank, emit = (_spread(cells, rows) for cells in engine.cell_scores(logits, rows))
        delay(emit, rows.sizes, options)
        if not ctx.needs_input_grad[0]:
            return losses_of(engine.log_likelihood(blank, emit, rows.sizes), options)
        likelihood, *uses = engine.posteriors(blank, emit, rows.sizes)
        if rows.state_of is not None:
            uses = [use.gather(2, rows.state_of) for use in uses]
        if options.fastemit:
            uses[1] = uses[1] * (1.0 + options.fastemit)
        ctx.save_for_backward(logits, *uses)
        ctx.rows, ctx.options, ctx.engine = rows, options, engine
        return losses_of(likelihood, options)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, weights: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return the gradient with respect to the logits."""
        logits, *uses = ctx.saved_tensors
        gradient = ctx.engine.gradient(logits, ctx.rows, uses, weights, ctx.options.clamp, ctx.options.in_place)
        return gradient, None, None


class LossOfCells(torch.autograd.Function):  # type: ignore[misc]
    """Losses in float64 of log-probabilities of blank and label (B, T, U + 1), and the posteriors of both."""

    @staticmethod
    def forward(
        ctx: Any, blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the loss of each utterance, and the probabilities of leaving each cell by blank and by label."""
        likelihood, *uses = engine_for_cells(blank).posteriors(blank.contiguous(), emit.contiguous(), sizes)
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


def losses_of(likelihood: torch.Tensor, options: Options) -> torch.Tensor:
    """Return -likelihood in the kind that is asked for, by one operation."""
    return torch.mul(likelihood, -1.0, out=torch.empty_like(likelihood, dtype=options.kind))


def delay(emit: torch.Tensor, sizes: Sizes, options: Options) -> None:
    """Add the delay penalty to the log-probabilities of labels (B, T, …): what is emitted early gains by it."""
    if not options.delay_penalty:
        return
    middle = (sizes.frames_there.double() - 1).div(2).view(-1, 1, 1)
    t = torch.arange(sizes.padded_frames, device=emit.device).view(1, -1, 1)
    emit += options.delay_penalty * (middle - t)


def _spread(cells: torch.Tensor, rows: Rows) -> torch.Tensor:
    """Return the cells at their states in the whole lattice, -inf elsewhere."""
    if rows.state_of is None:
        return cells
    whole = cells.new_full((*cells.shape[:2], rows.sizes.padded_labels + 1), -torch.inf)
    return whole.scatter_(2, rows.state_of, cells)
