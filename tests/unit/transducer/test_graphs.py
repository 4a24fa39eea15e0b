"""Losses from CUDA graphs, as far as that goes without a GPU: shapes of buckets, and the loss as it is on a CPU."""

from __future__ import annotations

import pytest
import torch

from speechmeter.transducer import OptionError, graphed, joint_rnnt_loss


def given(frames: int, labels: int) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    sides = [torch.randn(2, length, 6, generator=draw, requires_grad=True) for length in (frames, labels + 1)]
    targets = torch.randint(1, 5, (2, labels), generator=draw)
    lengths = torch.tensor([frames, frames - 1]), torch.tensor([labels, labels])
    return [*sides, targets, *lengths, torch.randn(5, 6, generator=draw, requires_grad=True)]


def loss(encoder, predictor, targets, frames, labels, weight) -> torch.Tensor:
    return joint_rnnt_loss(encoder, predictor, weight, None, targets, frames, labels, blank=0, check=False)


def test_on_a_cpu_it_is_the_loss_itself() -> None:
    batch = given(7, 3)
    fast = graphed(loss)
    assert fast(*batch) == loss(*batch)
    assert not fast._captures


@pytest.mark.parametrize(("frames", "labels", "filled"), [(7, 3, (8, 3)), (8, 4, (8, 6)), (9, 1, (12, 3))])
def test_shapes_are_filled_up_to_whole_buckets(frames: int, labels: int, filled: tuple[int, int]) -> None:
    t, u = filled
    shapes = graphed(loss, frames=4, labels=3)._shapes(given(frames, labels))
    assert shapes == [(2, t, 6), (2, u + 1, 6), (2, u), (2,), (2,), (5, 6)]


@pytest.mark.parametrize("option", [{"frames": 0}, {"labels": 1.5}, {"most": -1}, {"frames": True}])
def test_buckets_that_make_no_sense_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(option))):
        graphed(loss, **option)
