"""Losses of transducers that skip frames: token-and-duration (TDT), and multi-blank.

Both are sums over alignments as `rnnt_loss` is; only their arcs may be longer than a frame. An alignment ends with a
blank that leads to exactly the last frame's end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from speechmeter.transducer import arcs
from speechmeter.transducer.arcs import Durations
from speechmeter.transducer.checks import Sizes, check_batch, check_blank, check_reduction, check_scores, reduce
from speechmeter.transducer.engines import engine_for, engine_for_cells
from speechmeter.transducer.errors import LabelError, OptionError, ShapeError
from speechmeter.transducer.rows import Rows


@torch.compiler.disable  # type: ignore[untyped-decorator]
def tdt_loss(
    logits: torch.Tensor,
    duration_logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    durations: Sequence[int] = (0, 1, 2, 3, 4),
    blank: int = -1,
    reduction: str = "mean",
    *,
    sigma: float = 0.0,
    check: bool = True,
) -> torch.Tensor:
    """Return the token-and-duration loss: every token is emitted with a duration, which says where the next one starts.

    `logits` (B, T, U + 1, V) and `duration_logits` (B, T, U + 1, D) have a softmax each; D is the number of
    `durations`, which are different, and hold one of at least 1. A blank takes none of 0. `sigma` is taken off the
    log-probability of every token, as in training with under-normalised logits. The other arguments are those of
    `rnnt_loss`.
    """
    steps = _checked_durations(durations)
    check_scores("duration_logits", duration_logits, ("B", "T", "U + 1", "D"))
    if duration_logits.shape != (*logits.shape[:3], len(steps)):
        raise ShapeError(
            f"duration_logits have shape {tuple(duration_logits.shape)} for logits of shape {tuple(logits.shape)} and "
            f"{len(steps)} durations; give {(*logits.shape[:3], len(steps))}"
        )
    rows = _rows(logits, targets, logit_lengths, target_lengths, blank, reduction, check)
    by_blank, by_label = _TokenScores.apply(logits, rows, ())
    scores = torch.where(_real(rows.sizes).unsqueeze(3), duration_logits.double(), 0.0).log_softmax(3) - sigma
    waits = [index for index, step in enumerate(steps) if step > 0]
    kinds = Durations(blank=tuple(steps[index] for index in waits), label=steps)
    losses = _LossOfArcs.apply(by_blank + scores[..., waits], by_label + scores, rows.sizes, kinds)
    return reduce(losses, reduction, logits)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def multi_blank_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    big_blanks: Mapping[int, int],
    blank: int = -1,
    reduction: str = "mean",
    *,
    sigma: float = 0.0,
    check: bool = True,
) -> torch.Tensor:
    """Return the multi-blank loss: beside `blank`, which takes one frame, `big_blanks` take several.

    `big_blanks` are ids of `logits` (B, T, U + 1, V) and their durations, at least 2. `sigma` is taken off every
    log-probability, as in training with under-normalised logits. The other arguments are those of `rnnt_loss`.
    """
    rows = _rows(logits, targets, logit_lengths, target_lengths, blank, reduction, check)
    ids = tuple(check_blank(one, logits.shape[-1]) for one in big_blanks)
    if len({rows.blank, *ids}) <= len(ids):
        raise LabelError(f"big_blanks are {list(big_blanks)} but blank is {blank}; give each a different id")
    if any(isinstance(step, bool) or not isinstance(step, int) or step < 2 for step in big_blanks.values()):
        raise OptionError(f"big_blanks have durations {list(big_blanks.values())}; give whole numbers of at least 2")
    by_blank, by_label = _TokenScores.apply(logits, rows, ids)
    kinds = Durations(blank=(1, *big_blanks.values()), label=(0,))
    losses = _LossOfArcs.apply(by_blank - sigma, by_label - sigma, rows.sizes, kinds)
    return reduce(losses, reduction, logits)


class _TokenScores(torch.autograd.Function):  # type: ignore[misc]
    """Log-probabilities of blanks (B, T, U + 1, K) and of the label (B, T, U + 1, 1) from logits; 0 in the padding."""

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, rows: Rows, more_blanks: tuple[int, ...]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores in float64."""
        engine = engine_for(logits)
        blank, emit = engine.cell_scores(logits, rows)
        others = [engine.cell_scores(logits, replace(rows, blank=one))[0] for one in more_blanks]
        real = _real(rows.sizes).unsqueeze(3)
        u = torch.arange(rows.width, device=logits.device).view(1, 1, -1, 1)
        labelled = u < rows.sizes.labels_there.view(-1, 1, 1, 1)
        ctx.save_for_backward(logits)
        ctx.rows, ctx.more_blanks, ctx.engine = rows, more_blanks, engine
        blanks = torch.where(real, torch.stack([blank, *others], 3), 0.0)
        return blanks, torch.where(real & labelled, emit.unsqueeze(3), 0.0)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, of_blanks: torch.Tensor, of_label: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return the gradient with respect to the logits: each score's at its id, and of the normaliser at all."""
        (logits,) = ctx.saved_tensors
        rows: Rows = ctx.rows
        uses = -of_blanks.sum(3), -of_label.squeeze(3)
        ones = torch.ones(rows.sizes.batch, dtype=torch.float64, device=logits.device)
        found = ctx.engine.gradient(logits, rows, uses, ones, -1.0, False)
        for index, one in enumerate(ctx.more_blanks, 1):  # its share stands at the first blank
            found[..., one] += of_blanks[..., index].to(found.dtype)
            found[..., rows.blank] -= of_blanks[..., index].to(found.dtype)
        return found, None, None


