"""The rows over the vocabulary on a GPU: a read for the cells, a read and a write for the gradient. Imports triton.

A row is logits[b, t, s], or the same among packed ones. A program takes a few states of one frame. It holds each row
whole, or, of a large vocabulary, a block at a time.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from speechmeter.transducer.fused.lattice import empty_cells
from speechmeter.transducer.fused.launching import Launch, blocks_for, next_power_of_2
from speechmeter.transducer.rows import Cells, Rows

LARGEST_BLOCK = 4096
"""Ids that a program holds at once."""
SCORED = (1, 8)
WRITTEN = (1, 4)
"""Rows that a program takes at once, and how many times: the fastest tried on an H200 with 500 ids in float32. 0.34 ms
and 1.03 ms for 715,272 true rows of 1,637,130, where a copy of as many bytes takes 0.34 ms and 1.11 ms."""


@triton.jit
def _row(starts, padded_frames, states, count, b, t, s, PACKED: tl.constexpr):
    if PACKED:
        row = tl.load(starts + b) + t.to(tl.int64) * (count + 1) + s
    else:
        row = (b.to(tl.int64) * padded_frames + t) * states + s
    return row


@triton.jit
def _top_and_sum(logits, row, real, vocabulary, BLOCK: tl.constexpr):
    """The largest score of each row, and Σ exp(score - largest)."""
    v = tl.arange(0, BLOCK)
    top = tl.full(row.shape, float("-inf"), tl.float32)
    total = tl.zeros(row.shape, tl.float32)
    for first in tl.range(0, vocabulary, BLOCK):
        there = real[:, None] & (first + v < vocabulary)[None, :]
        at = row[:, None] * vocabulary + (first + v)[None, :]
        scores = tl.load(logits + at, mask=there, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(scores, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - base) + tl.sum(tl.exp(scores - base[:, None]), 1)
        top = base
    return top, total


@triton.jit(do_not_specialize=["padded_frames", "states", "blank", "label_b", "label_t", "cell_b", "cell_t", "cell_s"])
def _score_rows(
    logits, labels, frames, counts, starts, by_blank, by_label,
    vocabulary, padded_frames, states, blank, label_b, label_t, cell_b, cell_t, cell_s,
    PACKED: tl.constexpr, NORMALISE: tl.constexpr, ROWS: tl.constexpr, TURNS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Program (rows, t, b): log-probabilities of blank and label in TURNS · ROWS states of a frame."""
    t = tl.program_id(1)
    b = tl.program_id(2)
    count = tl.load(counts + b).to(tl.int32)
    begin = tl.program_id(0) * TURNS * ROWS
    label_states = tl.where(label_t == 0, states - 1, states)  # a target of its own for each row, or none for the last
    if (t < tl.load(frames + b)) & (begin <= count):
        for first in range(begin, tl.minimum(begin + TURNS * ROWS, tl.minimum(count + 1, states)), ROWS):
            s = first + tl.arange(0, ROWS)
            real = (s <= count) & (s < states)
            row = _row(starts, padded_frames, states, count, b, t, s, PACKED)
            label_at = b.to(tl.int64) * label_b + t.to(tl.int64) * label_t + s
            label = tl.load(labels + label_at, mask=real & (s < count) & (s < label_states), other=-1)
            emits = (label >= 0) & (label < vocabulary)
            blank_score = tl.load(logits + row * vocabulary + blank, mask=real, other=0.0).to(tl.float64)
            label_score = tl.load(logits + row * vocabulary + label, mask=emits, other=float("-inf")).to(tl.float64)
            if NORMALISE:
                top, total = _top_and_sum(logits, row, real, vocabulary, BLOCK)
                scale = top.to(tl.float64) + tl.log(total.to(tl.float64))
                blank_score -= scale
                label_score -= scale
            out = b.to(tl.int64) * cell_b + t.to(tl.int64) * cell_t + s.to(tl.int64) * cell_s
            tl.store(by_blank + out, blank_score, mask=real)
            tl.store(by_label + out, label_score, mask=real)


