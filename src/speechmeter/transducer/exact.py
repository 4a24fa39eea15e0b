"""The exact transducer loss, with the signature and the meaning that torchaudio gave it."""

from __future__ import annotations

import torch

from speechmeter.transducer.checks import (
    Sizes,
    check_batch,
    check_blank,
    check_reduction,
    check_scores,
    kind_of_losses,
    reduce,
)
from speechmeter.transducer.differentiable import LossOfRows, Options
from speechmeter.transducer.engines import engine_for
from speechmeter.transducer.errors import ShapeError
from speechmeter.transducer.rows import Rows


@torch.compiler.disable  # type: ignore[untyped-decorator]
def rnnt_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = -1,
    clamp: float = -1,
    reduction: str = "mean",
    fused_log_softmax: bool = True,
    *,
    fastemit: float = 0.0,
    delay_penalty: float = 0.0,
    in_place: bool = False,
    check: bool = True,
) -> torch.Tensor:
    """Return -log P(targets | logits), summed over all alignments.

    `logits` (B, T, U + 1, V) of any float kind, `targets` (B, U), lengths (B,), int32 or int64. `blank` is an id, a
    negative one counts from the end: the default is the last, as in torchaudio. A positive `clamp` bounds the gradient
    of each utterance's loss with respect to the logits. `reduction` is "mean" over the batch, "sum" or "none". With
    `fused_log_softmax=False` the logits are taken for log-probabilities: give it only what went through a log-softmax.

    `fastemit` scales the gradient that reaches the logits through labels by 1 + fastemit; the loss that is returned
    does not change. `delay_penalty` adds delay_penalty · ((T - 1) / 2 - t) to the log-probability of a label in frame
    t, of the utterance's T. `in_place` allows the backward pass to write the gradient over the logits, which saves
    their size where a GPU computes. `check=False` trusts the values of lengths and targets, so that nothing waits for
    a GPU that holds them; wrong ones then give a wrong loss.

    Padding is never read, and its gradient is exactly 0. The loss has the dtype of the logits, at least float32. It is
    inf, with a gradient of 0, where every alignment has probability 0. Raises a `TransducerInputError` on what cannot
    be meant.
    """
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
        late=engine_for(logits).name == "triton",
    )
    rows = Rows(
        targets=targets,
        sizes=sizes,
        width=states,
        blank=check_blank(blank, vocabulary),
        normalise=fused_log_softmax,
    )
    options = Options(
        clamp=float(clamp),
        fastemit=fastemit,
        delay_penalty=delay_penalty,
        in_place=in_place,
        kind=kind_of_losses(reduction, logits),
    )
    losses: torch.Tensor = LossOfRows.apply(logits, rows, options)
    sizes.settle()
    return reduce(losses, reduction, logits)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def packed_rnnt_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = -1,
    clamp: float = -1,
    reduction: str = "mean",
    fused_log_softmax: bool = True,
    *,
    most_frames: int | None = None,
    fastemit: float = 0.0,
    delay_penalty: float = 0.0,
    in_place: bool = False,
    check: bool = True,
) -> torch.Tensor:
    """Return the loss of packed logits (N, V): the true cells alone, utterance after utterance, frame after frame.

    N is Σ T · (U + 1). `most_frames` is the longest utterance's number of frames or more; None reads it from the
    lengths, which waits for a GPU that holds them. The other arguments are those of `rnnt_loss`.
    """
    check_reduction(reduction)
    check_scores("logits", logits, ("N", "V"))
    frames = int(logit_lengths.max()) if most_frames is None else most_frames
    sizes = check_batch(
        targets,
        logit_lengths,
        target_lengths,
        scores=logits,
        padded_frames=frames,
        padded_labels=targets.shape[-1],
        vocabulary=logits.shape[-1],
        check=check,
    )
    if check:
        _check_count(logits, sizes)
    options = Options(
        clamp=float(clamp),
        fastemit=fastemit,
        delay_penalty=delay_penalty,
        in_place=in_place,
        kind=kind_of_losses(reduction, logits),
    )
    rows = Rows(
        targets=targets,
        sizes=sizes,
        width=sizes.padded_labels + 1,
        blank=check_blank(blank, logits.shape[-1]),
        normalise=fused_log_softmax,
        packed=engine_for(logits).name == "triton",
    )
    given = logits if rows.packed else _padded(logits, sizes)
    losses: torch.Tensor = LossOfRows.apply(given, rows, options)
    return reduce(losses, reduction, logits)


def _check_count(logits: torch.Tensor, sizes: Sizes) -> None:
    cells = sum(t * (u + 1) for t, u in zip(sizes.frames, sizes.labels, strict=True))
    if len(logits) != cells:
        raise ShapeError(
            f"logits hold {len(logits)} cells, but the lengths have {cells}; give T · (U + 1) rows for each utterance"
        )


def _padded(logits: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Return packed logits as (B, T, U + 1, V), padded with zeros."""
    counts = [t * (u + 1) for t, u in zip(sizes.frames, sizes.labels, strict=True)]
    padded = logits.new_zeros((sizes.batch, sizes.padded_frames, sizes.padded_labels + 1, logits.shape[-1]))
    for row, part in enumerate(logits.split(counts)):
        t, u = sizes.frames[row], sizes.labels[row]
        padded[row, :t, : u + 1] = part.view(t, u + 1, -1)
    return padded
