"""The ranges of a pruned loss on a GPU: the best start of every frame, then a path through them. Imports triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.fused.launching import Launch, next_power_of_2

FRAMES = 1024
"""Frames that a program connects at once."""


@triton.jit
def _larger(first, second):
    return tl.maximum(first, second)


@triton.jit
def _smaller(first, second):
    return tl.minimum(first, second)


@triton.jit(do_not_specialize=["padded_frames", "states", "width"])
def _best(blank_use, label_use, counts, best, padded_frames, states, width, LANES: tl.constexpr):
    """Program (t, b): the start whose `width` states hold most of the alignments, so that none is behind the last."""
    t = tl.program_id(0)
    b = tl.program_id(1)
    last = tl.maximum(tl.load(counts + b).to(tl.int32) + 1 - width, 0)
    start = tl.arange(0, LANES)
    allowed = (start <= last) & (start + width <= states)
    at = (b.to(tl.int64) * padded_frames + t) * states + start
    held = tl.zeros((LANES,), tl.float32)
    for state in range(0, width):
        held += tl.load(blank_use + at + state, mask=allowed, other=0.0).to(tl.float32)
        held += tl.load(label_use + at + state, mask=allowed, other=0.0).to(tl.float32)
    chosen = tl.argmax(tl.where(allowed, held, -1.0), 0)
    tl.store(best + b.to(tl.int64) * padded_frames + t, chosen)


@triton.jit(do_not_specialize=["padded_frames", "width"])
def _connect(best, frames, counts, starts, padded_frames, width, BLOCK: tl.constexpr):
    """Program b: the starts nearest to the best ones from above, and then from below, that a path can follow."""
    b = tl.program_id(0)
    end = tl.load(frames + b).to(tl.int32)
    last = tl.maximum(tl.load(counts + b).to(tl.int32) + 1 - width, 0)
    step = width - 1
    highest = 0
    lowest = 0  # the slack of frame 0, whose start is 0
    for first in range(0, padded_frames, BLOCK):
        t = first + tl.arange(0, BLOCK)
        there = t < padded_frames
        wanted = tl.load(best + b.to(tl.int64) * padded_frames + t, mask=there, other=0).to(tl.int32)
        wanted = tl.where(t < end, wanted, last)
        needed = last - tl.maximum(end - 1 - t, 0) * step  # or the end is out of reach
        rising = tl.associative_scan(tl.maximum(tl.maximum(wanted, needed), 0), 0, _larger)
        rising = tl.maximum(rising, highest)
        slack = tl.where(t == 0, 0, rising) - t * step
        falling = tl.minimum(tl.associative_scan(slack, 0, _smaller), lowest)
        start = tl.minimum(falling + t * step, last)
        tl.store(starts + b.to(tl.int64) * padded_frames + t, start.to(tl.int64), mask=there)
        highest = tl.max(rising, 0)
        lowest = tl.min(falling, 0)


def starts(blank_use: torch.Tensor, label_use: torch.Tensor, sizes: Sizes, width: int) -> torch.Tensor:
    """Do what `pruned.prune_ranges` does for ranges of `width` states; trusts the lengths."""
    batch, frames, states = blank_use.shape
    best = torch.empty((batch, frames), dtype=torch.int32, device=blank_use.device)
    found = torch.empty((batch, frames), dtype=torch.int64, device=blank_use.device)
    sized = {"counts": sizes.labels_there, "best": best, "padded_frames": frames, "width": width}
    Launch(
        _best, (frames, batch), {"num_warps": 1}, **sized, blank_use=blank_use.contiguous(),
        label_use=label_use.contiguous(), states=states, LANES=max(32, next_power_of_2(states)),
    )()  # fmt: skip
    Launch(_connect, (batch,), {"num_warps": 4}, **sized, frames=sizes.frames_there, starts=found, BLOCK=FRAMES)()
    return found
