"""The joiner's products over tiles of real cells: Linear(activation(encoder + predictor)), and back. Imports
triton.

A chunk of tiles at a time: hidden units and gradients of logits exist for one chunk, logits never outside a program.
Matrices are padded so that no product needs a mask: HIDDEN and IDS are multiples of the blocks, padded ids have a bias
of -1e30. Rows that are no cell hold zeros.

Factors are numbers of float16, scaled by powers of two. With one TERM a factor is rounded to its 11 bits. With three it
is held in two parts, high and low, which stand side by side in a matrix of twice the columns, and a product is
high · high + high · low + low · high: 22 bits, as the three products of TF32 that Triton makes of float32. Tensor cores
cut off what they add up: over 4,096 ids that took 2.5e-5 of a gradient, so that blocks are added up outside of them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from speechmeter.transducer.fused.tiles import (
    CELLS_IN_TILE,
    FRAMES_IN_TILE,
    PLACES,
    STATES_IN_TILE,
    across,
    cells_of,
    edge,
    found,
)

LEAK = tl.constexpr(0.01)  # of torch.nn.LeakyReLU
OF_TANH = tl.constexpr(8192.0)  # the power of two of hidden units that are at most 1


@triton.jit
def _power_of(value):
    """The power of two that brings a number of float32 to between 2¹³ and 2¹⁴, where float16 has room."""
    exponent = (value.to(tl.int32, bitcast=True) >> 23) - 127
    exponent = tl.minimum(tl.maximum(13 - exponent, -60), 60)
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _power(largest):
    """The same for a number that a kernel before this one found."""
    return _power_of(tl.load(largest).to(tl.float32))


@triton.jit
def _power_of_gradient(weights, weight_step, batch, emphasis, BATCH: tl.constexpr):
    """The same for the gradient of the logits: none is above the largest weight of a loss, times 1 + fastemit."""
    b = tl.arange(0, BATCH)
    of_losses = tl.load(weights + b * weight_step, mask=b < batch, other=0.0).to(tl.float32)
    return _power_of(tl.max(tl.abs(of_losses), 0) * emphasis)


@triton.jit
def _power_of_hidden(hidden_top, ACTIVATION: tl.constexpr):
    """The same for hidden units; those of tanh are at most 1."""
    power = OF_TANH
    if ACTIVATION != "tanh":
        power = _power(hidden_top)
    return power


@triton.jit
def _parts(value, kind: tl.constexpr):
    """A number in two of fewer bits, high and low."""
    high = value.to(kind)
    return high, (value - high.to(tl.float32)).to(kind)


@triton.jit
def _add_product(total, left, right, TERMS: tl.constexpr):
    """total + left · right; with three terms rounded as float32 is, not by the tensor cores."""
    if TERMS == 3:
        total += tl.dot(left, right, max_num_imprecise_acc=1)  # other than 0: the sum stays outside of the product
    else:
        total = tl.dot(left, right, total)
    return total


@triton.jit
def _store(matrix, row, column, value, WIDTH: tl.constexpr, TERMS: tl.constexpr):
    """Write a block of a matrix of WIDTH columns, in one part or two."""
    high, low = _parts(value, matrix.dtype)
    matrix.store([row, column], high)
    if TERMS == 3:
        matrix.store([row, WIDTH + column], low)


@triton.jit(do_not_specialize=["count"])
def hold_weight(
    weight, bias, weight_top, held, held_bias, count, size, HIDDEN: tl.constexpr, BLOCK: tl.constexpr,
    TERMS: tl.constexpr,
):  # fmt: skip
    """Program (id): its row of the weight, padded, scaled and rounded, and its bias; -1e30 for an id of the padding."""
    v = tl.program_id(0)
    h = tl.arange(0, BLOCK)
    row = tl.load(weight + v.to(tl.int64) * size + h, mask=(h < size) & (v < count), other=0.0).to(tl.float32)
    high, low = _parts(row * _power(weight_top), held.dtype.element_ty)
    at = held + v.to(tl.int64) * (TERMS // 2 + 1) * HIDDEN + h
    tl.store(at, high, mask=h < HIDDEN)
    if TERMS == 3:
        tl.store(at + HIDDEN, low, mask=h < HIDDEN)
    tl.store(held_bias + v, tl.load(bias + v, mask=v < count, other=-1e30).to(tl.float32))


@triton.jit
def _utterance(frames, counts, b, padded_frames, padded_states):
    """Frames and labels of an utterance, inside the tensors whatever the lengths say."""
    frame_count = tl.minimum(tl.load(frames + b).to(tl.int32), padded_frames)
    return frame_count, tl.minimum(tl.load(counts + b).to(tl.int32), padded_states - 1)


@triton.jit
def _starts(ranges, b, t, inside, padded_frames, padded_states, width):
    """Where the ranges of frames begin, brought inside whatever is given."""
    start = tl.load(ranges + b * padded_frames + t, mask=inside, other=0).to(tl.int32)
    return tl.minimum(tl.maximum(start, 0), padded_states - width)


@triton.jit
def _places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES: tl.constexpr):
    """Utterance, frame and state of each cell of a tile, whether it is one, and the labels of its utterance."""
    b, t, s = cells_of(number)
    frame_count, count = _utterance(frames, counts, b, padded_frames, padded_states)
    inside = (t < frame_count) & (s < width)
    u = s
    if RANGES:
        u += _starts(ranges, b, t, inside, padded_frames, padded_states, width)
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
        frame_count, count = _utterance(frames, counts, b, padded_frames, padded_states)
        i = tl.arange(0, FRAMES_IN_TILE)
        j = tl.arange(0, STATES_IN_TILE)
        t = (number // PLACES % PLACES).to(tl.int32) + i
        s = (number % PLACES).to(tl.int32) + j
        u = s[None, :]
        if RANGES:
            u = u + _starts(ranges, b, t, t < frame_count, padded_frames, padded_states, width)[:, None]
        h = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        at = ((b * padded_frames + t) * size)[:, None] + h[None, :]
        left = tl.load(encoder + at, mask=(t < frame_count)[:, None] & (h < size)[None, :], other=0.0).to(tl.float32)
        at = ((b * padded_states + u) * size)[:, :, None] + h[None, None, :]
        there = (u <= count)[:, :, None] & (s < width)[None, :, None] & (h < size)[None, None, :]
        total = left[:, None, :] + tl.load(predictor + at, mask=there, other=0.0).to(tl.float32)
        value = _activated(total, ACTIVATION) * _power_of_hidden(hidden_top, ACTIVATION)
        row = tl.program_id(0).to(tl.int64) * CELLS_IN_TILE + i[:, None] * STATES_IN_TILE + j[None, :]
        high, low = _parts(value, hidden.dtype.element_ty)
        at = hidden + row[:, :, None] * (TERMS // 2 + 1) * HIDDEN + h[None, None, :]
        tl.store(at, high)
        if TERMS == 3:
            tl.store(at + HIDDEN, low)


@triton.jit
def _logits(
    hidden, weight, bias, weight_top, hidden_top, tile, first_id, ACTIVATION: tl.constexpr,
    HIDDEN: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    total = tl.zeros((CELLS_IN_TILE, BLOCK), tl.float32)
    for k in range(0, TERMS * HIDDEN, STEP):
        term = k // HIDDEN  # 0 high · high, 1 high · low, 2 low · high
        left = hidden.load([tile * CELLS_IN_TILE, k % HIDDEN + term // 2 * HIDDEN])
        right = weight.load([first_id, k % HIDDEN + term % 2 * HIDDEN]).T
        total = _add_product(total, left, right, TERMS)
    scale = 1.0 / (_power(weight_top) * _power_of_hidden(hidden_top, ACTIVATION))
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
        b, _, u, real, count = _places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES)
        row = tl.program_id(1).to(tl.int64) * CELLS_IN_TILE + tl.arange(0, CELLS_IN_TILE)
        first_id = tl.program_id(0) * BLOCK
        ids = first_id + tl.arange(0, BLOCK)
        logits = _logits(
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
        b, t, u, real, count = _places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES)
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
        b, t, u, real, count = _places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES)
        power = _power_of_gradient(weights, weight_step, batch, emphasis, BATCH)  # read while products are computed
        first_id = tl.program_id(0) * BLOCK
        ids = first_id + tl.arange(0, BLOCK)
        logits = _logits(
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
        _store(gradient, tl.program_id(1) * CELLS_IN_TILE, first_id, value * power, IDS, TERMS)


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
            total = _add_product(total, left, weight.load([v % IDS, h + term % 2 * HIDDEN]), TERMS)
        # Σ|gradient| over the ids is at most twice its largest, 2¹⁴, so that a product stays under 2¹⁵ by this
        scale = 2.0**-14
        if ACTIVATION == "gelu":
            b, t, u, real, _ = _places(number, frames, counts, ranges, padded_frames, padded_states, width, RANGES)
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
            value /= _power_of_hidden(hidden_top, ACTIVATION)
            if ACTIVATION == "relu":
                total = tl.where(value > 0, total * scale, 0.0)
            elif ACTIVATION == "leaky_relu":
                total *= tl.where(value > 0, scale, LEAK * scale)
            else:
                total *= (1.0 - value * value) * scale
        _store(hidden, row, h, total, HIDDEN, TERMS)


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
        frame_count, count = _utterance(frames, counts, b, padded_frames, padded_states)
        i = tl.arange(0, FRAMES_IN_TILE)
        t = (number // PLACES % PLACES).to(tl.int32) + i
        h = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        power = _power_of_gradient(weights, weight_step, batch, emphasis, BATCH)
        scale = 2.0**14 / (_power(weight_top) * power)
        of_encoder = tl.zeros((FRAMES_IN_TILE, BLOCK), tl.float32)
        row = tl.program_id(0).to(tl.int64) * CELLS_IN_TILE + i * STATES_IN_TILE
        across_row = (TERMS // 2 + 1) * HIDDEN
        at = sums + row[:, None] * across_row + h[None, :]
        start = tl.zeros((FRAMES_IN_TILE,), tl.int32)
        if RANGES:
            start = _starts(ranges, b, t, t < frame_count, padded_frames, padded_states, width)
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
            total = _add_product(total, left, right, TERMS)
        ids = first_id + tl.arange(0, BLOCK)
        h = first_unit + tl.arange(0, BLOCK)
        at = weight_gradient + ids[:, None] * HIDDEN + h[None, :]
        power = _power_of_gradient(weights, weight_step, batch, emphasis, BATCH)
        scale = 1.0 / (power * _power_of_hidden(hidden_top, ACTIVATION))
        tl.atomic_add(at, total * scale, sem="relaxed")
