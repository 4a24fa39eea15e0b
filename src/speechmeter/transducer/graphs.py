"""A loss in CUDA graphs: captured once for each bucket of shapes, then replayed, so that the host launches little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from speechmeter.transducer.errors import GraphOrderError, OptionError

WARM_UPS = 3
"""Calls before a capture: kernels are compiled, and libraries take their memory, outside of the graph."""
Loss = Callable[..., torch.Tensor]


def graphed(loss: Loss, *, frames: int = 32, labels: int = 8, most: int = 64) -> Graphed:
    """Return the loss, replayed from CUDA graphs.

    `loss(encoder, predictor, targets, logit_lengths, target_lengths, *parameters)` returns a tensor, launches the same
    kernels for the same shapes, and reads no value on the host: give `check=False` to the losses inside. Shapes are
    filled up to multiples of `frames` frames and `labels` labels, and each that occurs is captured once; after `most`
    of them the loss is called as it is. So it is on the CPU, and where no gradient is wanted.
    """
    for name, value, least in (("frames", frames, 1), ("labels", labels, 1), ("most", most, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise OptionError(f"{name} is {value!r}; give a whole number of at least {least}")
    return Graphed(loss, frames, labels, most)


class Graphed:
    """A loss and its captures, see `graphed`. All share memory: a batch's backward pass must precede the next batch."""

    def __init__(self, loss: Loss, frames: int, labels: int, most: int) -> None:
        self._loss, self._frames, self._labels, self._most = loss, frames, labels, most
        self._captures: dict[Any, _Capture] = {}
        self._pool: Any = None
        self.turn = 0

    def __call__(
        self,
        encoder: torch.Tensor,
        predictor: torch.Tensor,
        targets: torch.Tensor,
        logit_lengths: torch.Tensor,
        target_lengths: torch.Tensor,
        *parameters: torch.Tensor,
    ) -> torch.Tensor:
        """Return the loss of a batch, differentiable in encoder, predictor and parameters."""
        given = encoder, predictor, targets, logit_lengths, target_lengths, *parameters
        if not (encoder.is_cuda and torch.is_grad_enabled() and any(one.requires_grad for one in given)):
            return self._loss(*given)
        capture = self._capture(given)
        if capture is None:
            return self._loss(*given)
        self.turn += 1
        replayed: torch.Tensor = _Replay.apply(self, capture, *given)
        return replayed

    def _capture(self, given: Sequence[torch.Tensor]) -> _Capture | None:
        shapes = self._shapes(given)
        kinds = [(one.dtype, one.requires_grad) for one in given]
        key = tuple(shapes), tuple(kinds), given[0].device, *_modes()
        if key not in self._captures and len(self._captures) < self._most:
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            with torch.cuda.device(given[0].device):
                self._captures[key] = _Capture(self._loss, given, shapes, self._pool)
        return self._captures.get(key)

    def _shapes(self, given: Sequence[torch.Tensor]) -> list[tuple[int, ...]]:
        """Return the shapes of a batch, filled up to whole buckets."""
        encoder, predictor, targets, *others = (tuple(one.shape) for one in given)
        frames, labels = _filled(encoder[1], self._frames), _filled(targets[1], self._labels)
        sides = (encoder[0], frames, *encoder[2:]), (predictor[0], labels + 1, *predictor[2:])
        return [*sides, (targets[0], labels), *others]


class _Capture:
    """One bucket: what goes in, the two graphs, and what comes out, each always in the same place."""

    def __init__(self, loss: Loss, given: Sequence[torch.Tensor], shapes: Sequence[tuple[int, ...]], pool: Any) -> None:
        device = given[0].device
        self._inputs = [
            torch.zeros(shape, dtype=one.dtype, device=device).requires_grad_(one.requires_grad)
            for one, shape in zip(given, shapes, strict=True)
        ]
        self._leaves = [one for one in self._inputs if one.requires_grad]
        self._fill(given)
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream), _uncached():
            for _ in range(WARM_UPS):
                self._backward_of(loss(*self._inputs))
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with _uncached():
            with torch.cuda.graph(self._graphs[0], pool=pool):
                value = loss(*self._inputs)
            self._weight = torch.ones_like(value)
            with torch.cuda.graph(self._graphs[1], pool=pool):
                self._gradients = torch.autograd.grad(value, self._leaves, self._weight, allow_unused=True)
        self._value = value.detach()

    def forward(self, given: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the loss of a batch."""
        self._fill(given)
        self._graphs[0].replay()
        return self._value.clone()

    def backward(self, weight: torch.Tensor, shapes: Sequence[torch.Size | None]) -> list[torch.Tensor | None]:
        """Return the gradients of what was given with these shapes; None for what takes none."""
        self._weight.copy_(weight)
        self._graphs[1].replay()
        found = iter(self._gradients)
        return [None if shape is None else _cut(next(found), shape) for shape in shapes]

    def _fill(self, given: Sequence[torch.Tensor]) -> None:
        with torch.no_grad():
            for place, one in zip(self._inputs, given, strict=True):
                place[tuple(slice(length) for length in one.shape)].copy_(one, non_blocking=True)

    def _backward_of(self, value: torch.Tensor) -> None:
        torch.autograd.grad(value, self._leaves, torch.ones_like(value), allow_unused=True)


class _Replay(torch.autograd.Function):  # type: ignore[misc]
    """The loss of a capture, between the graphs around it."""

    @staticmethod
    def forward(ctx: Any, owner: Graphed, capture: _Capture, *given: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        ctx.owner, ctx.capture, ctx.turn = owner, capture, owner.turn
        ctx.shapes = [one.shape if one.requires_grad else None for one in given]
        return capture.forward(given)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, weight: torch.Tensor) -> tuple[Any, ...]:
        """Return the gradients, in tensors of their own."""
        if ctx.turn != ctx.owner.turn:
            raise GraphOrderError(
                "the loss of another batch was computed before the backward pass of this one, and has overwritten what "
                "it needs; call backward() on each loss before the next batch, or use a second graphed loss"
            )
        return None, None, *ctx.capture.backward(weight, ctx.shapes)


def _cut(gradient: torch.Tensor | None, shape: torch.Size) -> torch.Tensor | None:
    return None if gradient is None else gradient[tuple(slice(length) for length in shape)].clone()


def _filled(length: int, bucket: int) -> int:
    return -(-length // bucket) * bucket


def _modes() -> tuple[Any, ...]:
    """Return what of torch's state a capture holds fast."""
    half = torch.is_autocast_enabled("cuda")
    return torch.backends.cuda.matmul.allow_tf32, half, torch.get_autocast_dtype("cuda") if half else None


def _uncached() -> torch.autocast:
    """Autocast as it is, without its cache of weights, which would outlive the capture."""
    _, half, kind = _modes()
    return torch.autocast("cuda", dtype=kind, enabled=half, cache_enabled=False)
