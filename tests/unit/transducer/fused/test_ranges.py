"""The starts of ranges by kernels under Triton's interpreter, against those by plain torch."""

from __future__ import annotations

import pytest
import torch
from interpreted import fused

from speechmeter.transducer import SimpleLoss, prune_ranges
from speechmeter.transducer.fused import ranges

SIZES = {
    "several": ((34, 5), (9, 2), (21, 20)),
    "one utterance": ((12, 5),),
    "fewer frames than labels": ((3, 8), (2, 6)),
    "no label": ((9, 0), (7, 4)),
    "one frame": ((1, 1), (6, 3)),
}
LONG = pytest.mark.campaign  # each way of the kernels is taken by one of the others


def random_use(sizes: tuple[tuple[int, int], ...], seed: int) -> tuple[SimpleLoss, torch.Tensor, torch.Tensor]:
    """Uses of which no two are alike; ranges need no more of them than that."""
    frames, labels = torch.tensor(sizes).unbind(1)
    draw = torch.Generator().manual_seed(seed)
    shape = len(sizes), int(frames.max()), int(labels.max()) + 1
    blank, label = (torch.rand(shape, generator=draw) for _ in range(2))
    return SimpleLoss(torch.zeros(len(sizes)), blank, label), frames, labels


@pytest.mark.parametrize(
    ("sizes", "states", "at_once"),
    [
        pytest.param(sizes, states, at_once, id=f"{name}, {states}, {at_once}", marks=() if short else LONG)
        for name, sizes in SIZES.items()
        for states in (1, 2, 5, 30)
        for at_once in (8, ranges.FRAMES)
        for short in [states == 5 or (at_once == 8 and (states == 2 or name == "several"))]
    ],
)
def test_starts_are_those_of_plain_torch(sizes, states: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "FRAMES", at_once)
    simple, frames, labels = random_use(sizes, seed=states)
    expected = prune_ranges(simple, frames, labels, states, check=False)
    with fused():
        found = prune_ranges(simple, frames, labels, states, check=False)
    assert found.dtype == torch.int64
    assert torch.equal(found, expected)
