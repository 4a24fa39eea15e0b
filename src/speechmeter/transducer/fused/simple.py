"""The simple loss on a GPU, forward and backward as one step: few launches, where plain torch takes about fifty.

With exponents A = exp(a - top) and D = exp(d - top) of both sides, the normaliser's product is A · Dᵀ in float64, by
the library. Imports triton.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from speechmeter.transducer.checks import Sizes, next_labels
from speechmeter.transducer.differentiable import Options, losses_of
from speechmeter.transducer.fused import lattice
from speechmeter.transducer.fused.launching import Launch, next_power_of_2

LARGEST_VOCABULARY = 16_384
"""Ids that a program holds at once."""
TINY = torch.finfo(torch.float64).tiny
LEAST = tl.constexpr(TINY)


@triton.jit(do_not_specialize=["padded", "more"])
def _exponents(side, lengths, exponents, tops, totals, padded, more, size, BLOCK: tl.constexpr):
    """Program (i, b): exp(score - largest) of a row, the largest, and the sum; zeros in the padding."""
    i = tl.program_id(0)
    b = tl.program_id(1)
    row = b.to(tl.int64) * padded + i
    v = tl.arange(0, BLOCK)
    inside = (v < size) & (i < tl.load(lengths + b) + more)
    scores = tl.load(side + row * size + v, mask=inside, other=float("-inf")).to(tl.float64)
    top = tl.max(scores, 0)
    top = tl.where(top == float("-inf"), 0.0, top)
    value = tl.exp(scores - top)
    tl.store(exponents + row * size + v, value, mask=v < size)
    tl.store(tops + row, top)
    tl.store(totals + row, tl.maximum(tl.sum(value, 0), LEAST))  # of padding too something to divide by


@triton.jit(do_not_specialize=["padded_frames", "states", "blank"])
def _mix(
    encoder, predictor, product, tops, state_tops, state_totals, frames, counts, targets, by_blank, by_label,
    padded_frames, states, blank, size,
    JOINT: tl.constexpr, ALONE: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Program (t, b): log-probabilities of blank and label in the states of a frame, into the lattice."""
    t = tl.program_id(0)
    b = tl.program_id(1)
    count = tl.load(counts + b).to(tl.int32)
    if t < tl.load(frames + b):
        u = tl.arange(0, LANES)
        real = (u <= count) & (u < states)
        frame = b.to(tl.int64) * padded_frames + t
        state = b.to(tl.int64) * states + u
        held = tl.load(product + frame * states + u, mask=real, other=1.0)
        state_top = tl.load(state_tops + state, mask=real, other=0.0)
        scale = JOINT * (tl.log(tl.maximum(held, LEAST)) + tl.load(tops + frame) + state_top)
        if ALONE > 0:
            scale += ALONE * (state_top + tl.log(tl.load(state_totals + state, mask=real, other=1.0)))
        label = tl.load(
            targets + b.to(tl.int64) * (states - 1) + u, mask=real & (u < count) & (u < states - 1), other=-1
        )
        emits = (label >= 0) & (label < size)
        of_frame = tl.load(encoder + frame * size + blank).to(tl.float64)
        of_state = tl.load(predictor + state * size + blank, mask=real, other=0.0).to(tl.float64)
        at = (b.to(tl.int64) * (padded_frames + states) + t + u) * states + u  # by diagonals: see the lattice
        tl.store(by_blank + at, JOINT * of_frame + (JOINT + ALONE) * of_state - scale, mask=real)
        of_frame = tl.load(encoder + frame * size + label, mask=emits, other=0.0).to(tl.float64)
        of_state = tl.load(predictor + state * size + label, mask=emits, other=0.0).to(tl.float64)
        score = tl.where(emits, JOINT * of_frame + (JOINT + ALONE) * of_state - scale, float("-inf"))
        tl.store(by_label + at, score, mask=real)


@dataclass(frozen=True, kw_only=True)
class Simple:
    """A batch for the simple loss; `alone` is the share of the predictor's own log-probabilities."""

    targets: torch.Tensor
    sizes: Sizes
    blank: int
    alone: float
    options: Options


