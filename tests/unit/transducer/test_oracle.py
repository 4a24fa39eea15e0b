"""The oracle against the definition: the sum over every alignment, one by one."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from transducer_cases import make_batch, with_gradient

from speechmeter.transducer import oracle_loss


def loss_by_enumeration(log_probs: torch.Tensor, targets: list[int], blank: int) -> torch.Tensor:
    """-log of the sum over all orders of T blanks and U labels that end with a blank."""
    frames, labels = len(log_probs), len(targets)
    paths = []
    for label_moves in combinations(range(frames + labels - 1), labels):
        t = u = 0
        path = []
        for move in range(frames + labels):
            if move in label_moves:
                path.append(log_probs[t, u, targets[u]])
                u += 1
            else:
                path.append(log_probs[t, u, blank])
                t += 1
        paths.append(torch.stack(path).sum())
    return -torch.stack(paths).logsumexp(0)


@pytest.mark.parametrize("sizes", [[(1, 0)], [(1, 3)], [(4, 0)], [(2, 4)], [(5, 3)], [(3, 2), (4, 3), (1, 1)]])
def test_loss_and_gradient_are_those_of_all_alignments(sizes: list[tuple[int, int]]) -> None:
    batch = make_batch(sizes, 5)
    losses, gradient = with_gradient(oracle_loss, batch.logits, *batch.arguments, blank=2)
    logits = batch.logits.clone().requires_grad_()
    expected = torch.stack(
        [
            loss_by_enumeration(logits[b, :frames].log_softmax(-1), batch.targets[b, :labels].tolist(), blank=2)
            for b, (frames, labels) in enumerate(sizes)
        ]
    )
    expected.sum().backward()
    torch.testing.assert_close(losses, expected.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradient, logits.grad, rtol=1e-12, atol=1e-12)


def test_uniform_logits_count_the_alignments() -> None:
    frames, labels, vocabulary = 7, 4, 9
    batch = make_batch([(frames, labels)], vocabulary)
    loss = oracle_loss(torch.zeros_like(batch.logits), *batch.arguments)
    paths = math.comb(frames + labels - 1, labels)
    assert loss.item() == pytest.approx((frames + labels) * math.log(vocabulary) - math.log(paths), rel=1e-13)


def test_log_probabilities_are_taken_as_they_are() -> None:
    batch = make_batch([(3, 2)], 4)
    fused = oracle_loss(batch.logits, *batch.arguments)
    given = oracle_loss(batch.logits.log_softmax(-1), *batch.arguments, fused_log_softmax=False)
    assert given.item() == pytest.approx(fused.item(), rel=1e-13)
    assert oracle_loss(batch.logits, *batch.arguments, fused_log_softmax=False).item() != pytest.approx(fused.item())


def test_float32_logits_are_computed_in_float64() -> None:
    batch = make_batch([(3, 2)], 4, torch.float32)
    loss = oracle_loss(batch.logits, *batch.arguments)
    assert loss.dtype == torch.float64
    assert loss.item() == oracle_loss(batch.logits.double(), *batch.arguments).item()


def test_nan_in_padding_reaches_neither_loss_nor_gradient() -> None:
    batch = make_batch([(5, 3), (2, 1)], 4)
    losses, gradient = with_gradient(oracle_loss, batch.with_padding(torch.nan), *batch.arguments)
    clean_losses, clean_gradient = with_gradient(oracle_loss, batch.logits, *batch.arguments)
    assert torch.equal(losses, clean_losses)
    assert torch.equal(gradient, clean_gradient)
