"""What a loss is called with, and what an implementation offers. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

BLANK = 0
"""The id of blank in every call."""


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Targets (B, U) and the true lengths (B,) on the device; `sizes` are the pairs (frames, labels) on the host."""

    targets: torch.Tensor
    frames: torch.Tensor
    labels: torch.Tensor
    sizes: tuple[tuple[int, int], ...]

    @classmethod
    def drawn(cls, sizes: Sequence[tuple[int, int]], vocabulary: int, integers: str, draw: torch.Generator) -> Labels:
        """Targets from 1 to `vocabulary` - 1, blank being 0, on the device of the generator."""
        device, kind = draw.device, getattr(torch, integers)
        longest = max(labels for _, labels in sizes)
        targets = torch.randint(1, vocabulary, (len(sizes), longest), generator=draw, device=device)
        frames, labels = torch.tensor(sizes, dtype=kind, device=device).unbind(1)
        return cls(targets=targets.to(kind), frames=frames.contiguous(), labels=labels.contiguous(), sizes=tuple(sizes))

    def to(self, device: str) -> Labels:
        """The same on another device."""
        return replace(
            self, targets=self.targets.to(device), frames=self.frames.to(device), labels=self.labels.to(device)
        )

    @property
    def arguments(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Targets, frames and labels: the order in which most losses take them, after the logits."""
        return self.targets, self.frames, self.labels

    @property
    def padded(self) -> tuple[int, int, int]:
        """(B, T, U + 1) of the padded batch."""
        return len(self.sizes), max(t for t, _ in self.sizes), max(u for _, u in self.sizes) + 1


Exact = Callable[[torch.Tensor, Labels], torch.Tensor]
"""Logits, padded or packed as declared, to the loss of each utterance; of one that has no such thing, their sum."""


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """A pruned loss in its steps.

    `ranges(encoder, predictor, labels, states)` returns where to look, and what its caller would hold beside it;
    `join(encoder, predictor, ranges, states)` the sum of both in range, (B, T, S, C); `loss(logits, labels, ranges)`
    the loss of each utterance.
    """

    ranges: Callable[[torch.Tensor, torch.Tensor, Labels, int], tuple[Any, Any]]
    join: Callable[[torch.Tensor, torch.Tensor, Any, int], torch.Tensor]
    loss: Callable[[torch.Tensor, Labels, Any], torch.Tensor]


Sides = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""Outputs of encoder and predictor, weight and bias of the joiner."""


@dataclass(frozen=True, kw_only=True)
class Joint:
    """A loss that computes the joiner itself: `loss(sides, labels, ranges, states)` is the loss of each utterance.

    `ranges` is that of `Pruned`, and None for one that is exact; its loss is then called with ranges of None.
    """

    loss: Callable[[Sides, Labels, Any, int], torch.Tensor]
    ranges: Callable[[torch.Tensor, torch.Tensor, Labels, int], tuple[Any, Any]] | None = None


def packed(padded: torch.Tensor, labels: Labels) -> torch.Tensor:
    """The true cells of (B, T, U + 1, V), utterance after utterance: (Σ T · (U + 1), V)."""
    rows = zip(padded.unbind(0), labels.sizes, strict=True)
    return torch.cat([row[:frames, : count + 1].flatten(0, 1) for row, (frames, count) in rows])
