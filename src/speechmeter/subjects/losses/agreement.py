"""Does a loss agree with the float64 oracle? Asked before anything of it is timed. Imports torch.

An exact loss is tried on random logits and on the edges where implementations differ. One that has a joiner in it, a
pruned loss or one that computes the joiner itself, is tried on outputs of an encoder and a predictor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isnan

import torch

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.errors import DisagreementError
from speechmeter.core.scope import LABEL, Scope
from speechmeter.core.types import Measurement
from speechmeter.subjects.losses.call import BLANK, Exact, Joint, Labels, Pruned, packed
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
    PACKED,
    RANDOM,
    ROUNDED,
    Known,
)
from speechmeter.transducer import oracle_loss

Sizes = Sequence[tuple[int, int]]
Found = tuple[torch.Tensor, torch.Tensor]
"""The loss of each utterance, or their sum, and its gradient."""
_SHOWN = 3
"""Faults that a message names; more are counted."""


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


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Uniform outputs of encoder and predictor and a joiner's weight, distributed as in the step that is measured."""

    name: str
    exact_name: str
    sizes: Sizes
    width: int
    vocabulary: int

    def draw(self, seed: int, dtype: torch.dtype, integers: str) -> tuple[Labels, list[torch.Tensor]]:
        """Labels; and encoder, predictor, weight. On the CPU."""
        generator = torch.Generator().manual_seed(seed)
        labels = Labels.drawn(self.sizes, self.vocabulary, integers, generator)
        items, frames, states = labels.padded
        shapes = (items, frames, self.width), (items, states, self.width), (self.width, self.vocabulary)
        encoder, predictor, weight = (torch.rand(shape, generator=generator) for shape in shapes)
        weight = (2 * weight - 1) / self.width**0.5
        return labels, [encoder.to(dtype), predictor.to(dtype), weight.to(dtype)]


_SMALL = Sides(name="all states in range", exact_name=RANDOM, sizes=((60, 14), (43, 9)), width=32, vocabulary=23)
_LARGE = Sides(
    name="{states} states in range, original size",
    exact_name=ORIGINAL_SIZE,
    sizes=((343, 80),),
    width=512,
    vocabulary=500,
)
_ALL_STATES = 15
"""Of the small sides: as many as the longest utterance has labels, and one."""


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
        return [
            f"{what} {'not a number' if isnan(found) else f'{found:.1e}'} (allowed {allowed:.0e}) on {self.name}"
            for what, found, allowed in rows
            if not found <= allowed
        ]


def check(found: Iterable[Deviation]) -> None:
    """Raise DisagreementError when a deviation is beyond what is allowed."""
    faults = [fault for deviation in found for fault in deviation.faults()]
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise DisagreementError(f"disagrees with the oracle: {'; '.join(faults[:_SHOWN])}{more}")


def measurements(found: Sequence[Deviation]) -> list[Measurement]:
    """Both deviations of each trial by its name, and in total the worst of all that were tried."""
    tried = [deviation for deviation in found if deviation.skipped is None]
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


def deviations(
    known: Known, loss: Exact, device: str, dtype: torch.dtype, seed: int, trials: Sequence[Trial] | None = None
) -> list[Deviation]:
    """An exact loss against the oracle on every trial, or on those that are given."""
    found = []
    for trial in TRIALS if trials is None else trials:
        if (refused := trial.refused_by(known)) is not None:
            found.append(Deviation(name=trial.name, skipped=refused))
            continue
        logits, labels = trial.draw(seed, dtype, known.integers[0])
        on_device = logits.to(device)
        if not trial.contiguous:  # the last two dimensions the other way round in memory
            on_device = on_device.transpose(2, 3).contiguous().transpose(2, 3)
        leaf = on_device.requires_grad_()
        given = packed(leaf, labels) if known.layout == PACKED else leaf.clone() if known.in_place else leaf
        losses = loss(given, labels.to(device))
        losses.sum().backward()
        assert leaf.grad is not None
        # the truth in float64, of the logits as they are, rounded to their dtype
        exact = logits.detach().double().requires_grad_()
        truth = oracle_loss(exact, *labels.arguments, blank=BLANK, reduction="none")
        (gradient,) = torch.autograd.grad(truth.sum(), exact)
        found.append(_compared(known, trial.name, dtype, (losses.detach(), leaf.grad), (truth.detach(), gradient)))
    return found


