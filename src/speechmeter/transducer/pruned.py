"""The pruned loss: a few states of the lattice in each frame, chosen by the simple loss.

1. `simple_rnnt_loss` says where the alignments go.
2. `prune_ranges` chooses for each frame the first of `states` consecutive states, so that they hold as much of the
   alignments as possible and a path from the first cell to the last stays inside.
3. `take_states` selects the predictor's outputs for them; the joiner makes logits (B, T, S, V).
4. `pruned_rnnt_loss` sums over the alignments that stay inside: an upper bound of the exact loss of these logits, and
   equal to it when the ranges hold all states.
"""

from __future__ import annotations

import torch

from speechmeter.transducer.checks import (
    Sizes,
    check_batch,
    check_blank,
    check_lengths,
    check_reduction,
    check_scores,
    kind_of_losses,
    reduce,
)
from speechmeter.transducer.differentiable import LossOfRows, Options
from speechmeter.transducer.engines import engine_for_cells
from speechmeter.transducer.errors import DtypeError, RangeError, ShapeError
from speechmeter.transducer.rows import Rows
from speechmeter.transducer.simple import SimpleLoss


def prune_ranges(
    simple: SimpleLoss,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    states: int = 5,
    *,
    check: bool = True,
) -> torch.Tensor:
    """Return the first state of each frame's range, int64 of shape (B, T).

    A range holds min(states, U + 1) states. Starts at 0, never goes back, moves on by less than a range in each frame,
    and ends with the last label in range. Raises `RangeError` when an utterance has too few frames for that; without
    `check` nothing waits for a GPU, and such an utterance has a pruned loss of inf.
    """
    sizes = check_lengths(logit_lengths, target_lengths, cells=simple.blank_use, check=check)
    width = range_width(states, simple.blank_use.shape[2])
    if check:
        _check_room(sizes, width)
    if engine_for_cells(simple.blank_use).name == "triton":
        from speechmeter.transducer.fused import ranges

        return ranges.starts(simple.blank_use, simple.label_use, sizes, width)
    use = simple.blank_use + simple.label_use
    last = _last_starts(sizes, width)
    best = _best_starts(use, width, last)
    return _connect(best, sizes, width, last)


def take_states(predictor: torch.Tensor, starts: torch.Tensor, states: int = 5) -> torch.Tensor:
    """Return predictor[b, starts[b, t] + s] of shape (B, T, S, C), for `predictor` (B, U + 1, C).

    S is min(states, U + 1).
    """
    check_scores("predictor", predictor, ("B", "U + 1", "C"))
    width = range_width(states, predictor.shape[1])
    kept = states_of(starts, width, predictor.shape[1])
    utterance = torch.arange(len(predictor), device=predictor.device).view(-1, 1, 1)
    return predictor[utterance, kept]


def pruned_rnnt_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    starts: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = -1,
    clamp: float = -1,
    reduction: str = "mean",
    fused_log_softmax: bool = True,
    *,
    fastemit: float = 0.0,
    delay_penalty: float = 0.0,
    check: bool = True,
) -> torch.Tensor:
    """Return the loss over the alignments inside the ranges, for `logits` (B, T, S, V) of states starts[b, t] + s.

    The other arguments are those of `rnnt_loss`, and so is the treatment of padding.
    """
    check_reduction(reduction)
    check_scores("logits", logits, ("B", "T", "S", "V"))
    _, frames, width, vocabulary = logits.shape
    padded_labels = targets.shape[-1] if isinstance(targets, torch.Tensor) and targets.dim() else 0
    sizes = check_batch(
        targets,
        logit_lengths,
        target_lengths,
        scores=logits,
        padded_frames=frames,
        padded_labels=padded_labels,
        vocabulary=vocabulary,
        check=check,
    )
    if width > padded_labels + 1:
        raise ShapeError(
            f"logits have {width} states per frame, but {padded_labels} labels have {padded_labels + 1} states; "
            "give S = min(states, U + 1), as take_states does"
        )
    check_starts(starts, sizes, width, check)
    rows = Rows(
        targets=targets,
        sizes=sizes,
        width=width,
        blank=check_blank(blank, vocabulary),
        normalise=fused_log_softmax,
        state_of=states_of(starts.to(logits.device), width, padded_labels + 1),
    )
    kind = kind_of_losses(reduction, logits)
    options = Options(clamp=float(clamp), fastemit=fastemit, delay_penalty=delay_penalty, kind=kind)
    losses: torch.Tensor = LossOfRows.apply(logits, rows, options)
    return reduce(losses, reduction, logits)


