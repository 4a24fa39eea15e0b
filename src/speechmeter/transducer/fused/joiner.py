"""The joiner's products over tiles of real cells: Linear(activation(encoder + predictor)). Imports triton.

A chunk of tiles at a time: hidden units and gradients of logits exist for one chunk, logits never outside a program.
Matrices are padded so that no product needs a mask: HIDDEN and IDS are multiples of the blocks, padded ids have a bias
of -1e30. Rows that are no cell hold zeros.

This is the way forward; `joiner_back` is the way back, and `factors` says how products are as precise as float32.
"""

from __future__ import annotations

import triton
import triton.language as tl

from speechmeter.transducer.fused.factors import add_product, parts_of, power, power_of_hidden
from speechmeter.transducer.fused.tiles import (
    CELLS_IN_TILE,
    FRAMES_IN_TILE,
    PLACES,
    STATES_IN_TILE,
    cells_of,
    found,
)

LEAK = tl.constexpr(0.01)  # of torch.nn.LeakyReLU


@triton.jit
def utterance(frames, counts, b, padded_frames, padded_states):
    """Frames and labels of an utterance, inside the tensors whatever the lengths say."""
    frame_count = tl.minimum(tl.load(frames + b).to(tl.int32), padded_frames)
    return frame_count, tl.minimum(tl.load(counts + b).to(tl.int32), padded_states - 1)


@triton.jit
def starts_of(ranges, b, t, inside, padded_frames, padded_states, width):
    """Where the ranges of frames begin, brought inside whatever is given."""
    start = tl.load(ranges + b * padded_frames + t, mask=inside, other=0).to(tl.int32)
    return tl.minimum(tl.maximum(start, 0), padded_states - width)


@triton.jit
def places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES: tl.constexpr):
    """Utterance, frame and state of each cell of a tile, whether it is one, and the labels of its utterance."""
    b, t, s = cells_of(number)
    frame_count, count = utterance(frames, counts, b, padded_frames, padded_states)
    inside = (t < frame_count) & (s < width)
    u = s
    if RANGES:
        u += starts_of(ranges, b, t, inside, padded_frames, padded_states, width)
    return b, t, u, inside & (u <= count), count


@triton.jit
def _activated(total, ACTIVATION: tl.constexpr):
    if ACTIVATION == "tanh":
        total = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * total))
    elif ACTIVATION == "relu":
        total = tl.maximum(total, 0.0)
    elif ACTIVATION == "leaky_relu":
        total = tl.where(total > 0, total, LEAK * total)
    elif ACTIVATION == "gelu":
        total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    return total


