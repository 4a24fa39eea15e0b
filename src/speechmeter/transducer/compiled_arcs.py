"""The lattice whose arcs may skip frames, compiled: loops over one utterance at a time; see `arcs`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from speechmeter.transducer.arcs import Durations
from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.compiled import Array, add_logs, jit, share


@jit(error_model="numpy")
def fill_alpha(blank: Array, emit: Array, blank_steps: Any, label_steps: Any, alpha: Array) -> float:
    """Write log α of one utterance, (T + 1, U + 1), and return its log-likelihood; arcs are (T, U + 1, durations)."""
    frames, states = alpha.shape[0] - 1, alpha.shape[1]
    for t in range(frames + 1):
        for u in range(states):
            total = 0.0 if t == 0 and u == 0 else -np.inf
            for k in range(len(blank_steps)):
                before = t - blank_steps[k]
                if before >= 0:
                    total = add_logs(total, alpha[before, u] + blank[before, u, k])
            for k in range(len(label_steps)):
                before = t - label_steps[k]
                if u > 0 and 0 <= before < frames:
                    total = add_logs(total, alpha[before, u - 1] + emit[before, u - 1, k])
            alpha[t, u] = total
    return float(alpha[frames, states - 1])


@jit(error_model="numpy")
def fill_posteriors(
    blank: Array,
    emit: Array,
    blank_steps: Any,
    label_steps: Any,
    alpha: Array,
    likelihood: float,
    uses: tuple[Array, Array],
) -> None:
    """Write how probable it is that each arc of one utterance is taken, going backwards."""
    frames, states = alpha.shape[0] - 1, alpha.shape[1]
    blank_use, label_use = uses
    beta = np.full((frames + 1, states), -np.inf)
    beta[frames, states - 1] = 0.0
    for t in range(frames - 1, -1, -1):
        for u in range(states - 1, -1, -1):
            total = -np.inf
            start = alpha[t, u] - likelihood
            for k in range(len(blank_steps)):
                after = t + blank_steps[k]
                if after <= frames:
                    leave = blank[t, u, k] + beta[after, u]
                    blank_use[t, u, k] = np.exp(start + leave)
                    total = add_logs(total, leave)
            for k in range(len(label_steps)):
                after = t + label_steps[k]
                if u + 1 < states and after <= frames:
                    leave = emit[t, u, k] + beta[after, u + 1]
                    label_use[t, u, k] = np.exp(start + leave)
                    total = add_logs(total, leave)
            beta[t, u] = total


def posteriors(
    blank: torch.Tensor, emit: torch.Tensor, sizes: Sizes, durations: Durations
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Do what `arcs.posteriors` does."""
    likelihood = torch.empty(sizes.batch, dtype=torch.float64)
    blank_use, label_use = torch.zeros_like(blank), torch.zeros_like(emit)
    by_blank, by_label, by_blank_use, by_label_use = (arcs.numpy() for arcs in (blank, emit, blank_use, label_use))
    steps = np.array(durations.blank), np.array(durations.label)

    def attribute(b: int) -> None:
        frames, states = sizes.frames[b], sizes.labels[b] + 1
        cells = b, slice(frames), slice(states)
        alpha = np.empty((frames + 1, states))
        total = fill_alpha(by_blank[cells], by_label[cells], *steps, alpha)
        likelihood[b] = total
        if total != -np.inf:
            uses = by_blank_use[cells], by_label_use[cells]
            fill_posteriors(by_blank[cells], by_label[cells], *steps, alpha, total, uses)

    share(attribute, ((b,) for b in range(sizes.batch)))
    return likelihood, blank_use, label_use
