"""The fused loss of logits, kernel by kernel under Triton's interpreter, against the oracle."""

from __future__ import annotations

import pytest
import torch
from interpreted import fused, rows
from transducer_cases import make_batch, relative_error, with_gradient

from speechmeter.transducer import LengthError, ShapeError, oracle_loss, packed_rnnt_loss, rnnt_loss

SEVERAL = ((4, 2), (3, 3), (2, 1))  # the interpreter runs a program for each cell
EDGES = {
    "several": ((8, 3), (6, 4), (4, 1)),
    "one utterance": ((12, 5),),
    "fewer frames than labels": ((3, 8), (2, 6)),
    "no label": ((9, 0), (7, 4)),
    "no label at all": ((9, 0), (7, 0)),
    "one frame": ((1, 1), (6, 3)),
    "more states than a warp": ((2, 40), (1, 33)),
}
LONG = pytest.mark.campaign  # large logits are read by the kernels of rows, which know no sizes


def both(logits: torch.Tensor, batch, **options) -> tuple[float, float]:
    with fused():
        losses, gradient = with_gradient(rnnt_loss, logits, *batch.arguments, **options)
    true_losses, true_gradient = with_gradient(oracle_loss, logits.double(), *batch.arguments, **options)
    return relative_error(losses[:, None], true_losses[:, None]), relative_error(gradient, true_gradient)


@pytest.mark.parametrize(
    ("sizes", "scale"),
    [
        pytest.param(sizes, scale, id=f"{name} × {scale:g}", marks=LONG if scale > 1 and name != "no label" else ())
        for name, sizes in EDGES.items()
        for scale in (1.0, 3000.0)
    ],
)
def test_loss_and_gradient_are_the_oracles_whatever_stands_in_the_padding(sizes, scale) -> None:
    batch = make_batch(sizes, 11, torch.float32)
    loss, gradient = both(batch.with_padding(float("nan")) * scale, batch, blank=0)
    assert loss <= 1e-6
    assert gradient <= 1e-5


@pytest.mark.parametrize("blank", [0, 4, -1])
def test_blank_may_be_any_id(blank: int) -> None:
    batch = make_batch(SEVERAL, 11, torch.float32)
    assert max(both(batch.logits, batch, blank=blank)) <= 1e-6


def test_a_vocabulary_larger_than_a_block_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LARGEST_BLOCK", 32)
    batch = make_batch(((7, 3), (5, 4)), 75, torch.float32)
    assert max(both(batch.logits, batch, blank=70)) <= 1e-6


def test_log_probabilities_are_taken_as_they_are() -> None:
    batch = make_batch(SEVERAL, 11, torch.float32)
    assert max(both(batch.logits.log_softmax(-1), batch, blank=0, fused_log_softmax=False)) <= 1e-6


def test_logits_need_not_be_contiguous() -> None:
    batch = make_batch(SEVERAL, 11, torch.float32)
    assert max(both(batch.logits.transpose(2, 3).contiguous().transpose(2, 3), batch, blank=0)) <= 1e-6


def test_half_precision_is_rounded_once() -> None:
    batch = make_batch(SEVERAL, 11, torch.float16)
    loss, gradient = both(batch.logits, batch, blank=0)
    assert loss <= 1e-6
    assert gradient <= torch.finfo(torch.float16).eps


def test_what_cannot_be_is_infinite_and_has_no_gradient() -> None:
    batch = make_batch(((4, 2), (5, 3)), 7, torch.float32)
    logits = batch.logits.log_softmax(-1)
    logits[0, :, :, 0] = -torch.inf  # no blank: the first utterance cannot end
    with fused():
        losses, gradient = with_gradient(rnnt_loss, logits, *batch.arguments, blank=0, fused_log_softmax=False)
    assert losses[0] == torch.inf and losses[1].isfinite()
    assert not gradient[0].any() and gradient[1].any()


def test_clamp_bounds_the_gradient_of_each_loss_before_it_is_weighted() -> None:
    batch = make_batch(SEVERAL, 11, torch.float32)
    leaf = batch.logits.clone().requires_grad_()
    weights = torch.tensor([1.0, 3.0, 0.5])
    with fused():
        (rnnt_loss(leaf, *batch.arguments, blank=0, clamp=0.05, reduction="none") * weights).sum().backward()
    _, plain = with_gradient(oracle_loss, batch.logits.double(), *batch.arguments, blank=0)
    truth = plain.clamp(-0.05, 0.05) * weights.view(-1, 1, 1, 1)
    assert relative_error(leaf.grad, truth) <= 1e-5


def test_in_place_the_gradient_stands_where_the_logits_were() -> None:
    batch = make_batch(SEVERAL, 11, torch.float32)
    _, truth = with_gradient(oracle_loss, batch.logits.double(), *batch.arguments, blank=0)
    logits = batch.logits.clone().requires_grad_()
    with fused():
        rnnt_loss(logits, *batch.arguments, blank=0, reduction="sum", in_place=True).backward()
    assert logits.grad is not None and logits.grad.data_ptr() == logits.data_ptr()
    assert relative_error(logits.grad, truth) <= 1e-5


def packed(padded: torch.Tensor, sizes) -> torch.Tensor:
    return torch.cat([row[:t, : u + 1].reshape(-1, row.shape[-1]) for row, (t, u) in zip(padded, sizes, strict=True)])


@pytest.mark.parametrize("by_kernels", [True, False])
def test_packed_logits_have_the_loss_and_the_gradient_of_padded_ones(by_kernels: bool) -> None:
    batch = make_batch(SEVERAL, 11, torch.float32)
    true_losses, true_gradient = with_gradient(oracle_loss, batch.logits.double(), *batch.arguments, blank=0)
    logits = packed(batch.logits, SEVERAL).requires_grad_()
    if by_kernels:
        with fused():
            losses = packed_rnnt_loss(logits, *batch.arguments, blank=0, reduction="none")
            losses.sum().backward()
    else:
        losses = packed_rnnt_loss(logits, *batch.arguments, blank=0, reduction="none")
        losses.sum().backward()
    assert torch.allclose(losses.double(), true_losses, rtol=1e-6)
    assert relative_error(logits.grad[None], packed(true_gradient, SEVERAL)[None]) <= 1e-5


def test_packed_logits_of_another_count_are_refused() -> None:
    batch = make_batch(SEVERAL, 11, torch.float32)
    with pytest.raises(ShapeError, match="rows for each utterance"):
        packed_rnnt_loss(packed(batch.logits, SEVERAL)[1:], *batch.arguments, blank=0)
    with pytest.raises(LengthError):
        packed_rnnt_loss(packed(batch.logits, SEVERAL), *batch.arguments, blank=0, most_frames=3)


def test_without_a_gradient_only_the_likelihood_is_computed() -> None:
    batch = make_batch(SEVERAL, 11, torch.float32)
    with fused():
        losses = rnnt_loss(batch.logits, *batch.arguments, blank=0, reduction="none")
    truth = oracle_loss(batch.logits.double(), *batch.arguments, blank=0, reduction="none")
    assert torch.allclose(losses.double(), truth, rtol=1e-6)
