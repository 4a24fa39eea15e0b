"""The exact loss, by each engine, against the oracle."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transducer_cases import ENGINES, Batch, make_batch, relative_error, using, with_gradient

from speechmeter.transducer import oracle_loss, rnnt_loss

ORIGINAL_SIZES = [(343, 80), (31, 6)]
utterances = st.tuples(st.integers(1, 9), st.integers(0, 7))
pytestmark = pytest.mark.parametrize("engine", ENGINES)


@settings(max_examples=40)
@given(
    sizes=st.lists(utterances, min_size=1, max_size=3),
    vocabulary=st.integers(2, 40),
    blank=st.integers(-2, 1),
    fused=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_float32_agrees_with_the_oracle(
    engine: str, sizes: list[tuple[int, int]], vocabulary: int, blank: int, fused: bool, seed: int
) -> None:
    batch = make_batch(sizes, vocabulary, torch.float32, seed)
    logits = batch.logits if fused else batch.logits.log_softmax(-1)
    options = {"blank": blank, "fused_log_softmax": fused}
    with using(engine):
        losses, gradient = with_gradient(rnnt_loss, logits, *batch.arguments, **options)
    expected, expected_gradient = with_gradient(oracle_loss, logits.double(), *batch.arguments, **options)
    assert losses.dtype == gradient.dtype == torch.float32
    assert relative_error(losses.unsqueeze(1), expected.unsqueeze(1)) <= 1e-6
    assert relative_error(gradient, expected_gradient) <= 1e-5


@pytest.fixture(scope="module")
def original() -> tuple[Batch, torch.Tensor, torch.Tensor]:
    """Utterances of original size with the oracle's losses and gradient."""
    batch = make_batch(ORIGINAL_SIZES, 500, torch.float32)
    return batch, *with_gradient(oracle_loss, batch.logits.double(), *batch.arguments, blank=0)


def test_float32_agrees_with_the_oracle_at_original_sizes(
    engine: str, original: tuple[Batch, torch.Tensor, torch.Tensor]
) -> None:
    batch, expected, expected_gradient = original
    with using(engine):
        losses, gradient = with_gradient(rnnt_loss, batch.logits, *batch.arguments, blank=0)
    assert relative_error(losses.unsqueeze(1), expected.unsqueeze(1)) <= 1e-6
    assert relative_error(gradient, expected_gradient) <= 1e-5


@pytest.mark.parametrize("fused", [True, False])
def test_gradcheck_passes(engine: str, fused: bool) -> None:
    batch = make_batch([(4, 3), (3, 0), (1, 2)], 4)
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    def weighted(logits: torch.Tensor) -> torch.Tensor:
        return rnnt_loss(logits, *batch.arguments, 1, reduction="none", fused_log_softmax=fused) * weights

    with using(engine):
        assert torch.autograd.gradcheck(weighted, (batch.logits.requires_grad_(),))


def test_mean_is_over_the_batch_and_sum_over_the_utterances(engine: str) -> None:
    batch = make_batch([(4, 3), (6, 2), (1, 0)], 4)
    with using(engine):
        each, mean, total = (
            rnnt_loss(batch.logits, *batch.arguments, reduction=reduction) for reduction in ("none", "mean", "sum")
        )
    assert each.shape == (3,)
    assert mean.item() == pytest.approx(each.sum().item() / 3)
    assert total.item() == pytest.approx(each.sum().item())


def test_loss_without_gradient_is_the_same(engine: str) -> None:
    batch = make_batch([(4, 3), (6, 2)], 4)
    with using(engine):
        kept, _ = with_gradient(rnnt_loss, batch.logits, *batch.arguments)
        assert torch.equal(rnnt_loss(batch.logits, *batch.arguments, reduction="none"), kept)


def test_default_blank_is_the_last_id(engine: str) -> None:
    batch = make_batch([(4, 3)], 6)
    with using(engine):
        assert rnnt_loss(batch.logits, *batch.arguments).item() == rnnt_loss(batch.logits, *batch.arguments, 5).item()


def test_clamp_bounds_the_gradient_of_each_loss_before_its_weight(engine: str) -> None:
    batch = make_batch([(4, 3), (6, 2)], 4)
    logits = batch.logits.clone().requires_grad_()
    with using(engine):
        _, free = with_gradient(rnnt_loss, batch.logits, *batch.arguments)
        (rnnt_loss(logits, *batch.arguments, clamp=0.05, reduction="sum") * 3).backward()
    assert free.abs().max() > 0.05
    torch.testing.assert_close(logits.grad, free.clamp(-0.05, 0.05) * 3)


def test_threads_change_nothing(engine: str) -> None:
    batch = make_batch([(40, 12), (25, 9), (33, 1)], 30, torch.float32)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with using(engine):
                found.append(with_gradient(rnnt_loss, batch.logits, *batch.arguments))
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-7)
