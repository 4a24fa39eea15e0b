"""The joiner's products over tiles of real cells, back: from the cells to all gradients. Imports triton."""

from __future__ import annotations

import triton
import triton.language as tl

from speechmeter.transducer.fused.factors import add_product, power, power_of_gradient, power_of_hidden, store
from speechmeter.transducer.fused.joiner import LEAK, logits_of, places, starts_of, utterance
from speechmeter.transducer.fused.tiles import (
    CELLS_IN_TILE,
    FRAMES_IN_TILE,
    PLACES,
    STATES_IN_TILE,
    across,
    edge,
    found,
)


@triton.jit(
    do_not_specialize=[
        "first", "chunk", "padded_frames", "padded_states", "width", "blank", "weight_step", "batch", "emphasis"
    ]
)  # fmt: skip
def differentiate(
    hidden, weight, bias, weight_top, hidden_top, numbers, tile_count, frames, counts, ranges, targets,
    log_sums, blank_use, label_use, weights, gradient, bias_gradient,
    first, chunk, padded_frames, padded_states, width, blank, weight_step, batch, emphasis,
    RANGES: tl.constexpr, ACTIVATION: tl.constexpr, HIDDEN: tl.constexpr, IDS: tl.constexpr, BLOCK: tl.constexpr,
    STEP: tl.constexpr, TERMS: tl.constexpr, BATCH: tl.constexpr,
):  # fmt: skip
    """Program (block of ids, tile): the gradient with respect to the logits, which are computed again."""
    tile = first + tl.program_id(1)
    number, ours = found(numbers, tile_count, tile, first, chunk)
    if ours:
        b, t, u, real, count = places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES)
        of_gradient = power_of_gradient(
            weights, weight_step, batch, emphasis, BATCH
        )  # read while products are computed
        first_id = tl.program_id(0) * BLOCK
        ids = first_id + tl.arange(0, BLOCK)
        logits = logits_of(
            hidden, weight, bias, weight_top, hidden_top, tl.program_id(1), first_id,
            ACTIVATION, HIDDEN, BLOCK, STEP, TERMS,
        )  # fmt: skip
        place = 2 * (tile.to(tl.int64) * CELLS_IN_TILE + tl.arange(0, CELLS_IN_TILE))
        shares = tl.exp((logits - tl.load(log_sums + place)[:, None]) - tl.load(log_sums + place + 1)[:, None])
        at = (b * padded_frames + t) * padded_states + u
        importance = tl.load(weights + b * weight_step).to(tl.float32)
        by_blank = tl.load(blank_use + at, mask=real, other=0.0) * importance
        by_label = tl.load(label_use + at, mask=real, other=0.0) * importance
        label = tl.load(targets + b * (padded_states - 1) + u, mask=real & (u < count), other=-1).to(tl.int32)
        value = shares * (by_blank + by_label)[:, None]
        value -= tl.where(ids[None, :] == blank, by_blank[:, None], 0.0)
        value -= tl.where(ids[None, :] == label[:, None], by_label[:, None], 0.0)
        tl.atomic_add(bias_gradient + ids, tl.sum(value, 0), sem="relaxed")
        store(gradient, tl.program_id(1) * CELLS_IN_TILE, first_id, value * of_gradient, IDS, TERMS)


@triton.jit
def _slope_of_gelu(encoder, predictor, b, t, u, real, h, padded_frames, padded_states, size):
    """The derivative of gelu in each cell; it takes the sum of both sides, which the value does not tell."""
    there = real[:, None] & (h < size)[None, :]
    left = ((b * padded_frames + t) * size)[:, None] + h[None, :]
    right = ((b * padded_states + u) * size)[:, None] + h[None, :]
    x = tl.load(encoder + left, mask=there, other=0.0).to(tl.float32)
    x += tl.load(predictor + right, mask=there, other=0.0).to(tl.float32)
    return 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)) + x * tl.exp(-0.5 * x * x) * 0.3989422804014327


