"""The rows over the vocabulary in plain torch, on any device: a few at a time, true cells only.

A row is logits[b, t, s]. The rows of utterance b are those with t below its frames and s below its states; all others
are padding, which is never read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch

from speechmeter.transducer.checks import Sizes, next_labels

# Scratch for one piece. One thread is fastest in its cache: 2 MB took 0.84 of the time of 16 MB (medians of 7). Several
# threads wait for each other after every operation: no matter on a quiet machine (2 MB as fast as 8 MB), but on a busy
# one 2 MB took up to three times as long as 8 MB (single readings). On a GPU, where this was not measured, a piece
# should keep the card busy. The share keeps the scratch small beside the logits everywhere.
ONE_THREAD_BYTES = 2 * 2**20
THREADS_BYTES = 8 * 2**20
GPU_BYTES = 64 * 2**20
LEAST_PIECES = 32

Cells = tuple[torch.Tensor, torch.Tensor]
"""Of blank and of the label, of shape (B, T, rows or states)."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Which rows are real, what each can emit, and how they are read.

    `width` is the rows of a frame, padding included. `state_of` (B, T, width) says the state of the lattice of each
    row; None where row s is state s. `packed` rows are the real ones alone, one after another, (N, V).
    """

    targets: torch.Tensor
    sizes: Sizes
    width: int
    blank: int
    normalise: bool
    state_of: torch.Tensor | None = None
    packed: bool = False

    @cached_property
    def labels(self) -> torch.Tensor:
        """The label that each row's cell can emit, int64 of shape (B, T, width); -1 for none."""
        labels = next_labels(self.targets, self.sizes).unsqueeze(1).expand(-1, self.sizes.padded_frames, -1)
        return labels if self.state_of is None else labels.gather(2, self.state_of)

    @cached_property
    def starts(self) -> torch.Tensor:
        """Where each utterance begins among packed rows, (B,); of others it means nothing."""
        if not self.packed:
            return self.sizes.frames_there
        rows = self.sizes.frames_there.long() * (self.sizes.labels_there.long() + 1)
        return rows.cumsum(0) - rows

    @property
    def frames(self) -> tuple[int, ...]:
        """The frames of each utterance that have rows."""
        return self.sizes.frames

    @cached_property
    def states(self) -> tuple[int, ...]:
        """The real rows of each frame, by utterance."""
        return tuple(min(self.width, count + 1) for count in self.sizes.labels)


def cell_scores(logits: torch.Tensor, rows: Rows) -> Cells:
    """Return the log-probabilities of blank and of the label, float64 of shape (B, T, S); -inf where there is none."""
    blank = torch.full(logits.shape[:3], -torch.inf, dtype=torch.float64, device=logits.device)
    emit = blank.clone()
    for piece in _pieces(logits, rows):
        scores = logits[piece]
        labels = rows.labels[piece]
        scale = _log_sum(scores) if rows.normalise else 0.0
        chosen = scores.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        blank[piece] = scores[..., rows.blank].double() - scale
        emit[piece] = torch.where(labels < 0, -torch.inf, chosen.double() - scale)
    return blank, emit


def gradient(
    logits: torch.Tensor, rows: Rows, uses: Cells, weights: torch.Tensor, clamp: float, in_place: bool
) -> torch.Tensor:
    """Return the gradient of Σ weights · losses with respect to the logits, in their dtype; exactly 0 in the padding.

    `uses` are the posteriors of the lattice, of blank and label. A positive `clamp` bounds the gradient of each loss.
    `in_place` allows to write over the logits, which is not done here.
    """
    blank_use, label_use = uses
    result = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    for utterance, (frames, states) in enumerate(zip(rows.frames, rows.states, strict=True)):
        result[utterance, frames:] = 0
        result[utterance, :, states:] = 0
    dtype = torch.promote_types(logits.dtype, torch.float32)
    for piece in _pieces(logits, rows):
        weight = weights[piece[0]] if clamp <= 0 else weights.new_ones(())
        weighted = blank_use[piece] * weight, label_use[piece] * weight
        part = result[piece]
        scratch = part if part.dtype == dtype else torch.empty(part.shape, dtype=dtype, device=part.device)
        _write_gradient(logits[piece], rows, rows.labels[piece], weighted, out=scratch)
        if clamp > 0:
            scratch.clamp_(-clamp, clamp).mul_(weights[piece[0]])
        if scratch is not part:
            part.copy_(scratch)
    return result


def _write_gradient(scores: torch.Tensor, rows: Rows, labels: torch.Tensor, uses: Cells, out: torch.Tensor) -> None:
    """Write softmax · (blank_use + label_use), less each at its own id; no softmax where rows are log-probs."""
    by_blank, by_label = uses
    if rows.normalise:
        torch.softmax(scores, -1, dtype=out.dtype, out=out)
        out *= (by_blank + by_label).to(out.dtype).unsqueeze(-1)
    else:
        out.zero_()
    out[..., rows.blank] -= by_blank.to(out.dtype)
    out.scatter_add_(-1, labels.clamp(min=0).unsqueeze(-1), -by_label.to(out.dtype).unsqueeze(-1))


def _log_sum(scores: torch.Tensor) -> torch.Tensor:
    """Return log Σ exp over each row in float64.

    The largest score is taken off before and added after in float64: at scores of thousands float32 would lose 1e-3.
    """
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    largest = scores.amax(-1, keepdim=True)
    total = (scores - largest).exp_().sum(-1)
    return largest.squeeze(-1).double() + total.double().log_()


def _pieces(logits: torch.Tensor, rows: Rows) -> Iterator[tuple[int, slice, slice]]:
    """Yield (utterance, frames, states): every real row once, as many frames as the scratch may hold."""
    limit = min(_piece_bytes(logits), logits.numel() * logits.element_size() // LEAST_PIECES)
    row_bytes = logits.shape[-1] * max(logits.element_size(), 4)
    for utterance, (frames, states) in enumerate(zip(rows.frames, rows.states, strict=True)):
        step = max(1, limit // (row_bytes * states))
        for start in range(0, frames, step):
            yield utterance, slice(start, min(start + step, frames)), slice(0, states)


def _piece_bytes(logits: torch.Tensor) -> int:
    if logits.device.type != "cpu":
        return GPU_BYTES
    return ONE_THREAD_BYTES if torch.get_num_threads() == 1 else THREADS_BYTES
