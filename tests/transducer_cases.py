"""Batches for the transducer losses, and ways to hold two losses against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from unittest.mock import patch

import pytest
import torch

from speechmeter.transducer import differentiable, engines

NEEDS_NUMBA = pytest.mark.skipif(
    find_spec("numba") is None, reason="numba is not installed: pip install 'speechmeter[transducer]'"
)
ENGINES = ["torch", pytest.param("numba", marks=NEEDS_NUMBA)]
Loss = Callable[..., torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The arguments of a loss; `sizes` are the pairs (frames, labels)."""

    logits: torch.Tensor
    targets: torch.Tensor
    logit_lengths: torch.Tensor
    target_lengths: torch.Tensor
    sizes: Sequence[tuple[int, int]]

    @property
    def arguments(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """All but the logits, in order."""
        return self.targets, self.logit_lengths, self.target_lengths

    def with_padding(self, value: float) -> torch.Tensor:
        """The logits with `value` wherever an utterance has no cell."""
        logits = self.logits.clone()
        for row, (frames, labels) in zip(logits, self.sizes, strict=True):
            row[frames:] = value
            row[:, labels + 1 :] = value
        return logits


def make_batch(
    sizes: Sequence[tuple[int, int]], vocabulary: int, dtype: torch.dtype = torch.float64, seed: int = 0
) -> Batch:
    """Normal logits and uniform targets, padded to the largest sizes."""
    generator = torch.Generator().manual_seed(seed)
    frames, labels = torch.tensor(sizes).unbind(1)
    shape = len(sizes), int(frames.max()), int(labels.max()) + 1, vocabulary
    return Batch(
        logits=torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype),
        targets=torch.randint(vocabulary, (shape[0], shape[2] - 1), generator=generator),
        logit_lengths=frames,
        target_lengths=labels,
        sizes=sizes,
    )


@contextmanager
def using(engine: str) -> Iterator[None]:
    """Compute by one engine; it must take the logits, or the test would not test what it says."""

    def chosen(logits: torch.Tensor) -> engines.Engine:
        if engine == "torch":
            return engines.TORCH
        found = engines.engine_for(logits)
        assert found.name == engine, f"{engine} refuses these logits"
        return found

    with patch.object(differentiable, "engine_for", chosen), patch.object(differentiable, "engine_for_cells", chosen):
        yield


def with_gradient(loss: Loss, logits: torch.Tensor, *arguments: object, **options: object) -> tuple[torch.Tensor, ...]:
    """The losses of a batch and the gradient of their sum."""
    logits = logits.detach().clone().requires_grad_()
    losses = loss(logits, *arguments, reduction="none", **options)
    losses.sum().backward()
    assert logits.grad is not None
    return losses.detach(), logits.grad


def relative_error(found: torch.Tensor, truth: torch.Tensor) -> float:
    """The largest relative L2 distance over the utterances."""
    found, truth = found.double().flatten(1), truth.double().flatten(1)
    return float(((found - truth).norm(dim=1) / truth.norm(dim=1).clamp(min=1e-30)).max())
