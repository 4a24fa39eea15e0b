"""The exact transducer loss, with the signature and the meaning that torchaudio gave it."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from speechmeter.transducer.checks import (
    Sizes,
    check_batch,
    check_blank,
    check_reduction,
    check_scores,
    next_labels,
    reduce,
)
from speechmeter.transducer.engines import engine_for
from speechmeter.transducer.rows import Rows


def rnnt_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = -1,
    clamp: float = -1,
    reduction: str = "mean",
    fused_log_softmax: bool = True,
) -> torch.Tensor:
    """Return -log P(targets | logits), summed over all alignments.

    `logits` (B, T, U + 1, V) of any float kind, `targets` (B, U), lengths (B,), int32 or int64. `blank` is an id, negative
    from the end: the default is the last one, as in torchaudio. A positive `clamp` bounds the gradient of each utterance's
    loss with respect to the logits. `reduction` is "mean" over the batch, "sum" or "none". With `fused_log_softmax=False`
    the logits are taken for log-probabilities as they are; give it only what went through a log-softmax.

    Padding is never read, and its gradient is exactly 0. The loss has the dtype of the logits, at least float32. It is inf,
    with a gradient of 0, where every alignment has probability 0. Raises a `TransducerInputError` on what cannot be meant.
    """
    check_reduction(reduction)
    check_scores("logits", logits, ("B", "T", "U + 1", "V"))
    batch, frames, states, vocabulary = logits.shape
    sizes = check_batch(
        targets, logit_lengths, target_lengths, batch=batch, padded_frames=frames, padded_labels=states - 1
    )
    rows = Rows(
        labels=next_labels(targets, sizes, vocabulary, logits.device).unsqueeze(1).expand(-1, frames, -1),
        frames=sizes.frames,
        states=tuple(count + 1 for count in sizes.labels),
        blank=check_blank(blank, vocabulary),
        normalise=fused_log_softmax,
    )
    losses: torch.Tensor = _ExactLoss.apply(logits, rows, sizes, float(clamp))
    return reduce(losses, reduction, logits)


class _ExactLoss(torch.autograd.Function):
    """Losses in float64. The posteriors are kept for the backward pass; α, β and the log-softmax are not."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, rows: Rows, sizes: Sizes, clamp: float) -> torch.Tensor:
        engine = engine_for(logits)
        blank, emit = engine.cell_scores(logits, rows)
        if not ctx.needs_input_grad[0]:
            return -engine.log_likelihood(blank, emit, sizes)
        likelihood, blank_use, label_use = engine.posteriors(blank, emit, sizes)
        ctx.save_for_backward(logits, blank_use, label_use)
        ctx.rows, ctx.clamp, ctx.engine = rows, clamp, engine
        return -likelihood

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, weights: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        logits, blank_use, label_use = ctx.saved_tensors
        return ctx.engine.gradient(logits, ctx.rows, blank_use, label_use, weights, ctx.clamp), None, None, None
