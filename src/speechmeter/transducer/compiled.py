"""The compiled engine: loops over single utterances, compiled by numba, in as many threads as torch may use.

The loops hold no lock, so that threads can share a batch. No fast-math where rounding is part of the method; where a
sum may be taken in any order, it says so, because only then does the compiler use vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import starmap
from typing import Any, TypeVar, cast

import numba
import numpy as np
import torch

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.rows import Cells, Rows

# Frames that a thread takes at a time: few enough to share a batch evenly, enough to outweigh the call (about 10 µs).
FRAMES_AT_ONCE = 16

Function = TypeVar("Function", bound=Callable[..., Any])
Array = np.ndarray[Any, Any]

LOG2_E = np.float32(1.4426950408889634)
# ln 2 in two parts: the first has few enough bits that its product with a small integer is exact.
LN2_HIGH = np.float32(0.693359375)
LN2_LOW = np.float32(0.6931471805599453 - 0.693359375)
# Added and taken off again, it rounds a float32 to an integer, which is then in the lowest bits.
ROUNDER = np.float32(1.5 * 2**23)
LEAST = np.float32(-87.0)
C2, C3, C4, C5, C6, C7 = (np.float32(1 / k) for k in (2, 6, 24, 120, 720, 5040))
ONE, NONE = np.float32(1), np.float32(0)


def jit(**options: Any) -> Callable[[Function], Function]:
    """Compile on first use and keep the result on disk, where numba may write."""

    def compiled(function: Function) -> Function:
        try:
            return cast(Function, numba.njit(nogil=True, cache=True, **options)(function))
        except RuntimeError:  # numba found no directory that it may write to
            return cast(Function, numba.njit(nogil=True, **options)(function))

    return compiled


@jit(error_model="numpy")
def _exp(x: Any) -> Any:
    """Return exp(x) of a float32 x <= 0 within 2 units in the last place; 0 below -87.

    Written out because the compiler can vectorise this one, and not the library's. exp(x) = 2^n · exp(r), with
    |r| <= ln 2 / 2, for which eight terms of the series do.
    """
    shifted = x * LOG2_E + ROUNDER
    n = shifted - ROUNDER
    r = x - n * LN2_HIGH - n * LN2_LOW
    series = ONE + r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * C7))))))
    power = np.int32((np.float32(shifted).view(np.int32) + 127) << 23).view(np.float32)
    return NONE if x < LEAST else series * power


@jit()
def _ordered(bits: Any) -> Any:
    """Return the bits of a float32 as an int32 that is ordered as the numbers are, NaN above all; and back again."""
    return np.int32(bits ^ ((bits >> 31) & 0x7FFFFFFF))


@jit()
def _largest(row: Array) -> Any:
    """Return the largest of a row. By integers for float32, because only those the compiler vectorises here."""
    if row.itemsize == 4:
        bits: Array = row.view(np.int32)
        most = _ordered(bits[0])
        for i in range(1, len(bits)):
            most = max(most, _ordered(bits[i]))
        return row.dtype.type(np.int32(_ordered(most)).view(np.float32))
    largest = row[0]
    for i in range(1, len(row)):
        largest = max(largest, row[i])
    return largest


@jit(fastmath={"reassoc"})
def _sum(row: Array) -> Any:
    total = row[0]
    for i in range(1, len(row)):
        total += row[i]
    return total


@jit(error_model="numpy")
def _exp_row(row: Array, largest: Any, out: Array) -> None:
    """Write exp(row - largest); float64 by the library's exp, float32 by ours."""
    if row.itemsize == 4:
        for i in range(len(row)):
            out[i] = _exp(np.float32(row[i] - largest))
    else:
        for i in range(len(row)):
            out[i] = np.exp(row[i] - largest)


@jit(error_model="numpy")
def score_frames(
    logits: Array, labels: Array, states: int, blank: int, normalise: bool, by_blank: Array, by_label: Array
) -> None:
    """Write the log-probabilities of blank and label for frames of one utterance: logits (T, S, V), others (T, S)."""
    scratch = np.empty(logits.shape[2], logits.dtype)
    for t in range(len(logits)):
        for s in range(states):
            row = logits[t, s]
            scale = 0.0
            if normalise:
                largest = _largest(row)
                _exp_row(row, largest, scratch)
                scale = np.float64(largest) + np.log(np.float64(_sum(scratch)))
            by_blank[t, s] = np.float64(row[blank]) - scale
            if labels[t, s] >= 0:
                by_label[t, s] = np.float64(row[labels[t, s]]) - scale