@triton.jit(do_not_specialize=["padded_frames", "states", "blank", "label_b", "label_t", "clamp", "weight_step"])
def _write_gradient(
    logits, out, labels, frames, counts, starts, blank_use, label_use, weights,
    vocabulary, padded_frames, states, blank, label_b, label_t, clamp, weight_step,
    PACKED: tl.constexpr, NORMALISE: tl.constexpr, CLAMP: tl.constexpr,
    ROWS: tl.constexpr, TURNS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Program (rows, t, b): the gradient of TURNS · ROWS states of a frame; 0 in what is padding."""
    t = tl.program_id(1)
    b = tl.program_id(2)
    count = tl.load(counts + b).to(tl.int32)
    inside = t < tl.load(frames + b)
    weight = tl.load(weights + b * weight_step).to(tl.float32)
    v = tl.arange(0, BLOCK)
    begin = tl.program_id(0) * TURNS * ROWS
    for turn in range(0, TURNS):
        s = begin + turn * ROWS + tl.arange(0, ROWS)
        row = _row(starts, padded_frames, states, count, b, t, s, PACKED)
        if inside & (begin + turn * ROWS <= count):
            real = (s <= count) & (s < states)
            written = real if PACKED else s < states
            label_at = b.to(tl.int64) * label_b + t.to(tl.int64) * label_t + s
            label = tl.load(labels + label_at, mask=real & (s < count), other=-1)
            used = (b.to(tl.int64) * padded_frames + t) * states + s
            by_blank = tl.load(blank_use + used, mask=real, other=0.0).to(tl.float32)
            by_label = tl.load(label_use + used, mask=real, other=0.0).to(tl.float32)
            if not CLAMP:
                by_blank *= weight
                by_label *= weight
            if NORMALISE:
                top, total = _top_and_sum(logits, row, real, vocabulary, BLOCK)
                share = tl.where(real, (by_blank + by_label) / total, 0.0)
            for first in range(0, vocabulary, BLOCK):
                ids = (first + v)[None, :]
                at = row[:, None] * vocabulary + ids
                value = tl.zeros((ROWS, BLOCK), tl.float32)
                if NORMALISE:
                    scores = tl.load(logits + at, mask=real[:, None] & (ids < vocabulary), other=0.0).to(tl.float32)
                    value = tl.exp(scores - top[:, None]) * share[:, None]
                value -= tl.where(ids == blank, by_blank[:, None], 0.0)
                value -= tl.where(ids == label[:, None], by_label[:, None], 0.0)
                if CLAMP:
                    value = tl.minimum(tl.maximum(value, -clamp), clamp) * weight
                value = tl.where(real[:, None], value, 0.0).to(out.dtype.element_ty)
                tl.store(out + at, value, mask=written[:, None] & (ids < vocabulary))
        elif not PACKED:
            for first in range(0, vocabulary, BLOCK):
                ids = (first + v)[None, :]
                nothing = tl.zeros((ROWS, BLOCK), out.dtype.element_ty)
                tl.store(
                    out + row[:, None] * vocabulary + ids, nothing, mask=(s < states)[:, None] & (ids < vocabulary)
                )


def takes(logits: torch.Tensor) -> bool:
    """Say whether the kernels compute these logits: on a CUDA device, of at most 32 bits."""
    return logits.device.type == "cuda" and logits.dtype in (torch.float32, torch.float16, torch.bfloat16)


def cell_scores(logits: torch.Tensor, rows: Rows) -> Cells:
    """Do what `rows.cell_scores` does, but write nothing outside the utterances."""
    sizes = rows.sizes
    blank, emit = empty_cells(sizes.batch, sizes.padded_frames, rows.width, logits.device)
    cell_b, cell_t, cell_s = blank.stride()
    Launch(
        _score_rows, _grid(rows, SCORED), _options(logits), **_common(rows, logits, SCORED),
        logits=logits.contiguous(), by_blank=blank, by_label=emit, cell_b=cell_b, cell_t=cell_t, cell_s=cell_s,
    )()  # fmt: skip
    return blank, emit


def gradient(
    logits: torch.Tensor, rows: Rows, uses: Cells, weights: torch.Tensor, clamp: float, in_place: bool
) -> torch.Tensor:
    """Do what `rows.gradient` does, over the logits where that is allowed."""
    logits = logits.detach().contiguous()
    out = logits if in_place else torch.empty_like(logits)
    blank_use, label_use = (use.contiguous() for use in uses)
    Launch(
        _write_gradient, _grid(rows, WRITTEN), _options(logits), **_common(rows, logits, WRITTEN),
        logits=logits, out=out, blank_use=blank_use, label_use=label_use, weights=weights,
        weight_step=weights.stride(0), clamp=clamp, CLAMP=clamp > 0,
    )()  # fmt: skip
    return out


def _common(rows: Rows, logits: torch.Tensor, turns: tuple[int, int]) -> dict[str, Any]:
    """Return the arguments that both kernels have."""
    labels, per_frame = _labels(rows)
    return {
        "labels": labels,
        "frames": rows.sizes.frames_there,
        "counts": rows.sizes.labels_there,
        "starts": rows.starts,
        "vocabulary": logits.shape[-1],
        "padded_frames": rows.sizes.padded_frames,
        "states": rows.width,
        "blank": rows.blank,
        "label_b": labels.stride(0),
        "label_t": labels.stride(1) if per_frame else 0,
        "PACKED": rows.packed,
        "NORMALISE": rows.normalise,
        "ROWS": turns[0],
        "TURNS": turns[1],
        "BLOCK": _block(logits),
    }


def _block(logits: torch.Tensor) -> int:
    return min(LARGEST_BLOCK, max(32, next_power_of_2(logits.shape[-1])))


def _options(logits: torch.Tensor) -> dict[str, int]:
    return {"num_warps": max(1, _block(logits) // 512)}


def _grid(rows: Rows, turns: tuple[int, int]) -> tuple[int, int, int]:
    return blocks_for(rows.width, turns[0] * turns[1]), rows.sizes.padded_frames, rows.sizes.batch


def _labels(rows: Rows) -> tuple[torch.Tensor, bool]:
    """Return the labels of the rows, and whether each frame has its own: (B, T, …), or (B, …) for all frames.

    Beyond the labels of an utterance nothing is read.
    """
    if rows.state_of is not None:
        return rows.labels.contiguous(), True
    return rows.targets.to(rows.sizes.labels_there.device).contiguous(), False
