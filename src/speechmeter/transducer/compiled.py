"""The compiled engine: the kernels over a batch on the CPU, in as many threads as torch may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import starmap
from typing import Any

import torch

from speechmeter.transducer import kernels
from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.rows import Cells, Rows

# Frames that a thread takes at a time: few enough to share a batch evenly, enough to outweigh the call (about 10 µs).
FRAMES_AT_ONCE = 16


def takes(logits: torch.Tensor) -> bool:
    """Say whether the kernels can read these logits: float32 or float64, contiguous, on the CPU."""
    return logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.float64) and logits.is_contiguous()


def cell_scores(logits: torch.Tensor, rows: Rows) -> Cells:
    """Do what `rows.cell_scores` does."""
    blank = torch.full(logits.shape[:3], -torch.inf, dtype=torch.float64)
    emit = blank.clone()
    inputs, labels, by_blank, by_label = (tensor.detach().numpy() for tensor in (logits, rows.labels, blank, emit))

    def score(b: int, frames: slice) -> None:
        at = b, frames
        options = rows.states[b], rows.blank, rows.normalise
        kernels.score_frames(inputs[at], labels[at], *options, by_blank[at], by_label[at])

    _share(score, _pieces(rows.frames))
    return blank, emit


def gradient(
    logits: torch.Tensor, rows: Rows, uses: Cells, weights: torch.Tensor, clamp: float, in_place: bool
) -> torch.Tensor:
    """Do what `rows.gradient` does."""
    result = torch.empty(logits.shape, dtype=logits.dtype)
    inputs, labels, by_blank, by_label, out = (
        tensor.detach().numpy() for tensor in (logits, rows.labels, *uses, result)
    )
    weight_of = weights.tolist()

    def differentiate(b: int, frames: slice) -> None:
        at = b, frames
        options = rows.states[b], rows.blank, rows.normalise
        weight = weight_of[b] if clamp <= 0 else 1.0
        kernels.gradient_frames(inputs[at], labels[at], *options, by_blank[at], by_label[at], weight, clamp, out[at])
        if clamp > 0:
            out[at] *= weight_of[b]

    _share(differentiate, _pieces(rows.frames))
    for utterance, frames in enumerate(rows.frames):
        result[utterance, frames:] = 0
    return result


def log_likelihood(blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Do what `lattice.log_likelihood` does."""
    result = torch.empty(sizes.batch, dtype=torch.float64)
    by_blank, by_label, out = blank.numpy(), emit.numpy(), result.numpy()

    def add_up(b: int) -> None:
        cells = b, slice(sizes.frames[b]), slice(sizes.labels[b] + 1)
        out[b] = kernels.fill_alpha(by_blank[cells], by_label[cells], torch.empty_like(blank[cells]).numpy())

    _share(add_up, ((b,) for b in range(sizes.batch)))
    return result


def posteriors(
    blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Do what `lattice.posteriors` does."""
    likelihood = torch.empty(sizes.batch, dtype=torch.float64)
    blank_use, label_use = torch.zeros_like(blank), torch.zeros_like(emit)
    by_blank, by_label, by_blank_use, by_label_use = (cells.numpy() for cells in (blank, emit, blank_use, label_use))

    def attribute(b: int) -> None:
        cells = b, slice(sizes.frames[b]), slice(sizes.labels[b] + 1)
        alpha = torch.empty(blank[cells].shape, dtype=torch.float64).numpy()
        total = kernels.fill_alpha(by_blank[cells], by_label[cells], alpha)
        likelihood[b] = total
        if total != -torch.inf:
            uses = by_blank_use[cells], by_label_use[cells]
            kernels.fill_posteriors(by_blank[cells], by_label[cells], alpha, total, uses)

    _share(attribute, ((b,) for b in range(sizes.batch)))
    return likelihood, blank_use, label_use


def _pieces(frames: tuple[int, ...]) -> Iterable[tuple[int, slice]]:
    for utterance, count in enumerate(frames):
        for start in range(0, count, FRAMES_AT_ONCE):
            yield utterance, slice(start, min(start + FRAMES_AT_ONCE, count))


def _share(task: Callable[..., None], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Call `task` with each of `arguments`, in torch's number of threads; raise what a call raised."""
    threads = torch.get_num_threads()
    if threads == 1:
        for _ in starmap(task, arguments):
            pass
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda given: task(*given), arguments):
            pass