@jit(error_model="numpy")
def gradient_frames(
    logits: Array,
    labels: Array,
    states: int,
    blank: int,
    normalise: bool,
    blank_use: Array,
    label_use: Array,
    weight: float,
    clamp: float,
    out: Array,
) -> None:
    """Write the gradient for frames of one utterance: logits and out (T, S, V), the others (T, S)."""
    for t in range(len(logits)):
        for s in range(states):
            row, result = logits[t, s], out[t, s]
            if normalise:
                _exp_row(row, _largest(row), result)
                use = (blank_use[t, s] + label_use[t, s]) * weight / np.float64(_sum(result))
                _multiply(result, result.dtype.type(use))
            else:
                result[:] = 0
            result[blank] -= blank_use[t, s] * weight
            if labels[t, s] >= 0:
                result[labels[t, s]] -= label_use[t, s] * weight
            if clamp > 0:
                for i in range(len(result)):
                    result[i] = min(max(result[i], -clamp), clamp)
        out[t, states:] = 0


@jit()
def _multiply(row: Array, factor: Any) -> None:
    for i in range(len(row)):
        row[i] *= factor


@jit(error_model="numpy")
def add_logs(a: Any, b: Any) -> Any:
    """Return log(exp(a) + exp(b)) of two float64; -inf where both are."""
    if a < b:
        a, b = b, a
    if b == -np.inf:
        return a
    return a + np.log1p(np.exp(b - a))


@jit(error_model="numpy")
def fill_alpha(by_blank: Array, by_label: Array, alpha: Array) -> Any:
    """Write log α of one utterance, all of shape (T, U + 1), and return its log-likelihood."""
    frames, states = alpha.shape
    for t in range(frames):
        for u in range(states):
            from_blank = alpha[t - 1, u] + by_blank[t - 1, u] if t else -np.inf
            from_label = alpha[t, u - 1] + by_label[t, u - 1] if u else -np.inf
            alpha[t, u] = add_logs(from_blank, from_label) if t or u else 0.0
    return alpha[frames - 1, states - 1] + by_blank[frames - 1, states - 1]


@jit(error_model="numpy")
def fill_posteriors(
    by_blank: Array, by_label: Array, alpha: Array, likelihood: float, uses: tuple[Array, Array]
) -> None:
    """Write how probable it is that each cell of one utterance is left by blank and by its label, going backwards."""
    frames, states = alpha.shape
    blank_use, label_use = uses
    beta = np.full(states + 1, -np.inf)  # of frame t + 1 up to state u, of frame t above it
    beta[states - 1] = 0.0
    for t in range(frames - 1, -1, -1):
        for u in range(states - 1, -1, -1):
            leave_by_blank = by_blank[t, u] + beta[u]
            leave_by_label = by_label[t, u] + beta[u + 1]
            start = alpha[t, u] - likelihood
            blank_use[t, u] = np.exp(start + leave_by_blank)
            label_use[t, u] = np.exp(start + leave_by_label)
            beta[u] = add_logs(leave_by_blank, leave_by_label)


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
        score_frames(inputs[at], labels[at], *options, by_blank[at], by_label[at])

    share(score, _pieces(rows.frames))
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
        gradient_frames(inputs[at], labels[at], *options, by_blank[at], by_label[at], weight, clamp, out[at])
        if clamp > 0:
            out[at] *= weight_of[b]

    share(differentiate, _pieces(rows.frames))
    for utterance, frames in enumerate(rows.frames):
        result[utterance, frames:] = 0
    return result


def log_likelihood(blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Do what `lattice.log_likelihood` does."""
    result = torch.empty(sizes.batch, dtype=torch.float64)
    by_blank, by_label, out = blank.numpy(), emit.numpy(), result.numpy()

    def add_up(b: int) -> None:
        cells = b, slice(sizes.frames[b]), slice(sizes.labels[b] + 1)
        out[b] = fill_alpha(by_blank[cells], by_label[cells], torch.empty_like(blank[cells]).numpy())

    share(add_up, ((b,) for b in range(sizes.batch)))
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
        total = fill_alpha(by_blank[cells], by_label[cells], alpha)
        likelihood[b] = total
        if total != -torch.inf:
            uses = by_blank_use[cells], by_label_use[cells]
            fill_posteriors(by_blank[cells], by_label[cells], alpha, total, uses)

    share(attribute, ((b,) for b in range(sizes.batch)))
    return likelihood, blank_use, label_use


def _pieces(frames: tuple[int, ...]) -> Iterable[tuple[int, slice]]:
    for utterance, count in enumerate(frames):
        for start in range(0, count, FRAMES_AT_ONCE):
            yield utterance, slice(start, min(start + FRAMES_AT_ONCE, count))


def share(task: Callable[..., None], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Call `task` with each of `arguments`, in torch's number of threads; raise what a call raised."""
    threads = torch.get_num_threads()
    if threads == 1:
        for _ in starmap(task, arguments):
            pass
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda given: task(*given), arguments):
            pass
