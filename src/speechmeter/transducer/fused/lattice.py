"""The lattice on a GPU: α and β of every utterance in one launch. Imports triton.

Cells are float64 of shape (B, T, U + 1), stored by anti-diagonals n = t + u: a step of the recursion reads one
contiguous row, and lane u of a program holds state u from the first diagonal to the last. Cells outside an utterance
are never read.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.fused.launching import Launch, blocks_for, next_power_of_2

NEVER = tl.constexpr(-1e30)  # log of an impossible thing: finite, so that two of them can be subtracted
STAGES = 4  # diagonals under way while one is computed
LANES_A_WARP = 32
ALIGNED = 64


@triton.jit
def _log_add(first, second):
    """log(exp(first) + exp(second)) in float64; of the correction, at most log 2, float32 keeps 1e-7."""
    top = tl.maximum(first, second)
    gap = (tl.minimum(first, second) - top).to(tl.float32)
    return tl.maximum(top + tl.log(1.0 + tl.exp(gap)).to(tl.float64), NEVER)


@triton.jit
def _ends(frames, labels, b, padded_frames, states):
    """The last frame and the last state of an utterance, inside the lattice whatever the lengths say."""
    last_t = tl.minimum(tl.maximum(tl.load(frames + b).to(tl.int32), 1), padded_frames) - 1
    return last_t, tl.minimum(tl.maximum(tl.load(labels + b).to(tl.int32), 0), states - 1)


@triton.jit
def _leaving(blank, emit, at, inside, emits):
    by_blank = tl.maximum(tl.load(blank + at, mask=inside, other=NEVER), NEVER)
    by_label = tl.maximum(tl.load(emit + at, mask=inside & emits, other=NEVER), NEVER)
    return by_blank, by_label


@triton.jit(do_not_specialize=["diagonals", "states"])
def _scan(
    blank, emit, frames, labels, alpha, beta, likelihood, diagonals, states,
    LANES: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Program (b, 0) goes forward and fills α and the likelihood, program (b, 1) goes back and fills β."""
    b = tl.program_id(0)
    last_t, last_u = _ends(frames, labels, b, diagonals - states, states)
    last = last_t + last_u
    u = tl.arange(0, LANES)
    start = b.to(tl.int64) * diagonals * states
    end = tl.maximum(tl.load(blank + start + last.to(tl.int64) * states + last_u), NEVER)
    if tl.program_id(1) == 0:
        now = tl.where(u == 0, 0.0, NEVER).to(tl.float64)
        tl.store(alpha + start + u, now, mask=u == 0)
        for n in tl.range(0, last, num_stages=STAGES):
            t = n - u
            at = start + n * states + u
            by_blank, by_label = _leaving(blank, emit, at, (u <= last_u) & (t >= 0) & (t <= last_t), u < last_u)
            moved = tl.where(u == 0, NEVER, tl.gather(now + by_label, tl.maximum(u - 1, 0), 0))
            reached = (u <= last_u) & (t >= -1) & (t < last_t)
            now = tl.where(reached, _log_add(now + by_blank, moved), NEVER)
            tl.store(alpha + at + states, now, mask=reached)
        total = tl.sum(tl.where(u == last_u, now, 0.0), 0) + end
        tl.store(likelihood + b, tl.where(total <= 0.5 * NEVER, float("-inf"), total))
    else:
        now = tl.where(u == last_u, end, NEVER)
        tl.store(beta + start + last.to(tl.int64) * states + u, now, mask=u == last_u)
        for step in tl.range(0, last, num_stages=STAGES):
            n = last - 1 - step
            t = n - u
            at = start + n * states + u
            inside = (u <= last_u) & (t >= 0) & (t <= last_t)
            by_blank, by_label = _leaving(blank, emit, at, inside, u < last_u)
            moved = tl.gather(now, tl.minimum(u + 1, LANES - 1), 0) + by_label
            now = tl.where(inside, _log_add(now + by_blank, moved), NEVER)
            tl.store(beta + at, now, mask=inside)


