"""The truth that the other paths are held against: the definition, cell by cell, in float64."""

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


def oracle_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = -1,
    reduction: str = "mean",
    fused_log_softmax: bool = True,
) -> torch.Tensor:
    """Return the transducer loss in float64, with the arguments of `rnnt_loss`.

    A Python loop over the cells (t, u), and torch's own differentiation for the gradient: clear and slow. A batch of
    400 frames and 100 labels takes seconds, and is copied to float64. Give float64 logits to get a float64 gradient.
    """
    check_reduction(reduction)
    check_scores("logits", logits, ("B", "T", "U + 1", "V"))
    batch, frames, states, vocabulary = logits.shape
    sizes = check_batch(
        targets,
        logit_lengths,
        target_lengths,
        scores=logits,
        padded_frames=frames,
        padded_labels=states - 1,
        vocabulary=vocabulary,
    )
    blank = check_blank(blank, vocabulary)
    labels = next_labels(targets, sizes)

    t = torch.arange(frames, device=logits.device).view(1, -1, 1)
    u = torch.arange(states, device=logits.device)
    last_t = sizes.frames_there.long() - 1
    last_u = sizes.labels_there.long()
    real = (t <= last_t.view(-1, 1, 1)) & (u <= last_u.view(-1, 1, 1))
    # Padding is replaced before it is used: a NaN there must reach neither loss nor gradient.
    scores = torch.where(real.unsqueeze(-1), logits.double(), 0.0)
    if fused_log_softmax:
        scores = scores.log_softmax(-1)
    emitted = labels.clamp(min=0).view(batch, 1, states, 1).expand(-1, frames, -1, -1)
    alpha = _alpha(_cells(scores[..., blank]), _cells(scores.gather(-1, emitted).squeeze(-1)))

    utterance = torch.arange(batch, device=logits.device)
    losses = -(alpha[utterance, last_t, last_u] + scores[utterance, last_t, last_u, blank])
    return reduce(losses, reduction, losses)


def _cells(scores: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
    """Return the scores as cells[t][u], each a vector over the batch."""
    return [frame.unbind(1) for frame in scores.unbind(1)]


def _alpha(blank: list[tuple[torch.Tensor, ...]], emit: list[tuple[torch.Tensor, ...]]) -> torch.Tensor:
    """Return log α(t, u) of shape (B, T, U + 1): of being in frame t with u labels emitted."""
    alpha: list[list[torch.Tensor]] = []
    for t in range(len(blank)):
        row: list[torch.Tensor] = []
        for u in range(len(blank[t])):
            by_blank = alpha[t - 1][u] + blank[t - 1][u] if t else None
            by_label = row[u - 1] + emit[t][u - 1] if u else None
            row.append(_either(by_blank, by_label, like=blank[t][u]))
        alpha.append(row)
    return torch.stack([torch.stack(row, -1) for row in alpha], 1)


def _either(first: torch.Tensor | None, second: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
    if first is None:
        return torch.zeros_like(like) if second is None else second
    return first if second is None else torch.logaddexp(first, second)
