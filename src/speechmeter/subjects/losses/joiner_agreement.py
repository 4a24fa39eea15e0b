"""Does a loss that has a joiner in it agree with the oracle: a pruned one, or one that computes it? Imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from speechmeter.core.device import Device
from speechmeter.subjects.losses.agreement import Deviation, judged_deviation
from speechmeter.subjects.losses.call import BLANK, Joint, Labels, Pruned
from speechmeter.subjects.losses.known import ORIGINAL_SIZE, RANDOM, ROUNDED, Known
from speechmeter.transducer import oracle_loss


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """Uniform outputs of encoder and predictor and a joiner's weight, distributed as in the step that is measured."""

    name: str
    exact_name: str
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


_SMALL = _Drawn(name="all states in range", exact_name=RANDOM, sizes=((60, 14), (43, 9)), width=32, vocabulary=23)
_LARGE = _Drawn(
    name="{states} states in range, original size",
    exact_name=ORIGINAL_SIZE,
    sizes=((343, 80),),
    width=512,
    vocabulary=500,
)


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


def joint_deviations(
    known: Known, joint: Joint, device: str, dtype: torch.dtype, seed: int, states: int
) -> list[Deviation]:
    """A loss with its joiner against the oracle, as precisely as torch may multiply now; a pruned one as above."""
    everything = max(labels for _, labels in _SMALL.sizes) + 1
    return [
        _joint_deviation(known, joint, device, dtype, seed, _SMALL, everything),
        _joint_deviation(known, joint, device, dtype, seed, _LARGE, states),
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


def _pruned_deviation(
    known: Known, pruned: Pruned, device: str, dtype: torch.dtype, seed: int, joint: _Drawn, states: int
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
    return judged_deviation(
        known,
        joint.name.format(states=states),
        dtype,
        *both,
        judged=joint is _SMALL and dtype == torch.float32,
    )


def _pruned_truth(encoder: torch.Tensor, predictor: torch.Tensor, weight: torch.Tensor, labels: Labels) -> torch.Tensor:
    logits = torch.tanh(encoder.unsqueeze(2) + predictor.unsqueeze(1)) @ weight
    return oracle_loss(logits, labels.targets, labels.frames, labels.labels, blank=BLANK, reduction="none")


def _joint_deviation(
    known: Known, joint: Joint, device: str, dtype: torch.dtype, seed: int, drawn: _Drawn, states: int
) -> Deviation:
    """Loss, and gradient with respect to encoder, predictor and weight, one after another."""
    labels, *made = drawn.draw(seed, dtype, known.integers[0])
    leaves = [tensor.to(device).detach().requires_grad_() for tensor in made]
    there = labels.to(device)
    encoder, predictor, weight = leaves
    ranges = None if joint.ranges is None else joint.ranges(encoder, predictor, there, states)[0]
    bias = torch.zeros(drawn.vocabulary, dtype=dtype, device=device)
    losses = joint.loss((encoder, predictor, weight.transpose(0, 1), bias), there, ranges, states)
    found = torch.autograd.grad(losses.sum(), leaves)

    exact = [tensor.double().requires_grad_() for tensor in made]
    truth = _pruned_truth(exact[0], exact[1], exact[2], labels)
    gradients = torch.autograd.grad(truth.sum(), exact)
    tolerance = known.tolerance if dtype == torch.float32 and not _rounds(device) else ROUNDED
    return judged_deviation(
        replace(known, tolerance=tolerance),
        drawn.name.format(states=states) if known.pruned else drawn.exact_name,
        dtype,
        (losses.detach(), _flat(found)),
        (truth.detach(), _flat(gradients)),
        judged=not known.pruned or drawn is _SMALL,
    )


def _rounds(device: str) -> bool:
    """Whether torch may multiply in TF32 there."""
    return Device.parse(device).is_cuda and bool(torch.backends.cuda.matmul.allow_tf32)


def _flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().flatten().double().cpu() for tensor in tensors]).unsqueeze(0)
