"""The simple loss against the oracle on the sums that it never makes."""

from __future__ import annotations

import pytest
import torch
from transducer_cases import ENGINES, make_batch, using

from speechmeter.transducer import OptionError, ShapeError, oracle_loss, simple_rnnt_loss

SIZES = [(7, 4), (5, 0), (1, 3)]
engines = pytest.mark.parametrize("engine", ENGINES)


def sides(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of encoder and predictor for `SIZES`."""
    generator = torch.Generator().manual_seed(3)
    encoder, predictor = (torch.randn(3, n, 6, generator=generator, dtype=torch.float64) for n in (7, 5))
    return encoder.to(dtype).requires_grad_(), predictor.to(dtype).requires_grad_()


@engines
def test_is_the_exact_loss_of_the_sums(engine: str) -> None:
    arguments = make_batch(SIZES, 6).arguments
    encoder, predictor = sides()
    with using(engine):
        simple = simple_rnnt_loss(encoder, predictor, *arguments, blank=0, reduction="none")
    exact = oracle_loss(encoder.unsqueeze(2) + predictor.unsqueeze(1), *arguments, blank=0, reduction="none")
    torch.testing.assert_close(simple.loss, exact)
    found = torch.autograd.grad(simple.loss.sum(), (encoder, predictor))
    torch.testing.assert_close(found, torch.autograd.grad(exact.sum(), (encoder, predictor)))


@engines
def test_smoothed_loss_is_the_exact_loss_of_mixed_log_probs(engine: str) -> None:
    arguments = make_batch(SIZES, 6).arguments
    encoder, predictor = sides()
    with using(engine):
        simple = simple_rnnt_loss(encoder, predictor, *arguments, 0, 0.25, 0.15, "none")
    alone = predictor.log_softmax(-1)
    states = [labels + 1 for _, labels in SIZES]
    usual = torch.cat([row[:n] for row, n in zip(alone.exp(), states, strict=True)]).mean(0).log()
    mixed = (
        0.6 * (encoder.unsqueeze(2) + predictor.unsqueeze(1)).log_softmax(-1)
        + 0.25 * alone.unsqueeze(1)
        + 0.15 * (encoder + usual).log_softmax(-1).unsqueeze(2)
    )
    exact = oracle_loss(mixed, *arguments, blank=0, reduction="none", fused_log_softmax=False)
    torch.testing.assert_close(simple.loss, exact)
    found = torch.autograd.grad(simple.loss.sum(), (encoder, predictor))
    torch.testing.assert_close(found, torch.autograd.grad(exact.sum(), (encoder, predictor)))


@engines
def test_every_frame_is_left_by_blank_once_and_every_state_by_its_label_once(engine: str) -> None:
    with using(engine):
        simple = simple_rnnt_loss(*sides(), *make_batch(SIZES, 6).arguments)
    for b, (frames, labels) in enumerate(SIZES):
        torch.testing.assert_close(simple.blank_use[b].sum(1)[:frames], torch.ones(frames, dtype=torch.float64))
        torch.testing.assert_close(simple.label_use[b].sum(0)[:labels], torch.ones(labels, dtype=torch.float64))
        assert simple.blank_use[b, frames:].count_nonzero() == simple.label_use[b, :, labels:].count_nonzero() == 0


def test_nan_in_padding_reaches_neither_loss_nor_gradient() -> None:
    arguments = make_batch(SIZES, 6).arguments
    clean = sides()
    dirty = sides()
    with torch.no_grad():
        for b, (frames, labels) in enumerate(SIZES):
            dirty[0][b, frames:] = torch.nan
            dirty[1][b, labels + 1 :] = torch.nan
    losses = [simple_rnnt_loss(*given, *arguments, 0, 0.2, 0.1, "sum").loss for given in (clean, dirty)]
    assert losses[0].item() == losses[1].item()
    for loss in losses:
        loss.backward()
    assert all(torch.equal(one.grad, other.grad) for one, other in zip(clean, dirty, strict=True))


def test_far_apart_favourites_stay_finite() -> None:
    arguments = make_batch(SIZES, 6).arguments
    encoder, predictor = (side.detach() * 1000 for side in sides(torch.float32))
    assert simple_rnnt_loss(encoder, predictor, *arguments).loss.isfinite()


def test_sides_of_different_vocabulary_are_refused() -> None:
    encoder, predictor = sides()
    with pytest.raises(ShapeError, match="the same last one"):
        simple_rnnt_loss(encoder[..., :5], predictor, *make_batch(SIZES, 5).arguments)


@pytest.mark.parametrize("shares", [(-0.1, 0.0), (0.7, 0.4)])
def test_shares_that_are_none_are_refused(shares: tuple[float, float]) -> None:
    with pytest.raises(OptionError, match="at most 1"):
        simple_rnnt_loss(*sides(), *make_batch(SIZES, 6).arguments, 0, *shares)