def pruned_deviations(
    known: Known, pruned: Pruned, device: str, dtype: torch.dtype, seed: int, states: int
) -> list[Deviation]:
    """A pruned loss against the oracle: with all states in range it must agree, with fewer the deviation is shown.

    Compared are the loss, and its gradient with respect to the encoder's outputs.
    """
    found = []
    for sides, count in ((_SMALL, _ALL_STATES), (_LARGE, states)):
        labels, made = sides.draw(seed, dtype, known.integers[0])
        encoder, predictor, weight = (tensor.to(device) for tensor in made)
        leaf, there = encoder.detach().requires_grad_(), labels.to(device)
        with _without_tf32():
            ranges, _ = pruned.ranges(leaf, predictor, there, count)
            logits = torch.tanh(pruned.join(leaf, predictor, ranges, count)) @ weight
            losses = pruned.loss(logits, there, ranges)
            losses.sum().backward()
            assert leaf.grad is not None
            exact = made[0].detach().double().requires_grad_()
            truth = _joined_truth([exact, made[1].double(), made[2].double()], labels)
            (gradient,) = torch.autograd.grad(truth.sum(), exact)
        # half precision makes logits of its own, so that not even all states can agree
        judged = sides is _SMALL and dtype == torch.float32
        pairs = (losses.detach(), leaf.grad), (truth.detach(), gradient)
        found.append(_compared(known, sides.name.format(states=count), dtype, *pairs, judged=judged))
    return found


def joint_deviations(
    known: Known, joint: Joint, device: str, dtype: torch.dtype, seed: int, states: int
) -> list[Deviation]:
    """A loss with its joiner against the oracle, as precisely as torch may multiply now; a pruned one as above.

    Compared are the loss, and its gradient with respect to encoder, predictor and weight, one after another.
    """
    uses_tf32 = Device.parse(device).is_cuda and bool(torch.backends.cuda.matmul.allow_tf32)
    tolerance = known.tolerance if dtype == torch.float32 and not uses_tf32 else ROUNDED
    found = []
    for sides, count in ((_SMALL, _ALL_STATES), (_LARGE, states)):
        labels, made = sides.draw(seed, dtype, known.integers[0])
        leaves = [tensor.to(device).detach().requires_grad_() for tensor in made]
        there = labels.to(device)
        encoder, predictor, weight = leaves
        ranges = None if joint.ranges is None else joint.ranges(encoder, predictor, there, count)[0]
        bias = torch.zeros(sides.vocabulary, dtype=dtype, device=device)
        losses = joint.loss((encoder, predictor, weight.transpose(0, 1), bias), there, ranges, count)
        gradients = torch.autograd.grad(losses.sum(), leaves)
        exact = [tensor.double().requires_grad_() for tensor in made]
        truth = _joined_truth(exact, labels)
        true_gradients = torch.autograd.grad(truth.sum(), exact)
        found.append(
            _compared(
                replace(known, tolerance=tolerance),
                sides.name.format(states=count) if known.pruned else sides.exact_name,
                dtype,
                (losses.detach(), _flat(gradients)),
                (truth.detach(), _flat(true_gradients)),
                judged=not known.pruned or sides is _SMALL,
            )
        )
    return found


@contextmanager
def _without_tf32() -> Iterator[None]:
    """The joiner that a pruned loss is tried with multiplies at full precision: only the loss is judged."""
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


def _joined_truth(sides: Sequence[torch.Tensor], labels: Labels) -> torch.Tensor:
    encoder, predictor, weight = sides
    logits = torch.tanh(encoder.unsqueeze(2) + predictor.unsqueeze(1)) @ weight
    return oracle_loss(logits, *labels.arguments, blank=BLANK, reduction="none")


def _compared(
    known: Known, name: str, dtype: torch.dtype, found: Found, truth: Found, judged: bool = True
) -> Deviation:
    """How far a loss and its gradient, by utterance, are from the truth, beside what the loss is allowed."""
    allowed = known.tolerance
    gradient = allowed.large_gradient if name == LARGE else allowed.gradient
    # a loss that gives only the sum over the batch is compared with the sum
    true_loss = truth[0].sum() if found[0].numel() == 1 else truth[0]
    return Deviation(
        name=name,
        loss=_distance(found[0].reshape(-1, 1), true_loss.reshape(-1, 1)),
        gradient=_distance(found[1].flatten(1), truth[1].flatten(1)),
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