class LossOfAdded(torch.autograd.Function):  # type: ignore[misc]
    """Losses of encoder (B, T, V) and predictor (B, U + 1, V), and the posteriors of blank and label."""

    @staticmethod
    def forward(
        ctx: Any, encoder: torch.Tensor, predictor: torch.Tensor, simple: Simple
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the loss of each utterance, and the probabilities of leaving each cell by blank and by label."""
        sizes = simple.sizes
        encoder, predictor = encoder.detach().contiguous(), predictor.detach().contiguous()
        of_frames, tops, _ = _exponents_of(encoder, sizes.frames_there, 0)
        of_states, state_tops, state_totals = _exponents_of(predictor, sizes.labels_there, 1)
        product = torch.bmm(of_frames, of_states.transpose(1, 2))
        batch, frames, size = encoder.shape
        states = predictor.shape[1]
        blank, emit = lattice.empty_cells(batch, frames, states, encoder.device)
        Launch(
            _mix, (frames, batch), {"num_warps": 1}, encoder=encoder, predictor=predictor, product=product,
            tops=tops, state_tops=state_tops, state_totals=state_totals, frames=sizes.frames_there,
            counts=sizes.labels_there, targets=simple.targets.to(encoder.device).contiguous(), by_blank=blank,
            by_label=emit, padded_frames=frames, states=states, blank=simple.blank, size=size,
            JOINT=1.0 - simple.alone, ALONE=simple.alone, LANES=max(32, next_power_of_2(states)),
        )()  # fmt: skip
        likelihood, *uses = lattice.posteriors(blank, emit, sizes)
        ctx.save_for_backward(of_frames, of_states, product, state_totals, *uses)
        ctx.simple, ctx.kinds = simple, (encoder.dtype, predictor.dtype)
        ctx.mark_non_differentiable(*uses)
        return losses_of(likelihood, simple.options), uses[0], uses[1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, weights: torch.Tensor, *_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return the gradients of both sides."""
        of_frames, of_states, product, state_totals, *uses = ctx.saved_tensors
        simple: Simple = ctx.simple
        blank_use, label_use = (use * weights.double().view(-1, 1, 1) for use in uses)
        used = blank_use + label_use
        share = torch.where(product > TINY, used / product, 0.0) * (1.0 - simple.alone)
        of_encoder = torch.bmm(share, of_states).mul_(of_frames)
        of_predictor = torch.bmm(share.transpose(1, 2), of_frames).mul_(of_states)
        if simple.alone:
            of_predictor += of_states * (simple.alone * used.sum(1) / state_totals).unsqueeze(2)
        labels = next_labels(simple.targets, simple.sizes).clamp_(min=0)
        joint = 1.0 - simple.alone
        of_encoder[:, :, simple.blank] -= joint * blank_use.sum(2)
        of_encoder.scatter_add_(2, labels.unsqueeze(1).expand_as(label_use), -joint * label_use)
        of_predictor[:, :, simple.blank] -= blank_use.sum(1)
        of_predictor.scatter_add_(2, labels.unsqueeze(2), -label_use.sum(1).unsqueeze(2))
        return of_encoder.to(ctx.kinds[0]), of_predictor.to(ctx.kinds[1]), None


def _exponents_of(side: torch.Tensor, lengths: torch.Tensor, more: int) -> tuple[torch.Tensor, ...]:
    """Return exp(score - largest) in float64, and the largest and the sum of each row."""
    batch, padded, size = side.shape
    exponents = torch.empty(side.shape, dtype=torch.float64, device=side.device)
    tops, totals = torch.empty((2, batch, padded), dtype=torch.float64, device=side.device)
    block = next_power_of_2(size)
    Launch(
        _exponents, (padded, batch), {"num_warps": min(8, max(1, block // 256))}, side=side, lengths=lengths,
        exponents=exponents, tops=tops, totals=totals, padded=padded, more=more, size=size, BLOCK=max(32, block),
    )()  # fmt: skip
    return exponents, tops, totals
