"""What fastemit and the delay penalty mean, held against the oracle on log-probabilities that were changed by hand."""

from __future__ import annotations

import pytest
import torch
from transducer_cases import ENGINES, make_batch, relative_error, using, with_gradient

from speechmeter.transducer import OptionError, oracle_loss, rnnt_loss

SIZES = ((9, 4), (6, 5), (5, 0))


def at_labels(batch, values: torch.Tensor) -> torch.Tensor:
    """`values` (B, T, U + 1) at the id that each cell can emit, 0 elsewhere, in the shape of the logits."""
    found = torch.zeros_like(batch.logits)
    for b, (frames, labels) in enumerate(batch.sizes):
        for u in range(labels):
            found[b, :frames, u, batch.targets[b, u]] = values[b, :frames, u]
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_fastemit_scales_what_reaches_the_logits_through_labels(engine: str) -> None:
    batch = make_batch(SIZES, 7)
    with using(engine):
        losses, gradient = with_gradient(rnnt_loss, batch.logits, *batch.arguments, blank=0, fastemit=0.5)
    logits = batch.logits.clone().requires_grad_()
    scores = logits.log_softmax(-1)
    # the same values, but 1.5 times the gradient where a label is emitted
    mask = at_labels(batch, torch.ones(batch.logits.shape[:3], dtype=torch.float64))
    heavier = scores + 0.5 * mask * (scores - scores.detach())
    truth = oracle_loss(heavier, *batch.arguments, blank=0, reduction="none", fused_log_softmax=False)
    truth.sum().backward()
    assert torch.allclose(losses, truth.detach(), rtol=1e-12)
    assert relative_error(gradient, logits.grad) <= 1e-12


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("penalty", [0.3, -0.1])
def test_the_delay_penalty_is_added_to_labels_by_their_frame(engine: str, penalty: float) -> None:
    batch = make_batch(SIZES, 7)
    with using(engine):
        losses, gradient = with_gradient(rnnt_loss, batch.logits, *batch.arguments, blank=0, delay_penalty=penalty)
    added = torch.stack(
        [penalty * ((frames - 1) / 2 - torch.arange(batch.logits.shape[1], dtype=torch.float64)) for frames, _ in SIZES]
    )
    added = added.unsqueeze(2).expand(batch.logits.shape[:3])
    logits = batch.logits.clone().requires_grad_()
    scores = logits.log_softmax(-1) + at_labels(batch, added)
    truth = oracle_loss(scores, *batch.arguments, blank=0, reduction="none", fused_log_softmax=False)
    truth.sum().backward()
    assert torch.allclose(losses, truth.detach(), rtol=1e-12)
    assert relative_error(gradient, logits.grad) <= 1e-12


@pytest.mark.parametrize("options", [{"fastemit": -0.1}, {"fastemit": float("nan")}, {"delay_penalty": float("inf")}])
def test_options_that_mean_nothing_are_refused(options: dict[str, float]) -> None:
    batch = make_batch(SIZES, 7)
    with pytest.raises(OptionError, match="give"):
        rnnt_loss(batch.logits, *batch.arguments, **options)


def test_a_compiled_model_breaks_its_graph_at_the_loss_and_gives_the_same() -> None:
    batch = make_batch(SIZES, 7, torch.float32)

    def step(scale: torch.Tensor) -> torch.Tensor:
        return rnnt_loss(batch.logits * scale, *batch.arguments, blank=0) * 2.0

    scale, other = (torch.tensor(1.5, requires_grad=True) for _ in range(2))
    plain, compiled = step(scale), torch.compile(step, backend="eager")(other)
    plain.backward()
    compiled.backward()
    assert plain == compiled
    assert scale.grad == other.grad