@triton.jit(do_not_specialize=["first", "chunk", "padded_frames", "padded_states", "width"])
def pull_back(
    gradient, weight, hidden, hidden_top, encoder, predictor, numbers, tile_count, frames, counts, ranges,
    first, chunk, padded_frames, padded_states, width, size,
    RANGES: tl.constexpr, ACTIVATION: tl.constexpr, HIDDEN: tl.constexpr, IDS: tl.constexpr, BLOCK: tl.constexpr,
    STEP: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """Program (block of units, tile): the gradient of encoder + predictor in each cell, over the hidden units."""
    number, ours = found(numbers, tile_count, first + tl.program_id(1), first, chunk)
    if ours:
        row = tl.program_id(1) * CELLS_IN_TILE
        h = tl.program_id(0) * BLOCK
        total = tl.zeros((CELLS_IN_TILE, BLOCK), tl.float32)
        for v in range(0, TERMS * IDS, STEP):
            term = v // IDS
            left = gradient.load([row, v % IDS + term // 2 * IDS])
            total = add_product(total, left, weight.load([v % IDS, h + term % 2 * HIDDEN]), TERMS)
        # Σ|gradient| over the ids is at most twice its largest, 2¹⁴, so that a product stays under 2¹⁵ by this
        scale = 2.0**-14
        if ACTIVATION == "gelu":
            b, t, u, real, _ = places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES)
            units = h + tl.arange(0, BLOCK)
            total *= scale * _slope_of_gelu(
                encoder, predictor, b, t, u, real, units, padded_frames, padded_states, size
            )  # fmt: skip
        elif ACTIVATION == "identity":
            total *= scale
        else:
            value = hidden.load([row, h]).to(tl.float32)
            if TERMS == 3:
                value += hidden.load([row, HIDDEN + h]).to(tl.float32)
            value /= power_of_hidden(hidden_top, ACTIVATION)
            if ACTIVATION == "relu":
                total = tl.where(value > 0, total * scale, 0.0)
            elif ACTIVATION == "leaky_relu":
                total *= tl.where(value > 0, scale, LEAK * scale)
            else:
                total *= (1.0 - value * value) * scale
        store(hidden, row, h, total, HIDDEN, TERMS)


@triton.jit(
    do_not_specialize=["first", "chunk", "padded_frames", "padded_states", "width", "weight_step", "batch", "emphasis"]
)
def fold(
    sums, weight_top, weights, numbers, tile_count, frames, counts, ranges, encoder_gradient, predictor_gradient,
    first, chunk, padded_frames, padded_states, width, size, weight_step, batch, emphasis,
    RANGES: tl.constexpr, HIDDEN: tl.constexpr, BLOCK: tl.constexpr, TILES: tl.constexpr, TERMS: tl.constexpr,
    BATCH: tl.constexpr,
):  # fmt: skip
    """Program (every TILES-th tile of a band, block of units): what `pull_back` found, summed for both sides.

    The encoder's is summed over the states of these tiles, the predictor's over the frames of each, and both are added
    to what other programs found.
    """
    number, ours = found(numbers, tile_count, first + tl.program_id(0), first, chunk)
    begin = (number % PLACES).to(tl.int32) // STATES_IN_TILE
    if ours & (begin % TILES == 0):
        b = number // PLACES // PLACES
        frame_count, count = utterance(frames, counts, b, padded_frames, padded_states)
        i = tl.arange(0, FRAMES_IN_TILE)
        t = (number // PLACES % PLACES).to(tl.int32) + i
        h = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        of_gradient = power_of_gradient(weights, weight_step, batch, emphasis, BATCH)
        scale = 2.0**14 / (power(weight_top) * of_gradient)
        of_encoder = tl.zeros((FRAMES_IN_TILE, BLOCK), tl.float32)
        row = tl.program_id(0).to(tl.int64) * CELLS_IN_TILE + i * STATES_IN_TILE
        across_row = (TERMS // 2 + 1) * HIDDEN
        at = sums + row[:, None] * across_row + h[None, :]
        start = tl.zeros((FRAMES_IN_TILE,), tl.int32)
        if RANGES:
            start = starts_of(ranges, b, t, t < frame_count, padded_frames, padded_states, width)
        for place in range(begin, tl.minimum(begin + TILES, across(count, width))):
            for j in tl.static_range(STATES_IN_TILE):
                s = place * STATES_IN_TILE + j
                value = tl.load(at + j * across_row).to(tl.float32)
                if TERMS == 3:
                    value += tl.load(at + j * across_row + HIDDEN).to(tl.float32)
                of_encoder += value
                if RANGES:  # a state differs from frame to frame
                    to = ((b * padded_states + start + s) * size)[:, None] + h[None, :]
                    there = (t < frame_count) & (s < width) & (start + s <= count)
                    there = there[:, None] & (h < size)[None, :]
                    tl.atomic_add(predictor_gradient + to, value * scale, mask=there, sem="relaxed")
                else:
                    to = (b * padded_states + s) * size + h
                    there = (h < size) & (s <= count)
                    tl.atomic_add(predictor_gradient + to, tl.sum(value, 0) * scale, mask=there, sem="relaxed")
            at += CELLS_IN_TILE * across_row
        to = ((b * padded_frames + t) * size)[:, None] + h[None, :]
        there = (t < frame_count)[:, None] & (h < size)[None, :]
        tl.atomic_add(encoder_gradient + to, of_encoder * scale, mask=there, sem="relaxed")


@triton.jit(do_not_specialize=["first", "chunk", "width", "weight_step", "batch", "emphasis"])
def gather_weight(
    gradient, hidden, weights, hidden_top, numbers, tile_count, counts, weight_gradient,
    first, chunk, width, weight_step, batch, emphasis,
    ACTIVATION: tl.constexpr, HIDDEN: tl.constexpr, IDS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
    SPLITS: tl.constexpr, TERMS: tl.constexpr, BATCH: tl.constexpr,
):  # fmt: skip
    """Program (block of units, block of ids, split): gradientᵀ · hidden over a share of the chunk's rows."""
    begin = (edge(numbers, tile_count, counts, width, first) - first) * CELLS_IN_TILE
    end = (edge(numbers, tile_count, counts, width, first + chunk) - first) * CELLS_IN_TILE
    share = tl.cdiv(tl.cdiv(end - begin, STEP), SPLITS) * STEP
    start = begin + tl.program_id(2) * share
    if start < end:
        first_id = tl.program_id(1) * BLOCK
        first_unit = tl.program_id(0) * BLOCK
        total = tl.zeros((BLOCK, BLOCK), tl.float32)
        steps = tl.cdiv(tl.minimum(start + share, end) - start, STEP)
        for k in range(0, TERMS * steps):
            term = k // steps
            row = start + (k - term * steps) * STEP
            left = gradient.load([row, first_id + term // 2 * IDS]).T
            right = hidden.load([row, first_unit + term % 2 * HIDDEN])
            total = add_product(total, left, right, TERMS)
        ids = first_id + tl.arange(0, BLOCK)
        h = first_unit + tl.arange(0, BLOCK)
        at = weight_gradient + ids[:, None] * HIDDEN + h[None, :]
        of_gradient = power_of_gradient(weights, weight_step, batch, emphasis, BATCH)
        scale = 1.0 / (of_gradient * power_of_hidden(hidden_top, ACTIVATION))
        tl.atomic_add(at, total * scale, sem="relaxed")
