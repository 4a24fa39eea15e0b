"""The exact transducer loss, with the signature and the meaning that torchaudio gave it."""

from __future__ import annotations

import torch

from speechmeter.transducer.checks import (
    check_batch,
    check_blank,
    check_reduction,
    check_scores,
    next_labels,
    reduce,
)
from speechmeter.transducer.differentiable import LossOfRows
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

    `logits` (B, T, U + 1, V) of any float kind, `targets` (B, U), lengths (B,), int32 or int64. `blank` is an id, a
    negative one counts from the end: the default is the last, as in torchaudio. A positive `clamp` bounds the gradient
    of each utterance's loss with respect to the logits. `reduction` is "mean" over the batch, "sum" or "none". With
    `fused_log_softmax=False` the logits are taken for log-probabilities: give it only what went through a log-softmax.

    Padding is never read, and its gradient is exactly 0. The loss has the dtype of the logits, at least float32. It is
    inf, with a gradient of 0, where every alignment has probability 0. Raises a `TransducerInputError` on what cannot
    be meant.
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
    losses: torch.Tensor = LossOfRows.apply(logits, rows, sizes, float(clamp), None)
    return reduce(losses, reduction, logits)
