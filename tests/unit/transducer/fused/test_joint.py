"""The loss with its joiner, kernel by kernel under Triton's interpreter, against plain float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from interpreted import fused, joint
from transducer_cases import relative_error

from speechmeter.transducer import joint_rnnt_loss, prune_ranges, pruned_joint_rnnt_loss, simple_rnnt_loss

SEVERAL = ((34, 5), (9, 2))
FEW = ((9, 3), (5, 4))  # the interpreter takes a second for each tile
EDGES = {
    "several": SEVERAL,
    "one utterance": ((12, 5),),
    "fewer frames than labels": ((3, 8), (2, 6)),
    "no label": ((9, 0), (7, 4)),
    "one frame": ((1, 1), (6, 3)),
}
UNITS, IDS = 40, 50


class Given:
    """Random sides, weight and bias; padding holds NaN for the kernels and 0 for the truth."""

    def __init__(self, sizes, units: int = UNITS, ids: int = IDS) -> None:
        draw = torch.Generator().manual_seed(1)
        frames, labels = torch.tensor(sizes).unbind(1)
        shape = len(sizes), int(frames.max()), int(labels.max())
        self.encoder = torch.randn(shape[0], shape[1], units, generator=draw)
        self.predictor = torch.randn(shape[0], shape[2] + 1, units, generator=draw)
        self.weight = torch.randn(ids, units, generator=draw) / units**0.5
        self.bias = torch.randn(ids, generator=draw)
        self.labels = torch.randint(1, ids, (shape[0], shape[2]), generator=draw), frames, labels
        self.weights = torch.rand(shape[0], generator=draw, dtype=torch.float64)
        self.sizes = sizes

    def padded_with(self, value: float) -> list[torch.Tensor]:
        sides = [self.encoder.clone(), self.predictor.clone()]
        for row, (frames, labels) in enumerate(self.sizes):
            sides[0][row, frames:] = value
            sides[1][row, labels + 1 :] = value
        return [*sides, self.weight, self.bias]

    def errors(self, loss: Callable[..., torch.Tensor], **options) -> tuple[float, float]:
        """Relative errors of the losses, and the worst of the four gradients."""
        with fused():
            found = self._computed(loss, self.padded_with(float("nan")), torch.float32, **options)
        options.pop("precision", None)
        truth = self._computed(loss, self.padded_with(0.0), torch.float64, **options)
        errors = [relative_error(a[None], b[None]) for a, b in zip(found, truth, strict=True)]
        return errors[0], max(errors[1:])

    def _computed(self, loss, inputs, dtype, **options) -> list[torch.Tensor]:
        leaves = [given.detach().to(dtype).requires_grad_() for given in inputs]
        losses = loss(*leaves, *self.labels, blank=0, reduction="none", **options)
        (losses * self.weights).sum().backward()
        return [losses.detach(), *(leaf.grad for leaf in leaves)]


def pruned(encoder, predictor, weight, bias, targets, frames, labels, states=4, **options) -> torch.Tensor:
    """The ranges of a simple loss that never sees padding, and the pruned loss in them."""
    sides = (side.detach().nan_to_num(0.0).double() for side in (encoder, predictor))
    simple = simple_rnnt_loss(*sides, targets.clamp(max=UNITS - 1), frames, labels, blank=0)
    starts = prune_ranges(simple, frames, labels, states)
    return pruned_joint_rnnt_loss(encoder, predictor, weight, bias, targets, starts, frames, labels, states, **options)


@pytest.mark.parametrize("sizes", EDGES.values(), ids=EDGES)
def test_losses_and_all_gradients_are_those_of_the_plain_joiner(sizes) -> None:
    loss, gradient = Given(sizes).errors(joint_rnnt_loss)
    assert loss <= 1e-6
    assert gradient <= 1e-5


@pytest.mark.parametrize(("sizes", "units", "ids"), [(FEW, 16, 11), (FEW[:1], 130, 300)])
def test_units_and_ids_need_not_fill_blocks(sizes, units: int, ids: int) -> None:
    assert max(Given(sizes, units, ids).errors(joint_rnnt_loss)) <= 1e-6


def test_a_batch_of_several_chunks_is_computed_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(((33, 5), (9, 2)))
    whole = given.errors(joint_rnnt_loss)
    monkeypatch.setitem(joint.SCRATCH_BYTES, "low", 2 * joint.tiles.CELLS * 256 * 4)
    assert max(given.errors(joint_rnnt_loss, memory="low")) <= 1e-6
    assert max(whole) <= 1e-6


def test_factors_of_eleven_bits_are_close() -> None:
    loss, gradient = Given(FEW).errors(joint_rnnt_loss, precision="float16")
    assert loss <= 1e-4
    assert 1e-6 < gradient <= 2e-3


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**12])
def test_scales_keep_small_and_large_weights_inside_float16(scale: float) -> None:
    given = Given(FEW)
    given.weight, given.weights = given.weight * min(scale, 4.0), given.weights * scale
    assert given.errors(joint_rnnt_loss, precision="float16")[1] <= 2e-3


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "gelu", "identity"])
def test_activations_are_those_of_torch(activation: str) -> None:
    given = Given(FEW)
    assert max(given.errors(joint_rnnt_loss, activation=activation)) <= 1e-6
    assert max(given.errors(pruned, activation=activation)) <= 1e-6


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "gelu", "identity"])
def test_hidden_units_that_float16_cannot_hold_are_scaled(activation: str) -> None:
    given = Given(FEW[:1])
    given.encoder, given.predictor = 1e5 * given.encoder, 1e5 * given.predictor
    given.weight = given.weight / 1e5
    loss, gradient = given.errors(joint_rnnt_loss, activation=activation, precision="float16")
    assert loss <= 1e-3
    assert gradient <= 3e-3


@pytest.mark.parametrize("options", [{"fastemit": 0.5}, {"delay_penalty": 0.3}])
def test_options_mean_the_same_by_both_ways(options: dict[str, float]) -> None:
    assert max(Given(FEW).errors(joint_rnnt_loss, **options)) <= 1e-6
    assert max(Given(FEW).errors(pruned, **options)) <= 1e-6


@pytest.mark.parametrize("sizes", [SEVERAL, ((9, 0), (7, 4)), ((6, 3), (8, 2))], ids=str)
def test_the_pruned_joiner_is_the_plain_one_in_range(sizes) -> None:
    loss, gradient = Given(sizes).errors(pruned)
    assert loss <= 1e-6
    assert gradient <= 1e-5


def test_all_states_in_range_give_the_exact_loss() -> None:
    given = Given(FEW)
    with fused():
        found = pruned(*given.padded_with(0.0), *given.labels, states=5, blank=0, reduction="none")
        exact = joint_rnnt_loss(*given.padded_with(0.0), *given.labels, blank=0, reduction="none")
    assert torch.allclose(found, exact, rtol=1e-6)


def test_without_a_bias_it_is_zero() -> None:
    given = Given(FEW)
    encoder, predictor, weight, _ = given.padded_with(0.0)
    with fused():
        none = joint_rnnt_loss(encoder, predictor, weight, None, *given.labels, blank=0)
        zero = joint_rnnt_loss(encoder, predictor, weight, torch.zeros(IDS), *given.labels, blank=0)
    assert none == zero
