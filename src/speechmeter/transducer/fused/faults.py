"""One look at lengths and targets where they are, so that a GPU is waited for once, or late. Imports triton."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from speechmeter.transducer.fused.launching import Launch, next_power_of_2

if TYPE_CHECKING:
    from speechmeter.transducer.checks import Sizes


@triton.jit(do_not_specialize=["padded_frames", "padded_labels", "ids", "batch"])
def _look(frames, labels, targets, found, padded_frames, padded_labels, ids, batch, BLOCK: tl.constexpr):
    """Program b: the lengths of an utterance, and how many things are wrong with it."""
    b = tl.program_id(0)
    frame_count = tl.load(frames + b).to(tl.int32)
    count = tl.load(labels + b).to(tl.int32)
    wrong = (frame_count < 1) | (frame_count > padded_frames) | (count < 0) | (count > padded_labels)
    u = tl.arange(0, BLOCK)
    target = tl.load(targets + b.to(tl.int64) * padded_labels + u, mask=(u < count) & (u < padded_labels), other=0)
    wrong_targets = tl.sum(((target < 0) | (target >= ids)).to(tl.int32), 0)
    tl.store(found + b, frame_count)
    tl.store(found + batch + b, count)
    tl.store(found + 2 * batch + b, wrong.to(tl.int32) + wrong_targets)


class Look:
    """What is on its way to the host: the lengths, and how many things are wrong with each utterance."""

    def __init__(self, targets: torch.Tensor, sizes: Sizes, vocabulary: int) -> None:
        targets = targets.to(sizes.labels_there.device).contiguous()
        found = torch.empty((3, sizes.batch), dtype=torch.int32, device=targets.device)
        Launch(
            _look, (sizes.batch,), {"num_warps": 1}, frames=sizes.frames_there, labels=sizes.labels_there,
            targets=targets, found=found, padded_frames=sizes.padded_frames, padded_labels=sizes.padded_labels,
            ids=vocabulary, batch=sizes.batch, BLOCK=max(32, next_power_of_2(max(1, sizes.padded_labels))),
        )()  # fmt: skip
        self._there = torch.empty(found.shape, dtype=torch.int32, pin_memory=found.is_cuda)
        self._there.copy_(found, non_blocking=True)
        self._event = torch.cuda.Event() if found.is_cuda else None
        if self._event is not None:
            self._event.record(torch.cuda.current_stream(found.device))

    def read(self) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
        """Return frames, labels, and whether lengths and targets are all inside; waits for the look alone."""
        if self._event is not None:
            self._event.synchronize()
        frames, labels, wrong = self._there.tolist()
        return tuple(frames), tuple(labels), not any(wrong)