class _LossOfArcs(torch.autograd.Function):  # type: ignore[misc]
    """Losses in float64 of the log-probabilities of arcs."""

    @staticmethod
    def forward(ctx: Any, blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes, durations: Durations) -> torch.Tensor:
        """Return the loss of each utterance."""
        blank, emit = (arc.contiguous() for arc in arcs.inside(blank, emit, sizes, durations))
        likelihood, *uses = engine_for_cells(blank).arc_posteriors(blank, emit, sizes, durations)
        ctx.save_for_backward(*uses)
        return -likelihood

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        """Return the gradients with respect to the arcs."""
        weights = weights.view(-1, 1, 1, 1)
        blank_use, label_use = ctx.saved_tensors
        return -blank_use * weights, -label_use * weights, None, None


def _rows(
    logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int,
    reduction: str,
    check: bool,
) -> Rows:
    check_reduction(reduction)
    check_scores("logits", logits, ("B", "T", "U + 1", "V"))
    _, frames, states, vocabulary = logits.shape
    sizes = check_batch(
        targets,
        logit_lengths,
        target_lengths,
        scores=logits,
        padded_frames=frames,
        padded_labels=states - 1,
        vocabulary=vocabulary,
        check=check,
    )
    return Rows(
        targets=targets, sizes=sizes, width=states, blank=check_blank(blank, vocabulary), normalise=True
    )  # fmt: skip


def _real(sizes: Sizes) -> torch.Tensor:
    """Return which cells (B, T, U + 1) are in their utterance."""
    device = sizes.frames_there.device
    t = torch.arange(sizes.padded_frames, device=device).view(1, -1, 1)
    u = torch.arange(sizes.padded_labels + 1, device=device)
    return (t < sizes.frames_there.view(-1, 1, 1)) & (u <= sizes.labels_there.view(-1, 1, 1))


def _checked_durations(durations: Sequence[int]) -> tuple[int, ...]:
    steps = tuple(durations)
    whole = all(isinstance(step, int) and not isinstance(step, bool) and step >= 0 for step in steps)
    if not whole or len(set(steps)) < len(steps) or not any(steps):
        raise OptionError(
            f"durations are {list(durations)}; give different whole numbers of at least 0, with one of at least 1"
        )
    return steps
