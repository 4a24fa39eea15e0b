"""The lattice whose arcs may skip frames, in plain torch: all cells of an anti-diagonal at once, in float64.

A blank of duration d leads from (t, u) to (t + d, u), with d at least 1, and a label of duration d to (t + d, u + 1),
with d at least 0. Arcs are log-probabilities of shape (B, T, U + 1, durations); one that leads out of its utterance
holds -inf. An utterance ends in the node (frames, labels), which only a blank reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.lattice import Diagonals


@dataclass(frozen=True, kw_only=True)
class Durations:
    """The durations of blanks and of labels, in the order of the arcs."""

    blank: tuple[int, ...]
    label: tuple[int, ...]


def inside(blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes, durations: Durations) -> tuple[torch.Tensor, ...]:
    """Return the arcs with -inf where they lead out of their utterance, whatever stands there."""
    device = blank.device
    frames, labels = (lengths.long().view(-1, 1, 1, 1) for lengths in (sizes.frames_there, sizes.labels_there))
    t = torch.arange(blank.shape[1], device=device).view(1, -1, 1, 1)
    u = torch.arange(blank.shape[2], device=device).view(1, 1, -1, 1)
    by_blank, by_label = (t + torch.tensor(steps, device=device) for steps in (durations.blank, durations.label))
    stays = (u <= labels) & ((by_blank < frames) | ((by_blank == frames) & (u == labels)))
    moves = (u < labels) & (by_label < frames)
    return torch.where(stays, blank, -torch.inf), torch.where(moves, emit, -torch.inf)


def posteriors(
    blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes, durations: Durations
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the log-likelihood, and how probable it is that an alignment takes each arc; 0 where none is possible."""
    by_blank, by_label = ([Diagonals(arc).rows for arc in arcs.unbind(3)] for arcs in (blank, emit))
    blank_arcs = list(zip(durations.blank, by_blank, strict=True))
    label_arcs = list(zip(durations.label, by_label, strict=True))
    alpha = _alpha(blank_arcs, label_arcs)
    utterance = torch.arange(len(alpha), device=alpha.device)
    labels = sizes.labels_there.long()
    end = sizes.frames_there.long() + labels
    likelihood = alpha[utterance, end, labels]
    start = alpha - torch.where(likelihood.isinf(), 0.0, likelihood).view(-1, 1, 1)
    beta = torch.full_like(alpha, -torch.inf)
    beta[utterance, end, labels] = 0.0
    _fill_beta(beta, blank_arcs, label_arcs)
    frames = blank.shape[1]

    def use(arc: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        reached = torch.full_like(arc, -torch.inf)
        reached[:, : after.shape[1], : after.shape[2]] = after
        return Diagonals.as_cells(arc + start + reached, frames).exp()

    blank_use = [use(arc, beta[:, step:]) for step, arc in blank_arcs]
    label_use = [use(arc, beta[:, step + 1 :, 1:]) for step, arc in label_arcs]
    return likelihood, torch.stack(blank_use, 3), torch.stack(label_use, 3)


Arcs = Sequence[tuple[int, torch.Tensor]]
"""Durations, and log-probabilities by diagonals."""


def _alpha(blank_arcs: Arcs, label_arcs: Arcs) -> torch.Tensor:
    alpha = torch.full_like(blank_arcs[0][1], -torch.inf)
    alpha[:, 0, 0] = 0.0
    for n in range(1, alpha.shape[1]):
        now = alpha[:, n]
        for step, arc in blank_arcs:
            if n >= step:
                now.copy_(torch.logaddexp(now, alpha[:, n - step] + arc[:, n - step]))
        for step, arc in label_arcs:
            if n > step:
                before = n - step - 1
                moved = alpha[:, before, :-1] + arc[:, before, :-1]
                now[:, 1:] = torch.logaddexp(now[:, 1:], moved)
    return alpha


def _fill_beta(beta: torch.Tensor, blank_arcs: Arcs, label_arcs: Arcs) -> None:
    count = beta.shape[1]
    for n in range(count - 1, -1, -1):
        now = beta[:, n]
        for step, arc in blank_arcs:
            if n + step < count:
                now.copy_(torch.logaddexp(now, beta[:, n + step] + arc[:, n]))
        for step, arc in label_arcs:
            if n + step + 1 < count:
                moved = beta[:, n + step + 1, 1:] + arc[:, n, :-1]
                now[:, :-1] = torch.logaddexp(now[:, :-1], moved)
