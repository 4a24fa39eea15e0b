"""Does a loss agree with the oracle? Asked before anything of it is timed. Imports torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isnan

import torch

from speechmeter.core import metrics
from speechmeter.core.errors import DisagreementError
from speechmeter.core.types import Measurement
from speechmeter.subjects.losses.call import BLANK, Exact, Labels, Pruned, packed
from speechmeter.subjects.losses.known import LARGE, PACKED, Known
from speechmeter.subjects.losses.trials import TRIALS, Trial, laid_out
from speechmeter.transducer import oracle_loss

_TOLD = 3


@dataclass(frozen=True, kw_only=True)
class _Joint:
    """Uniform outputs of encoder and predictor and a joiner's weight, distributed as in the step that is measured."""

    name: str
    sizes: tuple[tuple[int, int], ...]
    width: int
    vocabulary: int

    def draw(
        self, seed: int, dtype: torch.dtype, integers: str
    ) -> tuple[Labels, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Labels, encoder, predictor, weight; on the CPU."""
        generator = torch.Generator().manual_seed(seed)
        labels = Labels.drawn(self.sizes, self.vocabulary, integers, generator)
        items, frames, states = labels.padded
        shapes = (items, frames, self.width), (items, states, self.width), (self.width, self.vocabulary)
        encoder, predictor, weight = (torch.rand(shape, generator=generator) for shape in shapes)
        weight = (2 * weight - 1) / self.width**0.5
        return labels, encoder.to(dtype), predictor.to(dtype), weight.to(dtype)


_SMALL = _Joint(name="all states in range", sizes=((60, 14), (43, 9)), width=32, vocabulary=23)
_LARGE = _Joint(name="{states} states in range, original size", sizes=((343, 80),), width=512, vocabulary=500)


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """How far a loss is from the oracle on one trial, or why it was not tried.

    `loss` and `gradient` are relative distances, the worst utterance's. `judged` ones have an allowed size.
    """

    name: str
    loss: float = 0.0
    gradient: float = 0.0
    allowed_loss: float = 0.0
    allowed_gradient: float = 0.0
    judged: bool = True
    skipped: str | None = None

    def faults(self) -> list[str]:
        """What is beyond the allowed, in words; a NaN always is."""
        if self.skipped is not None or not self.judged:
            return []
        rows = (("loss", self.loss, self.allowed_loss), ("gradient", self.gradient, self.allowed_gradient))
        return [f"{what} {_said(found)} (allowed {allowed:.0e}) on {self.name}" for what, found, allowed in rows
                if not found <= allowed]  # fmt: skip


def deviations(
    known: Known, loss: Exact, device: str, dtype: torch.dtype, seed: int, trials: Sequence[Trial] | None = None
) -> list[Deviation]:
    """An exact loss against the oracle on every trial that it takes; on all of them, unless told."""
    return [_deviation(known, loss, device, dtype, seed, trial) for trial in (TRIALS if trials is None else trials)]


def pruned_deviations(
    known: Known, pruned: Pruned, device: str, dtype: torch.dtype, seed: int, states: int
) -> list[Deviation]:
    """A pruned loss against the oracle: with all states in range it must agree, with fewer the deviation is shown."""
    everything = max(labels for _, labels in _SMALL.sizes) + 1
    with _without_tf32():
        return [
            _pruned_deviation(known, pruned, device, dtype, seed, _SMALL, everything),
            _pruned_deviation(known, pruned, device, dtype, seed, _LARGE, states),
        ]


@contextmanager
def _without_tf32() -> Iterator[None]:
    """The joiner that a pruned loss is tried with multiplies in full: it is the loss that is judged."""
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


def check(found: Iterable[Deviation]) -> None:
    """Raise DisagreementError when a deviation is beyond what is allowed."""
    faults = [fault for deviation in found for fault in deviation.faults()]
    if faults:
        more = f"; and {len(faults) - _TOLD} more" if len(faults) > _TOLD else ""
        raise DisagreementError(f"disagrees with the oracle: {'; '.join(faults[:_TOLD])}{more}")


def measurements(found: Sequence[Deviation]) -> list[Measurement]:
    """Both deviations of each trial by its name, and in total the worst of all that were tried."""
    tried = [deviation for deviation in found if deviation.skipped is None]
    notes = {} if all(deviation.judged for deviation in tried) else {"judged": False}
    worst = (
        (metrics.LOSS_DEVIATION, [d.loss for d in tried]),
        (metrics.GRADIENT_DEVIATION, [d.gradient for d in tried]),
    )
    total = [Measurement.of(metric, [max(values)], source="oracle", notes=notes) for metric, values in worst]
    return [*total, *(row for deviation in found for row in _rows(deviation))]


def _rows(deviation: Deviation) -> list[Measurement]:
    scope = f"label:{deviation.name}"
    both = (
        (metrics.LOSS_DEVIATION, deviation.loss, deviation.allowed_loss),
        (metrics.GRADIENT_DEVIATION, deviation.gradient, deviation.allowed_gradient),
    )
    if deviation.skipped is not None:
        return [Measurement.absent(metric, deviation.skipped, scope=scope) for metric, _, _ in both]
    return [
        Measurement.of(metric, [value], scope=scope, source="oracle",
                       notes={"allowed": allowed} if deviation.judged else {"judged": False})
        for metric, value, allowed in both
    ]  # fmt: skip


def _deviation(known: Known, loss: Exact, device: str, dtype: torch.dtype, seed: int, trial: Trial) -> Deviation:
    refused = trial.refused_by(known)
    if refused is not None:
        return Deviation(name=trial.name, skipped=refused)
    logits, labels = trial.draw(seed, dtype, known.integers[0])
    truth, true_gradient = _truth(logits, labels)
    leaf = laid_out(logits.to(device), trial.contiguous).requires_grad_()
    given = packed(leaf, labels) if known.layout == PACKED else leaf.clone() if known.in_place else leaf
    losses = loss(given, labels.to(device))
    losses.sum().backward()
    assert leaf.grad is not None
    return _judged(known, trial.name, dtype, (losses.detach(), leaf.grad), (truth, true_gradient))


def _judged(
    known: Known,
    name: str,
    dtype: torch.dtype,
    found: tuple[torch.Tensor, torch.Tensor],
    truth: tuple[torch.Tensor, torch.Tensor],
    judged: bool = True,
) -> Deviation:
    allowed = known.tolerance
    gradient = allowed.large_gradient if name == LARGE else allowed.gradient
    return Deviation(
        name=name,
        loss=_loss_distance(found[0], truth[0]),
        gradient=_distance(found[1].flatten(1), truth[1].flatten(1)),
        allowed_loss=allowed.loss,
        allowed_gradient=gradient + _rounding(dtype),
        judged=judged,
    )


def _rounding(dtype: torch.dtype) -> float:
    """A gradient that is stored in half precision is rounded to it, whoever computed it."""
    return 0.0 if dtype == torch.float32 else float(torch.finfo(dtype).eps)


def _truth(logits: torch.Tensor, labels: Labels) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and gradient in float64 of the logits as they are, rounded to their dtype."""
    exact = logits.detach().double().requires_grad_()
    losses = oracle_loss(exact, labels.targets, labels.frames, labels.labels, blank=BLANK, reduction="none")
    (gradient,) = torch.autograd.grad(losses.sum(), exact)
    return losses.detach(), gradient


def _loss_distance(found: torch.Tensor, truth: torch.Tensor) -> float:
    """By utterance; of a loss that gives only their sum, that of the sum."""
    if found.numel() == 1:
        truth = truth.sum()
    return _distance(found.reshape(-1, 1), truth.reshape(-1, 1))


def _distance(found: torch.Tensor, truth: torch.Tensor) -> float:
    """The largest relative L2 distance of the rows; NaN when there is one anywhere."""
    found, truth = found.double().cpu(), truth.double().cpu()
    return float(((found - truth).norm(dim=1) / truth.norm(dim=1).clamp(min=1e-30)).max())


def _pruned_deviation(
    known: Known, pruned: Pruned, device: str, dtype: torch.dtype, seed: int, joint: _Joint, states: int
) -> Deviation:
    """Loss, and gradient with respect to the encoder's outputs."""
    labels, *drawn = joint.draw(seed, dtype, known.integers[0])
    encoder, predictor, weight = (tensor.to(device) for tensor in drawn)
    leaf, there = encoder.detach().requires_grad_(), labels.to(device)
    ranges, _ = pruned.ranges(leaf, predictor, there, states)
    logits = torch.tanh(pruned.join(leaf, predictor, ranges, states)) @ weight
    losses = pruned.loss(logits, there, ranges)
    losses.sum().backward()
    assert leaf.grad is not None

    exact = drawn[0].detach().double().requires_grad_()
    truth = _pruned_truth(exact, drawn[1].double(), drawn[2].double(), labels)
    (gradient,) = torch.autograd.grad(truth.sum(), exact)
    both = (losses.detach(), leaf.grad), (truth.detach(), gradient)
    # half precision makes logits of its own, so that not even all states can agree
    return _judged(
        known,
        joint.name.format(states=states),
        dtype,
        *both,
        judged=joint is _SMALL and dtype == torch.float32,
    )


def _pruned_truth(encoder: torch.Tensor, predictor: torch.Tensor, weight: torch.Tensor, labels: Labels) -> torch.Tensor:
    logits = torch.tanh(encoder.unsqueeze(2) + predictor.unsqueeze(1)) @ weight
    return oracle_loss(logits, labels.targets, labels.frames, labels.labels, blank=BLANK, reduction="none")


def _said(value: float) -> str:
    return "not a number" if isnan(value) else f"{value:.1e}"