@triton.jit(do_not_specialize=["first", "chunk", "padded_frames", "padded_states", "width"])
def join(
    encoder, predictor, hidden_top, numbers, tile_count, frames, counts, ranges, hidden,
    first, chunk, padded_frames, padded_states, width, size,
    RANGES: tl.constexpr, ACTIVATION: tl.constexpr, HIDDEN: tl.constexpr, BLOCK: tl.constexpr, TERMS: tl.constexpr,
    AGAIN: tl.constexpr,
):  # fmt: skip
    """Program (tile, block): activation(encoder + predictor) of a tile's cells, frames × states × units.

    AGAIN, after a forward pass over all chunks, the last chunk is still there.
    """
    number, ours = found(numbers, tile_count, first + tl.program_id(0), first, chunk)
    if AGAIN:
        ours = ours & (first + chunk < tl.load(tile_count))
    if ours:
        b = number // PLACES // PLACES
        frame_count, count = utterance(frames, counts, b, padded_frames, padded_states)
        i = tl.arange(0, FRAMES_IN_TILE)
        j = tl.arange(0, STATES_IN_TILE)
        t = (number // PLACES % PLACES).to(tl.int32) + i
        s = (number % PLACES).to(tl.int32) + j
        u = s[None, :]
        if RANGES:
            u = u + starts_of(ranges, b, t, t < frame_count, padded_frames, padded_states, width)[:, None]
        h = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        at = ((b * padded_frames + t) * size)[:, None] + h[None, :]
        left = tl.load(encoder + at, mask=(t < frame_count)[:, None] & (h < size)[None, :], other=0.0).to(tl.float32)
        at = ((b * padded_states + u) * size)[:, :, None] + h[None, None, :]
        there = (u <= count)[:, :, None] & (s < width)[None, :, None] & (h < size)[None, None, :]
        total = left[:, None, :] + tl.load(predictor + at, mask=there, other=0.0).to(tl.float32)
        value = _activated(total, ACTIVATION) * power_of_hidden(hidden_top, ACTIVATION)
        row = tl.program_id(0).to(tl.int64) * CELLS_IN_TILE + i[:, None] * STATES_IN_TILE + j[None, :]
        high, low = parts_of(value, hidden.dtype.element_ty)
        at = hidden + row[:, :, None] * (TERMS // 2 + 1) * HIDDEN + h[None, None, :]
        tl.store(at, high)
        if TERMS == 3:
            tl.store(at + HIDDEN, low)


@triton.jit
def logits_of(
    hidden, weight, bias, weight_top, hidden_top, tile, first_id, ACTIVATION: tl.constexpr,
    HIDDEN: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """The logits of a tile for a block of ids."""
    total = tl.zeros((CELLS_IN_TILE, BLOCK), tl.float32)
    for k in range(0, TERMS * HIDDEN, STEP):
        term = k // HIDDEN  # 0 high · high, 1 high · low, 2 low · high
        left = hidden.load([tile * CELLS_IN_TILE, k % HIDDEN + term // 2 * HIDDEN])
        right = weight.load([first_id, k % HIDDEN + term % 2 * HIDDEN]).T
        total = add_product(total, left, right, TERMS)
    scale = 1.0 / (power(weight_top) * power_of_hidden(hidden_top, ACTIVATION))
    return total * scale + tl.load(bias + first_id + tl.arange(0, BLOCK))[None, :]


@triton.jit(do_not_specialize=["first", "chunk", "padded_frames", "padded_states", "width", "blank", "rows"])
def score(
    hidden, weight, bias, weight_top, hidden_top, numbers, tile_count, frames, counts, ranges, targets,
    tops, sums, blank_scores, label_scores,
    first, chunk, padded_frames, padded_states, width, blank, rows,
    RANGES: tl.constexpr, ACTIVATION: tl.constexpr, HIDDEN: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
    TERMS: tl.constexpr,
):  # fmt: skip
    """Program (block of ids, tile): largest logit and Σ exp of a block, and the logits of blank and label in it."""
    number, ours = found(numbers, tile_count, first + tl.program_id(1), first, chunk)
    if ours:
        b, _, u, real, count = places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES)
        row = tl.program_id(1).to(tl.int64) * CELLS_IN_TILE + tl.arange(0, CELLS_IN_TILE)
        first_id = tl.program_id(0) * BLOCK
        ids = first_id + tl.arange(0, BLOCK)
        logits = logits_of(
            hidden, weight, bias, weight_top, hidden_top, tl.program_id(1), first_id,
            ACTIVATION, HIDDEN, BLOCK, STEP, TERMS,
        )  # fmt: skip
        top = tl.max(logits, 1)
        out = tl.program_id(0).to(tl.int64) * rows + row
        tl.store(tops + out, top)
        tl.store(sums + out, tl.sum(tl.exp(logits - top[:, None]), 1))
        label = tl.load(targets + b * (padded_states - 1) + u, mask=real & (u < count), other=-1).to(tl.int32)
        of_label = tl.sum(tl.where(ids[None, :] == label[:, None], logits, 0.0), 1)
        tl.store(label_scores + row, of_label, mask=(label >= 0) & (label // BLOCK == tl.program_id(0)))
        if blank // BLOCK == tl.program_id(0):
            tl.store(blank_scores + row, tl.sum(tl.where(ids[None, :] == blank, logits, 0.0), 1))


@triton.jit(do_not_specialize=["first", "chunk", "padded_frames", "padded_states", "width", "rows", "blocks"])
def normalise(
    tops, sums, blank_scores, label_scores, numbers, tile_count, frames, counts, ranges,
    by_blank, by_label, log_sums, first, chunk, padded_frames, padded_states, width, rows, blocks,
    RANGES: tl.constexpr,
):  # fmt: skip
    """Program (tile): log-probabilities of blank and label, into the lattice, and log Σ exp in two parts."""
    tile = first + tl.program_id(0)
    number, ours = found(numbers, tile_count, tile, first, chunk)
    if ours:
        b, t, u, real, count = places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES)
        row = tl.program_id(0).to(tl.int64) * CELLS_IN_TILE + tl.arange(0, CELLS_IN_TILE)
        top = tl.load(tops + row)
        total = tl.load(sums + row)
        for block in range(1, blocks):
            other = tl.load(tops + block * rows + row)
            higher = tl.maximum(top, other)
            total = total * tl.exp(top - higher) + tl.load(sums + block * rows + row) * tl.exp(other - higher)
            top = higher
        log_sum = top.to(tl.float64) + tl.log(total.to(tl.float64))
        large = log_sum.to(tl.float32)
        place = 2 * (tile.to(tl.int64) * CELLS_IN_TILE + tl.arange(0, CELLS_IN_TILE))
        tl.store(log_sums + place, large)
        tl.store(log_sums + place + 1, (log_sum - large.to(tl.float64)).to(tl.float32))
        emits = real & (u < count)
        blank_score = tl.load(blank_scores + row).to(tl.float64) - log_sum
        label_score = tl.load(label_scores + row, mask=emits, other=0.0).to(tl.float64) - log_sum
        # stored by diagonals: see the lattice
        at = (b * (padded_frames + padded_states) + t + u) * padded_states + u
        tl.store(by_blank + at, blank_score, mask=real)
        tl.store(by_label + at, tl.where(emits, label_score, float("-inf")), mask=real)
