"""What is unusual and must still agree: extreme lengths, padding, kinds, layouts and sizes of logits."""

from __future__ import annotations

import pytest
import torch
from transducer_cases import ENGINES, make_batch, relative_error, using, with_gradient

from speechmeter.transducer import oracle_loss, rnnt_loss

EDGES = {
    "fewer frames than labels": [(3, 8)],
    "no labels": [(5, 0)],
    "one frame": [(1, 4)],
    "one frame, no labels": [(1, 0)],
    "all of them in a batch": [(6, 4), (2, 5), (5, 0), (1, 3), (1, 0)],
}
engines = pytest.mark.parametrize("engine", ENGINES)


@engines
@pytest.mark.parametrize("name", EDGES)
def test_extreme_lengths_agree_with_the_oracle(engine: str, name: str) -> None:
    batch = make_batch(EDGES[name], 6, torch.float32)
    with using(engine):
        losses, gradient = with_gradient(rnnt_loss, batch.logits, *batch.arguments)
    expected, expected_gradient = with_gradient(oracle_loss, batch.logits.double(), *batch.arguments)
    torch.testing.assert_close(losses.double(), expected, rtol=1e-6, atol=0)
    assert relative_error(gradient, expected_gradient) <= 1e-5


@engines
@pytest.mark.parametrize("padding", [torch.nan, torch.inf, -torch.inf, 1e30])
def test_padding_is_never_read_and_its_gradient_is_zero(engine: str, padding: float) -> None:
    batch = make_batch([(5, 3), (2, 1), (1, 0), (4, 3)], 4, torch.float32)
    with using(engine):
        clean = with_gradient(rnnt_loss, batch.logits, *batch.arguments)
        found = with_gradient(rnnt_loss, batch.with_padding(padding), *batch.arguments)
    assert all(torch.equal(*pair) for pair in zip(found, clean, strict=True))
    inside = torch.isnan(batch.with_padding(torch.nan)).logical_not()
    assert (found[1][~inside] == 0).all()
    assert (found[1][inside] != 0).any()


@engines
def test_padded_targets_are_ignored(engine: str) -> None:
    batch = make_batch([(5, 3), (4, 1)], 4)
    filled = batch.targets.clone()
    filled[1, 1:] = -100
    with using(engine):
        found = rnnt_loss(batch.logits, filled, batch.logit_lengths, batch.target_lengths)
        assert found.item() == rnnt_loss(batch.logits, *batch.arguments).item()


@engines
def test_tensors_larger_than_every_utterance(engine: str) -> None:
    batch = make_batch([(5, 3), (4, 1), (9, 6)], 4, torch.float32)
    two = [tensor[:2] for tensor in (batch.logits, *batch.arguments)]
    tight = two[0][:, :5, :4].contiguous(), two[1][:, :3], *two[2:]
    with using(engine):
        loose_losses, loose_gradient = with_gradient(rnnt_loss, *two)
        tight_losses, tight_gradient = with_gradient(rnnt_loss, *tight)
    torch.testing.assert_close(loose_losses, tight_losses)
    torch.testing.assert_close(loose_gradient[:, :5, :4], tight_gradient)


@engines
@pytest.mark.parametrize("integer", [torch.int32, torch.int64])
def test_both_integer_kinds_are_taken(engine: str, integer: torch.dtype) -> None:
    batch = make_batch([(5, 3), (4, 1)], 4)
    with using(engine):
        found = rnnt_loss(batch.logits, *(values.to(integer) for values in batch.arguments))
    assert found.item() == pytest.approx(oracle_loss(batch.logits, *batch.arguments).item())


@pytest.mark.parametrize("layout", ["transposed", "strided", "expanded"])
def test_logits_of_any_layout_agree(layout: str) -> None:
    batch = make_batch([(5, 3), (4, 1)], 4, torch.float32)
    logits = {
        "transposed": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
        "strided": lambda x: x.repeat_interleave(2, -1)[..., ::2],
        "expanded": lambda x: x[:, :, :1].expand(x.shape),
    }[layout](batch.logits)
    assert not logits.is_contiguous()
    leaf = logits.detach().requires_grad_()
    rnnt_loss(leaf, *batch.arguments, reduction="sum").backward()
    _, expected = with_gradient(oracle_loss, logits.double().contiguous(), *batch.arguments)
    assert relative_error(leaf.grad, expected) <= 1e-5


