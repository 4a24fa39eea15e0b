"""The truth that the losses of transducers that skip frames are held against: the definition, node by node, in float64.

One utterance at a time, a Python loop over the arcs that leave each node, and torch's own differentiation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

Arc = tuple[int, int, list[tuple[torch.Tensor, ...]]]
"""How many frames and labels it moves by, and its log-probability in each node [t][u]."""


def tdt_oracle(
    logits: torch.Tensor,
    duration_logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    durations: Sequence[int] = (0, 1, 2, 3, 4),
    blank: int = -1,
    *,
    sigma: float = 0.0,
) -> torch.Tensor:
    """Return the losses (B,) of `tdt_loss` in float64, one loop a node: slow."""

    def of_one(b: int, frames: int, labels: int) -> torch.Tensor:
        tokens = logits[b, :frames, : labels + 1].double().log_softmax(-1) - sigma
        waits = duration_logits[b, :frames, : labels + 1].double().log_softmax(-1)
        by_label = _of_labels(tokens, targets[b, :labels])
        steps = list(enumerate(durations))
        arcs = [(step, 0, _cells(tokens[..., blank] + waits[..., k])) for k, step in steps if step]
        arcs += [(step, 1, _cells(by_label + waits[:, :-1, k])) for k, step in steps]
        return _loss(frames, labels, arcs, tokens)

    return _by_utterance(of_one, logit_lengths, target_lengths)


def multi_blank_oracle(
    logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    big_blanks: Mapping[int, int],
    blank: int = -1,
    *,
    sigma: float = 0.0,
) -> torch.Tensor:
    """Return the losses (B,) of `multi_blank_loss` in float64, one loop a node: slow."""

    def of_one(b: int, frames: int, labels: int) -> torch.Tensor:
        tokens = logits[b, :frames, : labels + 1].double().log_softmax(-1) - sigma
        arcs = [(step, 0, _cells(tokens[..., one])) for one, step in {blank: 1, **big_blanks}.items()]
        arcs.append((0, 1, _cells(_of_labels(tokens, targets[b, :labels]))))
        return _loss(frames, labels, arcs, tokens)

    return _by_utterance(of_one, logit_lengths, target_lengths)


def _by_utterance(
    of_one: Callable[[int, int, int], torch.Tensor], logit_lengths: torch.Tensor, target_lengths: torch.Tensor
) -> torch.Tensor:
    lengths = zip(logit_lengths.tolist(), target_lengths.tolist(), strict=True)
    return torch.stack([of_one(b, frames, labels) for b, (frames, labels) in enumerate(lengths)])


def _of_labels(tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of the next label in each node, (T, U)."""
    ids = targets.long().view(1, -1, 1).expand(len(tokens), -1, 1)
    return tokens[:, :-1].gather(2, ids).squeeze(2)


def _cells(scores: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
    return [frame.unbind(0) for frame in scores.unbind(0)]


def _loss(frames: int, labels: int, arcs: list[Arc], like: torch.Tensor) -> torch.Tensor:
    """Return -log of the sum over all ways from (0, 0) to (frames, labels); the last arc moves by no label."""
    reached: dict[tuple[int, int], list[torch.Tensor]] = {(0, 0): [like.new_zeros(())]}
    for t in range(frames):
        for u in range(labels + 1):
            if (t, u) not in reached:
                continue
            here = torch.stack(reached[t, u]).logsumexp(0)
            for step, label, scores in arcs:
                to = t + step, u + label
                if to[1] <= labels and (to[0] < frames or (to == (frames, labels) and not label)):
                    reached.setdefault(to, []).append(here + scores[t][u])
    ways = reached.get((frames, labels))
    return like.new_full((), torch.inf) if ways is None else -torch.stack(ways).logsumexp(0)
