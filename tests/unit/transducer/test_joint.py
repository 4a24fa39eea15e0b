"""The losses with their joiner where no GPU computes them: the plain joiner and the plain loss, behind one function."""

from __future__ import annotations

import pytest
import torch

from speechmeter.transducer import (
    LengthError,
    OptionError,
    ShapeError,
    joint_rnnt_loss,
    oracle_loss,
    prune_ranges,
    pruned_joint_rnnt_loss,
    simple_rnnt_loss,
)

FRAMES, LABELS = torch.tensor([9, 6]), torch.tensor([3, 4])


@pytest.fixture
def sides() -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = (2, 9, 8), (2, 5, 8), (7, 8), (7,)
    return [torch.randn(shape, generator=draw, dtype=torch.float64).requires_grad_() for shape in shapes]


@pytest.fixture
def targets() -> torch.Tensor:
    return torch.randint(1, 7, (2, 4), generator=torch.Generator().manual_seed(1))


def test_the_joiner_is_a_linear_layer_of_a_hyperbolic_tangent(sides, targets) -> None:
    encoder, predictor, weight, bias = sides
    found = torch.autograd.grad(joint_rnnt_loss(*sides, targets, FRAMES, LABELS, blank=0), sides)
    logits = torch.einsum("btuh,vh->btuv", torch.tanh(encoder[:, :, None] + predictor[:, None]), weight) + bias
    truth = torch.autograd.grad(oracle_loss(logits, targets, FRAMES, LABELS, blank=0), sides)
    assert all(torch.allclose(a, b, rtol=1e-10) for a, b in zip(found, truth, strict=True))


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "gelu", "identity"])
def test_activations_are_those_of_torch_and_a_bias_may_be_left_out(sides, targets, activation: str) -> None:
    encoder, predictor, weight, _ = sides
    found = joint_rnnt_loss(encoder, predictor, weight, None, targets, FRAMES, LABELS, blank=0, activation=activation)
    apply = {
        "relu": torch.nn.ReLU(),
        "leaky_relu": torch.nn.LeakyReLU(),
        "gelu": torch.nn.GELU(),
        "identity": torch.nn.Identity(),
    }[activation]
    logits = apply(encoder[:, :, None] + predictor[:, None]) @ weight.T
    truth = oracle_loss(logits, targets, FRAMES, LABELS, blank=0)
    leaves = encoder, predictor, weight
    pairs = zip(torch.autograd.grad(found, leaves), torch.autograd.grad(truth, leaves), strict=True)
    assert found.item() == pytest.approx(truth.item(), rel=1e-12)
    assert all(torch.allclose(a, b, rtol=1e-10) for a, b in pairs)


def test_all_states_in_range_make_the_pruned_one_exact(sides, targets) -> None:
    simple = simple_rnnt_loss(*sides[:2], targets, FRAMES, LABELS, blank=0)
    starts = prune_ranges(simple, FRAMES, LABELS, 5)
    found = pruned_joint_rnnt_loss(*sides, targets, starts, FRAMES, LABELS, 5, blank=0)
    assert found.item() == pytest.approx(joint_rnnt_loss(*sides, targets, FRAMES, LABELS, blank=0).item(), rel=1e-12)
    few = prune_ranges(simple, FRAMES, LABELS, 2)
    assert pruned_joint_rnnt_loss(*sides, targets, few, FRAMES, LABELS, 2, blank=0) > found


def test_what_does_not_fit_together_is_refused(sides, targets) -> None:
    encoder, predictor, weight, bias = sides
    with pytest.raises(ShapeError, match="units"):
        joint_rnnt_loss(encoder, predictor, weight[:, :5], bias, targets, FRAMES, LABELS)
    with pytest.raises(ShapeError, match="bias has 6"):
        joint_rnnt_loss(encoder, predictor, weight, bias[:6], targets, FRAMES, LABELS)
    with pytest.raises(LengthError, match="the tensors allow 1 to"):
        joint_rnnt_loss(encoder, predictor, weight, bias, targets, FRAMES + 1, LABELS)
    with pytest.raises(OptionError, match="activation is 'silu'; give one of tanh, relu, leaky_relu, gelu, identity"):
        joint_rnnt_loss(encoder, predictor, weight, bias, targets, FRAMES, LABELS, activation="silu")
    with pytest.raises(OptionError, match="memory is 'none'"):
        joint_rnnt_loss(encoder, predictor, weight, bias, targets, FRAMES, LABELS, memory="none")
    with pytest.raises(OptionError, match="precision is 'tf64'"):
        joint_rnnt_loss(encoder, predictor, weight, bias, targets, FRAMES, LABELS, precision="tf64")
