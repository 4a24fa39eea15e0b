"""Layers with learnt scales, from which the published Conformer transducer is built. Imports torch.

A weight is multiplied by the exponential of a scalar that is learnt beside it, and so is a bias; a norm divides by the
root mean square and has one scalar. They cost little, and they count: the published number of parameters has them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


def _scale() -> nn.Parameter:
    return nn.Parameter(torch.zeros(()))


class ScaledLinear(nn.Linear):  # type: ignore[misc]
    """A linear layer with a scale for its weight and one for its bias."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self.weight_scale = _scale()
        self.bias_scale = _scale() if bias else None

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(…, inputs) → (…, outputs)."""
        return functional.linear(values, *_scaled(self))


class ScaledConv1d(nn.Conv1d):  # type: ignore[misc]
    """The same over time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.weight_scale = _scale()
        self.bias_scale = _scale() if self.bias is not None else None

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(items, channels, frames) → the same with the layer's channels."""
        return self._conv_forward(values, *_scaled(self))


class ScaledConv2d(nn.Conv2d):  # type: ignore[misc]
    """The same over time and frequency."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.weight_scale = _scale()
        self.bias_scale = _scale() if self.bias is not None else None

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(items, channels, frames, bands) → the same with the layer's channels."""
        return self._conv_forward(values, *_scaled(self))


class ScaledEmbedding(nn.Embedding):  # type: ignore[misc]
    """A table of vectors with one scale."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__(count, width)
        self.scale = _scale()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(…) → (…, width)."""
        return functional.embedding(ids, self.weight * self.scale.exp())


class RootMeanSquareNorm(nn.Module):  # type: ignore[misc]
    """Divide by the root of the mean square plus a number, which is learnt unless it is fixed."""

    def __init__(self, *, learnt: bool = True) -> None:
        super().__init__()
        start = torch.tensor(0.25).log()
        if learnt:
            self.epsilon = nn.Parameter(start)
        else:
            self.register_buffer("epsilon", start)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Over the last dimension."""
        return values * (values.square().mean(dim=-1, keepdim=True) + self.epsilon.exp()).rsqrt()


class DoubleSwish(nn.Module):  # type: ignore[misc]
    """x · sigmoid(x − 1)."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Element by element."""
        return values * torch.sigmoid(values - 1.0)


def _scaled(layer: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    bias = None if layer.bias is None else layer.bias * layer.bias_scale.exp()
    return layer.weight * layer.weight_scale.exp(), bias
