"""Does a loss agree with the oracle? Asked before anything of it is timed. Imports torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

import torch

from speechmeter.core import metrics
from speechmeter.core.errors import DisagreementError
from speechmeter.core.scope import LABEL, Scope
from speechmeter.core.types import Measurement
from speechmeter.subjects.losses.call import BLANK, Exact, Labels, packed
from speechmeter.subjects.losses.known import LARGE, PACKED, Known
from speechmeter.subjects.losses.trials import TRIALS, Trial, laid_out
from speechmeter.transducer import oracle_loss

_TOLD = 3


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
    scope = Scope.of(LABEL, deviation.name)
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
    return judged_deviation(known, trial.name, dtype, (losses.detach(), leaf.grad), (truth, true_gradient))


def judged_deviation(
    known: Known,
    name: str,
    dtype: torch.dtype,
    found: tuple[torch.Tensor, torch.Tensor],
    truth: tuple[torch.Tensor, torch.Tensor],
    judged: bool = True,
) -> Deviation:
    """How far a loss and its gradient, by utterance, are from the truth, beside what the loss is allowed."""
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


def _said(value: float) -> str:
    return "not a number" if isnan(value) else f"{value:.1e}"