@pytest.mark.parametrize(("kind", "error"), [(torch.float16, 1e-3), (torch.bfloat16, 1e-2)])
def test_half_precision_is_computed_in_float32_inside(kind: torch.dtype, error: float) -> None:
    batch = make_batch([(30, 8), (20, 5)], 12, kind)
    losses, gradient = with_gradient(rnnt_loss, batch.logits, *batch.arguments)
    expected, expected_gradient = with_gradient(oracle_loss, batch.logits.double(), *batch.arguments)
    assert (losses.dtype, gradient.dtype) == (torch.float32, kind)
    assert relative_error(losses.unsqueeze(1), expected.unsqueeze(1)) <= 1e-6
    assert relative_error(gradient, expected_gradient) <= error


@engines
def test_logits_of_thousands_lose_nothing(engine: str) -> None:
    batch = make_batch([(60, 20), (25, 25)], 50, torch.float32)
    logits = batch.logits * 3000
    with using(engine):
        losses, gradient = with_gradient(rnnt_loss, logits, *batch.arguments)
    expected, expected_gradient = with_gradient(oracle_loss, logits.double(), *batch.arguments)
    assert relative_error(losses.unsqueeze(1), expected.unsqueeze(1)) <= 1e-6
    assert relative_error(gradient, expected_gradient) <= 1e-5


@engines
def test_a_common_offset_of_thousands_loses_nothing(engine: str) -> None:
    batch = make_batch([(60, 20), (25, 25)], 50, torch.float32)
    logits = batch.logits + 10_000
    with using(engine):
        losses, gradient = with_gradient(rnnt_loss, logits, *batch.arguments)
    expected, expected_gradient = with_gradient(oracle_loss, logits.double(), *batch.arguments)
    assert relative_error(losses.unsqueeze(1), expected.unsqueeze(1)) <= 1e-6
    assert relative_error(gradient, expected_gradient) <= 1e-5


@engines
@pytest.mark.parametrize("fused", [True, False])
def test_logits_of_thousands_agree_on_the_same_float32_log_probs(engine: str, fused: bool) -> None:
    batch = make_batch([(60, 20), (25, 25)], 50, torch.float32)
    log_probs = (batch.logits * 3000).log_softmax(-1)
    options = {"fused_log_softmax": fused}
    with using(engine):
        losses, gradient = with_gradient(rnnt_loss, log_probs, *batch.arguments, **options)
    expected, expected_gradient = with_gradient(oracle_loss, log_probs.double(), *batch.arguments, **options)
    assert gradient.isfinite().all()
    assert relative_error(losses.unsqueeze(1), expected.unsqueeze(1)) <= 1e-5
    assert relative_error(gradient, expected_gradient) <= 1e-2


@engines
def test_impossible_label_gives_an_infinite_loss_and_no_gradient(engine: str) -> None:
    batch = make_batch([(4, 2), (3, 1)], 5)
    logits = batch.logits.clone()
    logits[0, ..., batch.targets[0, 1]] = -torch.inf
    with using(engine):
        losses, gradient = with_gradient(rnnt_loss, logits, *batch.arguments, blank=int(batch.targets[0, 1] + 1) % 5)
    assert losses[0] == torch.inf
    assert losses[1].isfinite()
    assert (gradient[0] == 0).all()
    assert gradient[1].isfinite().all()
    assert (gradient[1] != 0).any()


@engines
def test_nan_inside_an_utterance_is_not_hidden(engine: str) -> None:
    batch = make_batch([(4, 2), (3, 1)], 20, torch.float32)
    logits = batch.logits.clone()
    logits[0, 1, 1, 7] = torch.nan
    with using(engine):
        losses = rnnt_loss(logits, *batch.arguments, reduction="none")
    assert losses.isnan().tolist() == [True, False]