def range_width(states: int, all_states: int) -> int:
    """Return how many states a range holds. Raises `RangeError` for what is no number of states."""
    if isinstance(states, bool) or not isinstance(states, int) or states < 1:
        raise RangeError(f"states is {states!r}; give the number of states per frame, at least 1")
    return min(states, all_states)


def states_of(starts: torch.Tensor, width: int, all_states: int) -> torch.Tensor:
    """Return the states of each range, (B, T, S); starts in the padding are brought inside."""
    offsets = torch.arange(width, device=starts.device)
    return starts.to(torch.int64).clamp(0, all_states - width).unsqueeze(-1) + offsets


def _best_starts(use: torch.Tensor, width: int, last: torch.Tensor) -> torch.Tensor:
    """Return for each frame the start whose range holds most of the alignments, at most `last`."""
    total = torch.nn.functional.pad(use.cumsum(2), (1, 0))
    held = total[..., width:] - total[..., :-width]
    start = torch.arange(held.shape[2], device=use.device)
    return held.masked_fill((start > last).unsqueeze(1), -1.0).argmax(2)


def _connect(best: torch.Tensor, sizes: Sizes, width: int, last: torch.Tensor) -> torch.Tensor:
    """Return the starts nearest to `best` from above and then from below that a path can follow."""
    t = torch.arange(best.shape[1], device=best.device)
    frames = sizes.frames_there.unsqueeze(1)
    step = width - 1
    needed = (last - (frames - 1 - t).clamp(min=0) * step).clamp(min=0)  # or the end is out of reach
    rising = torch.maximum(best.where(t < frames, last), needed).cummax(1).values
    rising[:, 0] = 0
    slack = rising - t * step
    return torch.minimum(slack.cummin(1).values + t * step, last)


def _check_room(sizes: Sizes, width: int) -> None:
    for row, (frames, labels) in enumerate(zip(sizes.frames, sizes.labels, strict=True)):
        least = min(1 + -(-labels // frames), labels + 1)
        if width < least:
            raise RangeError(
                f"utterance {row} has {labels} labels in {frames} frames: no path fits into {width} states per frame; "
                f"give states={least} or more"
            )


def check_starts(starts: torch.Tensor, sizes: Sizes, width: int, check: bool) -> None:
    """Refuse starts that are no starts of ranges; those that no path can follow only with `check`."""
    if not isinstance(starts, torch.Tensor) or starts.dtype not in (torch.int32, torch.int64):
        raise DtypeError("starts must be a tensor of int32 or int64, as prune_ranges returns")
    if tuple(starts.shape) != (sizes.batch, sizes.padded_frames):
        raise ShapeError(
            f"starts have shape {tuple(starts.shape)}; give one for each frame: ({sizes.batch}, {sizes.padded_frames})"
        )
    if check:
        _check_connected(starts.to(sizes.frames_there.device), sizes, width)


def _check_connected(starts: torch.Tensor, sizes: Sizes, width: int) -> None:
    # On the device of the starts, with one answer for the host: a loop here would cost more than the loss on a GPU.
    frames = sizes.frames_there.long().unsqueeze(1)
    t = torch.arange(sizes.padded_frames, device=starts.device)
    steps = starts.diff(dim=1)
    wrong = (((steps < 0) | (steps >= width)) & (t[1:] < frames)).any(1)
    wrong |= (starts[:, 0] != 0) | (starts.gather(1, frames - 1) != _last_starts(sizes, width)).squeeze(1)
    if bool(wrong.any()):
        raise RangeError(
            f"starts[{int(wrong.nonzero()[0])}] do not lead from state 0 to the last range in steps of 0 to "
            f"{width - 1}, which would cut alignments off; take them from prune_ranges with the same lengths and states"
        )


def _last_starts(sizes: Sizes, width: int) -> torch.Tensor:
    """Return the start (B, 1) of the range that ends with the last label."""
    return (sizes.labels_there + 1 - width).clamp(min=0).long().unsqueeze(1)
