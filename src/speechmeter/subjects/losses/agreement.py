"""Does a loss agree with the float64 oracle? Asked before anything of it is timed. Imports torch.

An exact loss is judged on random logits and on the edges where implementations differ. One that has a joiner in it, a
pruned loss or one that computes the joiner itself, is judged on outputs of an encoder and a predictor. Every loss has
the trial of a whole step, in which the same is compared of all: the loss, and its gradient with respect to encoder,
predictor and the joiner's weight, one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import torch

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.errors import DisagreementError
from speechmeter.core.scope import LABEL, Scope
from speechmeter.core.types import Measurement
from speechmeter.subjects.losses.call import Exact, Labels, packed
from speechmeter.subjects.losses.known import FRAMES, LARGE, PACKED, ROUNDED, Known, Tolerance
from speechmeter.subjects.losses.trials import SMALL_STEP, TRIALS, WHOLE_STEP, Sides, Trial
from speechmeter.subjects.losses.truths import truth

Found = tuple[torch.Tensor, torch.Tensor]
"""The loss of each utterance, or their sum, and its gradient."""
_SHOWN = 3
"""Faults that a message names; more are counted."""


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """How far a loss is from the oracle on one trial, or why it was not tried.

    `loss` and `gradient` are relative distances, the worst utterance's. `judged` ones have an allowed size. One that is
    `beside` the others has its own row and no part in the total.
    """

    name: str
    loss: float = 0.0
    gradient: float = 0.0
    allowed_loss: float = 0.0
    allowed_gradient: float = 0.0
    judged: bool = True
    beside: bool = False
    skipped: str | None = None

    def faults(self) -> list[str]:
        """What is beyond the allowed, in words; a NaN always is."""
        if self.skipped is not None or not self.judged:
            return []
        rows = (("loss", self.loss, self.allowed_loss), ("gradient", self.gradient, self.allowed_gradient))
        return [
            f"the error of the {what} is {'NaN' if isnan(found) else f'{found:.1e}'} (at most "
            f"{allowed:.0e} is allowed) in the trial {self.name!r}"
            for what, found, allowed in rows
            if not found <= allowed
        ]


def check(found: Iterable[Deviation]) -> None:
    """Raise DisagreementError when a deviation is beyond what is allowed."""
    faults = [fault for deviation in found for fault in deviation.faults()]
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise DisagreementError(f"its result differs from the float64 reference: {'; '.join(faults[:_SHOWN])}{more}")


def measurements(found: Sequence[Deviation]) -> list[Measurement]:
    """Both deviations of each trial by its name, and in total the worst of those for a loss of its kind."""
    tried = [deviation for deviation in found if deviation.skipped is None and not deviation.beside]
    notes = {} if all(deviation.judged for deviation in tried) else {"judged": False}
    rows = [
        Measurement.of(metric, [max(values)], source="oracle", notes=notes)
        for metric, values in (
            (metrics.LOSS_DEVIATION, [deviation.loss for deviation in tried]),
            (metrics.GRADIENT_DEVIATION, [deviation.gradient for deviation in tried]),
        )
    ]
    for one in found:
        scope = Scope.of(LABEL, one.name)
        for metric, value, allowed in (
            (metrics.LOSS_DEVIATION, one.loss, one.allowed_loss),
            (metrics.GRADIENT_DEVIATION, one.gradient, one.allowed_gradient),
        ):
            if one.skipped is not None:
                rows.append(Measurement.absent(metric, one.skipped, scope=scope))
            else:
                own = {"allowed": allowed} if one.judged else {"judged": False}
                rows.append(Measurement.of(metric, [value], scope=scope, source="oracle", notes=own))
    return rows


def deviations(known: Known, loss: Any, device: str, dtype: torch.dtype, seed: int, states: int) -> list[Deviation]:
    """A loss against the oracle on everything that it is judged on, and on the whole step."""
    if known.pruned or known.joint:
        return step_deviations(known, loss, device, dtype, seed, states, (SMALL_STEP, WHOLE_STEP))
    return [
        *logit_deviations(known, loss, device, dtype, seed, TRIALS),
        *step_deviations(known, loss, device, dtype, seed, states, (WHOLE_STEP,)),
    ]


def logit_deviations(
    known: Known, loss: Exact, device: str, dtype: torch.dtype, seed: int, trials: Sequence[Trial]
) -> list[Deviation]:
    """An exact loss of logits against the oracle on each trial."""
    found = []
    for trial in trials:
        if (refused := trial.refused_by(known)) is not None:
            found.append(Deviation(name=trial.name, skipped=refused))
            continue
        logits, labels = trial.draw(seed, dtype, known)
        on_device = logits.to(device)
        if not trial.contiguous:  # the last two dimensions the other way round in memory
            on_device = on_device.transpose(-2, -1).contiguous().transpose(-2, -1)
        leaf = on_device.requires_grad_()
        given = packed(leaf, labels) if known.layout == PACKED else leaf.clone() if known.in_place else leaf
        losses = loss(given, labels.to(device))
        losses.sum().backward()
        assert leaf.grad is not None
        # the truth in float64, of the logits as they are, rounded to their dtype
        exact = logits.detach().double().requires_grad_()
        right = truth(known.kind, exact, labels)
        (gradient,) = torch.autograd.grad(right.sum(), exact)
        pairs = (losses.detach(), leaf.grad), (right.detach(), gradient)
        found.append(_compared(trial.name, known.tolerance, dtype, *pairs))
    return found


def step_deviations(
    known: Known, loss: Any, device: str, dtype: torch.dtype, seed: int, states: int, trials: Sequence[Sides]
) -> list[Deviation]:
    """A loss of any kind behind its joiner against the oracle, on the tensors that all kinds have.

    The whole step is multiplied as torch may now, and judges only a loss that computes the joiner itself: what torch's
    joiner rounds is no fault of the loss behind it.
    """
    found = []
    for sides in trials:
        judged = sides.name == SMALL_STEP.name if known.pruned else known.joint
        labels, made = sides.draw(seed, dtype, known)
        leaves = [tensor.to(device).detach().requires_grad_() for tensor in made]
        count = states if sides.states is None else sides.states
        if known.joint:
            losses = _with_joiner_inside(loss, leaves, labels.to(device), count)
        elif judged:
            with _without_tf32():
                losses = _behind_joiner(known, loss, leaves, labels.to(device), count)
        else:
            losses = _behind_joiner(known, loss, leaves, labels.to(device), count)
        exact = [tensor.double().requires_grad_() for tensor in made]
        right = truth(known.kind, _logits(known, exact), labels)
        # CTC has no predictor, whose gradient is then 0
        gradients, true_gradients = (
            _flat(torch.autograd.grad(total.sum(), given, materialize_grads=True, allow_unused=True))
            for total, given in ((losses, leaves), (right, exact))
        )
        pairs = (losses.detach(), gradients), (right.detach(), true_gradients)
        # half precision makes logits of its own, so that behind torch's joiner not even all states can agree
        judged = judged and (known.joint or dtype == torch.float32)
        compared = _compared(sides.name, _tolerance(known, device, dtype), dtype, *pairs, judged=judged)
        found.append(replace(compared, beside=not (known.pruned or known.joint)))
    return found


def _tolerance(known: Known, device: str, dtype: torch.dtype) -> Tolerance:
    uses_tf32 = Device.parse(device).is_cuda and bool(torch.backends.cuda.matmul.allow_tf32)
    return ROUNDED if known.joint and (uses_tf32 or dtype != torch.float32) else known.tolerance


def _with_joiner_inside(loss: Any, leaves: Sequence[torch.Tensor], labels: Labels, states: int) -> torch.Tensor:
    encoder, predictor, weight = leaves
    ranges = None if loss.ranges is None else loss.ranges(encoder, predictor, labels, states)[0]
    losses: torch.Tensor = loss.loss(
        (encoder, predictor, weight.transpose(0, 1), weight.new_zeros(weight.shape[1])), labels, ranges, states
    )
    return losses


def _behind_joiner(
    known: Known, loss: Any, leaves: Sequence[torch.Tensor], labels: Labels, states: int
) -> torch.Tensor:
    encoder, predictor, weight = leaves
    if known.pruned:
        ranges, _ = loss.ranges(encoder, predictor, labels, states)
        losses: torch.Tensor = loss.loss(
            torch.tanh(loss.join(encoder, predictor, ranges, states)) @ weight, labels, ranges
        )
        return losses
    logits = _logits(known, leaves)
    losses = loss(packed(logits, labels) if known.layout == PACKED else logits, labels)
    return losses


def _logits(known: Known, sides: Sequence[torch.Tensor]) -> torch.Tensor:
    encoder, predictor, weight = sides
    joined = encoder if known.layout == FRAMES else encoder.unsqueeze(2) + predictor.unsqueeze(1)
    return torch.tanh(joined) @ weight


@contextmanager
def _without_tf32() -> Iterator[None]:
    """The joiner before a pruned loss that is judged multiplies at full precision, also in its backward pass."""
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


def _compared(
    name: str, allowed: Tolerance, dtype: torch.dtype, found: Found, right: Found, judged: bool = True
) -> Deviation:
    """How far a loss and its gradient, by utterance, are from the truth, beside what the loss is allowed."""
    gradient = allowed.large_gradient if name == LARGE else allowed.gradient
    # a loss that gives only the sum over the batch is compared with the sum
    true_loss = right[0].sum() if found[0].numel() == 1 else right[0]
    return Deviation(
        name=name,
        loss=_distance(found[0].reshape(-1, 1), true_loss.reshape(-1, 1)),
        gradient=_distance(found[1].flatten(1), right[1].flatten(1)),
        allowed_loss=allowed.loss,
        # a gradient that is stored in half precision is rounded to it, whoever computed it
        allowed_gradient=gradient + (0.0 if dtype == torch.float32 else float(torch.finfo(dtype).eps)),
        judged=judged,
    )


def _distance(found: torch.Tensor, truth: torch.Tensor) -> float:
    """The largest relative L2 distance of the rows; NaN when there is one anywhere."""
    found, truth = found.double().cpu(), truth.double().cpu()
    return float(((found - truth).norm(dim=1) / truth.norm(dim=1).clamp(min=1e-30)).max())


def _flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().flatten().double().cpu() for tensor in tensors]).unsqueeze(0)
