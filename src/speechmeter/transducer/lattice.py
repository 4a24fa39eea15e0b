"""The lattice in plain torch, on any device: all cells of an anti-diagonal at once, in float64.

Cells hold log-probabilities of shape (B, T, U + 1): of blank, which leads from (t, u) to (t + 1, u), and of the next
label, which leads to (t, u + 1). A cell outside its utterance holds -inf, as does the label of a complete prefix.
An utterance ends one blank after its last cell, in the node (frames, labels).
"""

from __future__ import annotations

import torch

from speechmeter.transducer.checks import Sizes


class Diagonals:
    """Cells laid out by n = t + u, so that one step of the recursion is one row of this."""

    def __init__(self, cells: torch.Tensor) -> None:
        batch, frames, states = cells.shape
        self.rows = cells.new_full((batch, frames + states, states), -torch.inf)
        self.as_cells(self.rows, frames).copy_(cells)

    @staticmethod
    def as_cells(rows: torch.Tensor, frames: int) -> torch.Tensor:
        """Return the view of contiguous diagonals that is indexed by (b, t, u)."""
        batch, count, states = rows.shape
        # One frame on is one row down; one label on is one row down and one column to the right.
        return rows.as_strided((batch, frames, states), (count * states, states, states + 1))


def log_likelihood(blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Return the log-probability of each utterance's labels, float64 of shape (B,); -inf where none fits."""
    alpha = _alpha(Diagonals(blank).rows, Diagonals(emit).rows)
    return _at_end(alpha, sizes)


def posteriors(
    blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the log-likelihood, and how probable it is that an alignment leaves each cell by blank and by its label.

    Both posteriors have the shape of the cells; they are 0 outside the utterance, and where no alignment is possible.
    """
    by_blank, by_label = Diagonals(blank).rows, Diagonals(emit).rows
    alpha = _alpha(by_blank, by_label)
    likelihood = _at_end(alpha, sizes)
    start = alpha - torch.where(likelihood.isinf(), 0.0, likelihood).view(-1, 1, 1)
    del alpha
    beta = _beta(by_blank, by_label, sizes)
    blank_use = by_blank.add_(start)
    blank_use[:, :-1] += beta[:, 1:]
    label_use = by_label.add_(start)
    label_use[:, :-1, :-1] += beta[:, 1:, 1:]
    frames = blank.shape[1]
    used = [Diagonals.as_cells(use, frames).exp() for use in (blank_use, label_use)]
    return likelihood, used[0], used[1]


def _alpha(by_blank: torch.Tensor, by_label: torch.Tensor) -> torch.Tensor:
    """Return log α by diagonals; the node after the last cell holds the likelihood."""
    alpha = torch.full_like(by_blank, -torch.inf)
    alpha[:, 0, 0] = 0.0
    for n in range(1, alpha.shape[1]):
        before, now = alpha[:, n - 1], alpha[:, n]
        torch.add(before, by_blank[:, n - 1], out=now)
        moved = before[:, :-1] + by_label[:, n - 1, :-1]
        now[:, 1:] = torch.logaddexp(now[:, 1:], moved)
    return alpha


def _beta(by_blank: torch.Tensor, by_label: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Return log β by diagonals: from each cell to the end of its utterance."""
    beta = torch.full_like(by_blank, -torch.inf)
    ends: dict[int, list[int]] = {}
    for row, (frames, labels) in enumerate(zip(sizes.frames, sizes.labels, strict=True)):
        ends.setdefault(frames + labels, []).append(row)
    for n in range(beta.shape[1] - 1, -1, -1):
        now = beta[:, n]
        if n + 1 < beta.shape[1]:
            after = beta[:, n + 1]
            torch.add(after, by_blank[:, n], out=now)
            moved = after[:, 1:] + by_label[:, n, :-1]
            now[:, :-1] = torch.logaddexp(now[:, :-1], moved)
        for row in ends.get(n, ()):
            now[row, sizes.labels[row]] = 0.0
    return beta


def _at_end(alpha: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    labels = sizes.labels_there.long()
    ends = sizes.frames_there.long() + labels
    return alpha[torch.arange(len(alpha), device=alpha.device), ends, labels]
