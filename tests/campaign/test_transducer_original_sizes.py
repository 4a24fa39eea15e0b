"""Both engines against the oracle on single utterances from the shortest to the longest common sizes, 500 ids."""

from __future__ import annotations

import pytest
import torch
from transducer_cases import make_batch, relative_error, using, with_gradient

from speechmeter.transducer import oracle_loss, rnnt_loss

pytestmark = pytest.mark.campaign


@pytest.mark.parametrize("scale", [1, 3000])
@pytest.mark.parametrize("size", [(31, 6), (133, 32), (284, 73), (371, 48), (382, 130), (433, 101)])
def test_float32_agrees_with_the_oracle(size: tuple[int, int], scale: float) -> None:
    batch = make_batch([size], 500, torch.float32)
    logits = batch.logits * scale
    expected, expected_gradient = with_gradient(oracle_loss, logits.double(), *batch.arguments, blank=0)
    for engine in ("torch", "numba"):
        with using(engine):
            losses, gradient = with_gradient(rnnt_loss, logits, *batch.arguments, blank=0)
        assert relative_error(losses.unsqueeze(1), expected.unsqueeze(1)) <= 1e-6
        assert relative_error(gradient, expected_gradient) <= 1e-5


@pytest.mark.parametrize("size", [(133, 32), (371, 48)])
def test_logits_of_thousands_agree_with_the_oracle_on_float32_log_probs(size: tuple[int, int]) -> None:
    batch = make_batch([size], 500, torch.float32)
    logits = batch.logits * 3000
    log_probs = logits.log_softmax(-1).double()  # rounded to 1e-3, which is what the tolerance is for
    expected, expected_gradient = with_gradient(oracle_loss, log_probs, *batch.arguments, blank=0)
    losses, gradient = with_gradient(rnnt_loss, logits, *batch.arguments, blank=0)
    assert gradient.isfinite().all()
    assert relative_error(losses.unsqueeze(1), expected.unsqueeze(1)) <= 1e-5
    assert relative_error(gradient, expected_gradient) <= 1e-2
