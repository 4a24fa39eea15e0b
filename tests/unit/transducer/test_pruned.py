"""The pruned loss against the oracle on logits whose states out of range are impossible."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transducer_cases import ENGINES, make_batch, using, with_gradient

from speechmeter.transducer import (
    RangeError,
    ShapeError,
    SimpleLoss,
    oracle_loss,
    prune_ranges,
    pruned_rnnt_loss,
    rnnt_loss,
    simple_rnnt_loss,
    take_states,
)

SIZES = [(12, 7), (9, 4), (5, 0), (6, 6)]
IMPOSSIBLE = -1e4  # a log-probability; finite, so that the oracle's derivative is too
engines = pytest.mark.parametrize("engine", ENGINES)


def starts_for(sizes: list[tuple[int, int]], states: int, seed: int = 0) -> torch.Tensor:
    batch = make_batch(sizes, 5, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    shapes = (batch.logits.shape[1], 5), (batch.logits.shape[2], 5)
    sides = (torch.randn(len(sizes), *shape, generator=generator) * 3 for shape in shapes)
    simple = simple_rnnt_loss(*sides, *batch.arguments, blank=0)
    return prune_ranges(simple, batch.logit_lengths, batch.target_lengths, states)


def take_logits(logits: torch.Tensor, starts: torch.Tensor, width: int) -> torch.Tensor:
    """logits[b, t, starts[b, t] + s], row by row."""
    return torch.stack(
        [
            torch.stack([row[first : first + width] for row, first in zip(utterance, firsts, strict=True)])
            for utterance, firsts in zip(logits, starts.tolist(), strict=True)
        ]
    )


@engines
@pytest.mark.parametrize("states", [2, 3, 5])
def test_sums_over_the_alignments_in_range_only(engine: str, states: int) -> None:
    batch = make_batch(SIZES, 6)
    starts = starts_for(SIZES, states)
    kept = take_logits(batch.logits, starts, states)
    with using(engine):
        losses, gradient = with_gradient(pruned_rnnt_loss, kept, batch.targets, starts, *batch.arguments[1:], blank=0)
    log_probs = torch.full_like(batch.logits, IMPOSSIBLE)
    leaf = kept.clone().requires_grad_()
    inside = leaf.log_softmax(-1)
    for b, firsts in enumerate(starts.tolist()):
        for t, first in enumerate(firsts):
            log_probs[b, t, first : first + states] = inside[b, t]
    expected = oracle_loss(log_probs, *batch.arguments, blank=0, reduction="none", fused_log_softmax=False)
    expected.sum().backward()
    torch.testing.assert_close(losses, expected.detach())
    torch.testing.assert_close(gradient, leaf.grad)


@engines
@pytest.mark.parametrize("states", [8, 100])
def test_ranges_of_all_states_give_the_exact_loss(engine: str, states: int) -> None:
    batch = make_batch(SIZES, 6, torch.float32)
    starts = starts_for(SIZES, states)
    with using(engine):
        found = with_gradient(pruned_rnnt_loss, batch.logits, batch.targets, starts, *batch.arguments[1:])
        exact = with_gradient(rnnt_loss, batch.logits, *batch.arguments)
    assert starts.count_nonzero() == 0
    assert all(torch.equal(*pair) for pair in zip(found, exact, strict=True))


@engines
def test_nan_in_padding_reaches_neither_loss_nor_gradient(engine: str) -> None:
    batch = make_batch(SIZES, 6, torch.float32)
    starts = starts_for(SIZES, 5)
    arguments = batch.targets, starts, *batch.arguments[1:]
    with using(engine):
        clean = with_gradient(pruned_rnnt_loss, take_logits(batch.logits, starts, 5), *arguments)
        dirty = take_logits(batch.with_padding(torch.nan), starts, 5)
        found = with_gradient(pruned_rnnt_loss, dirty, *arguments)
    assert dirty.isnan().any()
    assert all(torch.equal(*pair) for pair in zip(found, clean, strict=True))


@engines
def test_gradcheck_passes(engine: str) -> None:
    sizes = [(5, 3), (4, 0)]
    batch = make_batch(sizes, 4)
    starts = starts_for(sizes, 2)
    logits = take_logits(batch.logits, starts, 2).requires_grad_()
    with using(engine):
        assert torch.autograd.gradcheck(
            lambda x: pruned_rnnt_loss(x, batch.targets, starts, *batch.arguments[1:], reduction="none"), (logits,)
        )


@settings(max_examples=60)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 10)), min_size=1, max_size=3),
    spare=st.integers(0, 4),
    seed=st.integers(0, 1000),
)
def test_a_path_fits_into_every_range_that_is_given(sizes: list[tuple[int, int]], spare: int, seed: int) -> None:
    states = max(1 + -(-labels // frames) for frames, labels in sizes) + spare
    starts = starts_for(sizes, states, seed)
    width = min(states, max(labels for _, labels in sizes) + 1)
    for (frames, labels), row in zip(sizes, starts.tolist(), strict=True):
        reachable = {0}
        for t in range(frames):
            inside = range(row[t], row[t] + width)
            entered = [u for u in reachable if u in inside]
            assert entered, "no alignment enters this frame"
            reachable = {u for u in inside if u >= min(entered) and u <= labels}
        assert labels in reachable


def test_ranges_follow_the_alignments() -> None:
    frames, labels = 20, 9
    use = torch.zeros(1, frames, labels + 1, dtype=torch.float64)
    state = [t // 2 for t in range(frames)]
    use[0, range(frames), state] = 1.0
    simple = SimpleLoss(torch.zeros(()), use, torch.zeros_like(use))
    starts = prune_ranges(simple, torch.tensor([frames]), torch.tensor([labels]), states=3)
    assert all(first <= u < first + 3 for first, u in zip(starts[0].tolist(), state, strict=True))


def test_ranges_start_with_the_first_state_wherever_the_alignments_are() -> None:
    use = torch.zeros(1, 6, 8, dtype=torch.float64)
    use[..., -1] = 1.0
    simple = SimpleLoss(torch.zeros(()), use, torch.zeros_like(use))
    assert prune_ranges(simple, torch.tensor([6]), torch.tensor([7]), states=3).tolist() == [[0, 2, 4, 5, 5, 5]]


def test_take_states_selects_and_sends_the_gradient_back() -> None:
    predictor = torch.arange(12.0).view(1, 6, 2).requires_grad_()
    taken = take_states(predictor, torch.tensor([[0, 1, 3]]), states=3)
    assert taken[0, :, :, 0].tolist() == [[0, 2, 4], [2, 4, 6], [6, 8, 10]]
    taken.sum().backward()
    assert predictor.grad[0, :, 0].tolist() == [1, 2, 2, 2, 1, 1]


def test_too_few_frames_for_the_range_are_refused() -> None:
    with pytest.raises(RangeError, match=r"utterance 1 has 9 labels in 4 frames.*states=4 or more"):
        starts_for([(12, 7), (4, 9)], 3)


def test_starts_that_cut_alignments_off_are_refused() -> None:
    batch = make_batch(SIZES, 6)
    starts = starts_for(SIZES, 3)
    logits = take_logits(batch.logits, starts, 3)
    for b, t, value in [(0, 0, 1), (1, SIZES[1][0] - 1, 0), (0, 5, 6)]:
        wrong = starts.clone()
        wrong[b, t] = value
        with pytest.raises(RangeError, match=rf"starts\[{b}\] do not lead"):
            pruned_rnnt_loss(logits, batch.targets, wrong, *batch.arguments[1:])


def test_starts_of_another_shape_are_refused() -> None:
    batch = make_batch(SIZES, 6)
    starts = starts_for(SIZES, 3)
    logits = take_logits(batch.logits, starts, 3)
    with pytest.raises(ShapeError, match="one for each frame"):
        pruned_rnnt_loss(logits, batch.targets, starts[:, 1:], *batch.arguments[1:])
