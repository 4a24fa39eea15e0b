"""What a loss is tried on: random logits and the edges where implementations differ, and two sizes of a whole step.

Imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from speechmeter.core.metrics import SHARED_TRIAL
from speechmeter.subjects.losses.call import Labels
from speechmeter.subjects.losses.known import (
    FEW_FRAMES,
    FRAMES,
    INT32,
    INT64,
    LARGE,
    NAN_PADDING,
    NO_LABEL,
    NOT_CONTIGUOUS,
    ONE,
    ONE_FRAME,
    ORIGINAL_SIZE,
    RANDOM,
    Known,
)

Sizes = Sequence[tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Sizes (frames, labels) and how the logits are laid out. Without `integers`: those that a loss prefers."""

    name: str
    sizes: Sizes = ((20, 7), (13, 9), (9, 2))
    vocabulary: int = 23
    scale: float = 1.0
    padding: float | None = None
    integers: str | None = None
    contiguous: bool = True

    def refused_by(self, known: Known) -> str | None:
        """Why a loss that declares what it cannot take is not tried on this; None when it is."""
        if self.integers is not None and self.integers not in known.integers:
            return f"takes only {' or '.join(known.integers)}"
        return known.cannot.get(self.name)

    def draw(self, seed: int, dtype: torch.dtype, known: Known) -> tuple[torch.Tensor, Labels]:
        """Normal logits as a loss takes them, padded, and targets, on the CPU: the same for every device."""
        generator = torch.Generator().manual_seed(seed)
        labels = Labels.drawn(self.sizes, self.vocabulary, self.integers or known.integers[0], generator)
        cells = labels.padded[:2] if known.layout == FRAMES else labels.padded
        outputs = self.vocabulary + known.outputs_beside_ids
        logits = torch.randn((*cells, outputs), generator=generator) * self.scale
        if self.padding is not None:
            for row, (frames, count) in zip(logits, self.sizes, strict=True):
                row[frames:] = self.padding
                if known.layout != FRAMES:
                    row[:, count + 1 :] = self.padding
        return logits.to(dtype), labels


TRIALS: tuple[Trial, ...] = (
    Trial(name=RANDOM),
    Trial(name=ORIGINAL_SIZE, sizes=((343, 80),), vocabulary=500),
    Trial(name=ONE, sizes=((12, 5),)),
    Trial(name=FEW_FRAMES, sizes=((3, 8), (2, 6))),
    Trial(name=NO_LABEL, sizes=((9, 0), (7, 4))),
    Trial(name=ONE_FRAME, sizes=((1, 1), (6, 3))),
    Trial(name=NAN_PADDING, padding=float("nan")),
    Trial(name=LARGE, scale=3000.0),
    Trial(name=INT32, integers=INT32),
    Trial(name=INT64, integers=INT64),
    Trial(name=NOT_CONTIGUOUS, contiguous=False),
)


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Uniform outputs of encoder and predictor and a joiner's weight, distributed as in the step that is measured.

    A pruned loss computes `states` states of a frame; all of them, or as many as the case asks for where it is None.
    """

    name: str
    sizes: Sizes
    width: int
    vocabulary: int
    states: int | None = None

    def draw(self, seed: int, dtype: torch.dtype, known: Known) -> tuple[Labels, list[torch.Tensor]]:
        """Labels; and encoder, predictor, weight. On the CPU."""
        generator = torch.Generator().manual_seed(seed)
        labels = Labels.drawn(self.sizes, self.vocabulary, known.integers[0], generator)
        items, frames, states = labels.padded
        outputs = self.vocabulary + known.outputs_beside_ids
        shapes = (items, frames, self.width), (items, states, self.width), (self.width, outputs)
        encoder, predictor, weight = (torch.rand(shape, generator=generator) for shape in shapes)
        weight = (2 * weight - 1) / self.width**0.5
        return labels, [encoder.to(dtype), predictor.to(dtype), weight.to(dtype)]


SMALL_STEP = Sides(name="small step, all states", sizes=((60, 14), (43, 9)), width=32, vocabulary=23, states=15)
WHOLE_STEP = Sides(name=SHARED_TRIAL, sizes=((343, 80),), width=512, vocabulary=500)
"""The trial that all losses have in common, so that deviations of different kinds can stand side by side."""