@triton.jit(do_not_specialize=["padded_frames", "states", "diagonals"])
def _use(
    blank, emit, alpha, beta, likelihood, frames, labels, blank_use, label_use, padded_frames, states, diagonals,
    LANES: tl.constexpr,
):  # fmt: skip
    """Program (t, b): the posteriors of the cells of one frame, 0 outside the utterance."""
    t = tl.program_id(0)
    b = tl.program_id(1)
    last_t, last_u = _ends(frames, labels, b, padded_frames, states)
    total = tl.load(likelihood + b)
    total = tl.where(total > NEVER, total, -NEVER)  # where no alignment is possible, none is used
    u = tl.arange(0, LANES)
    inside = (u <= last_u) & (t <= last_t)
    at = b.to(tl.int64) * diagonals * states + (t + u).to(tl.int64) * states + u
    before = tl.load(alpha + at, mask=inside, other=NEVER) - total
    by_blank, by_label = _leaving(blank, emit, at, inside, u < last_u)
    after_blank = tl.load(beta + at + states, mask=inside & (t < last_t), other=NEVER)
    after_blank = tl.where((t == last_t) & (u == last_u), 0.0, after_blank)
    after_label = tl.load(beta + at + states + 1, mask=inside & (u < last_u), other=NEVER)
    out = (b.to(tl.int64) * padded_frames + t) * states + u
    uses_blank = tl.exp((before + by_blank + after_blank).to(tl.float32))
    uses_label = tl.exp((before + by_label + after_label).to(tl.float32))
    tl.store(blank_use + out, tl.where(inside, uses_blank, 0.0), mask=u < states)
    tl.store(label_use + out, tl.where(inside, uses_label, 0.0), mask=u < states)


def empty_cells(batch: int, frames: int, states: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float64 cells (B, T, S) that are stored by diagonals, twice; nothing is written into them."""
    size = batch * (frames + states) * states
    return _two(size, (batch, frames, states), _strides(frames, states), torch.float64, device)


def fill(blank: torch.Tensor, emit: torch.Tensor) -> None:
    """Fill both of `empty_cells` with -inf by one operation, padding included."""
    both = emit.storage_offset() + emit.shape[0] * emit.stride(0)
    blank.as_strided((both,), (1,), 0).fill_(-torch.inf)


def log_likelihood(blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Do what `lattice.log_likelihood` does."""
    return _scanned(*by_diagonals(blank, emit), sizes, directions=1)[0]


def posteriors(
    blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Do what `lattice.posteriors` does; the posteriors are float32, 0 where no alignment goes."""
    blank, emit = by_diagonals(blank, emit)
    likelihood, alpha, beta = _scanned(blank, emit, sizes, directions=2)
    batch, frames, states = blank.shape
    in_order = frames * states, states, 1
    blank_use, label_use = _two(batch * frames * states, blank.shape, in_order, torch.float32, blank.device)
    Launch(
        _use, (frames, batch), {"num_warps": 1}, blank=blank, emit=emit, alpha=alpha, beta=beta, likelihood=likelihood,
        frames=sizes.frames_there, labels=sizes.labels_there, blank_use=blank_use, label_use=label_use,
        padded_frames=frames, states=states, diagonals=frames + states, LANES=_lanes(states),
    )()  # fmt: skip
    return likelihood, blank_use, label_use


def by_diagonals(blank: torch.Tensor, emit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cells stored by diagonals: themselves, or copies."""
    batch, frames, states = blank.shape
    if blank.stride() == emit.stride() == _strides(frames, states):
        return blank, emit
    copies = empty_cells(batch, frames, states, blank.device)
    return copies[0].copy_(blank), copies[1].copy_(emit)


def _two(
    size: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two tensors out of one allocation, both aligned as an allocation is."""
    apart = blocks_for(size, ALIGNED) * ALIGNED
    both = torch.empty(2 * apart, dtype=dtype, device=device)
    return both.as_strided(shape, strides), both.as_strided(shape, strides, apart)


def _strides(frames: int, states: int) -> tuple[int, int, int]:
    """Return how far it is to the next utterance, frame and state: one label on is one diagonal and one lane on."""
    return (frames + states) * states, states, states + 1


def _scanned(
    blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes, directions: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    batch, frames, states = blank.shape
    likelihood = torch.empty(batch, dtype=torch.float64, device=blank.device)
    alpha, beta = empty_cells(batch, frames, states, blank.device)
    lanes = _lanes(states)
    Launch(
        _scan, (batch, directions), {"num_warps": min(16, lanes // LANES_A_WARP)}, blank=blank, emit=emit,
        frames=sizes.frames_there, labels=sizes.labels_there, alpha=alpha, beta=beta, likelihood=likelihood,
        diagonals=frames + states, states=states, LANES=lanes, STAGES=STAGES,
    )()  # fmt: skip
    return likelihood, alpha, beta


def _lanes(states: int) -> int:
    return max(LANES_A_WARP, next_power_of_2(states))
