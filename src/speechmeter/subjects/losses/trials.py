"""What a loss is tried on before it is measured: random logits, and the edges where implementations differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from speechmeter.subjects.losses.call import Labels
from speechmeter.subjects.losses.known import (
    FEW_FRAMES,
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
_SEVERAL: Sizes = ((20, 7), (13, 9), (9, 2))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Sizes (frames, labels) and how the logits are laid out. `integers` absent: those that a loss prefers."""

    name: str
    sizes: Sizes = _SEVERAL
    vocabulary: int = 23
    scale: float = 1.0
    padding: float | None = None
    integers: str | None = None
    contiguous: bool = True

    def refused_by(self, known: Known) -> str | None:
        """Why a loss that says what it cannot take is not tried on this; None when it is."""
        if self.integers is not None and self.integers not in known.integers:
            return f"takes {' or '.join(known.integers)} alone"
        return known.cannot.get(self.name)

    def draw(self, seed: int, dtype: torch.dtype, integers: str) -> tuple[torch.Tensor, Labels]:
        """Normal logits (B, T, U + 1, V) and targets, on the CPU: the same for every device."""
        generator = torch.Generator().manual_seed(seed)
        labels = Labels.drawn(self.sizes, self.vocabulary, self.integers or integers, generator)
        logits = torch.randn((*labels.padded, self.vocabulary), generator=generator) * self.scale
        if self.padding is not None:
            for row, (frames, count) in zip(logits, self.sizes, strict=True):
                row[frames:] = self.padding
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


def laid_out(logits: torch.Tensor, contiguous: bool) -> torch.Tensor:
    """The same logits, with the last two dimensions the other way round in memory where asked."""
    return logits if contiguous else logits.transpose(2, 3).contiguous().transpose(2, 3)
