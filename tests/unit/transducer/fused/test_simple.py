"""The simple loss by kernels under Triton's interpreter, against plain torch in float64."""

from __future__ import annotations

import pytest
import torch
from interpreted import fused
from transducer_cases import relative_error

from speechmeter.transducer import engines, simple_rnnt_loss

SIZES = {
    "several": ((14, 5), (9, 2)),
    "one utterance": ((6, 3),),
    "fewer frames than labels": ((3, 8), (2, 6)),
    "no label": ((5, 0), (4, 2)),
    "one frame": ((1, 1), (3, 2)),
}
IDS = 7


def computed(sizes, padding: float, share: float) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(5)
    frames, labels = torch.tensor(sizes).unbind(1)
    lengths = int(frames.max()), int(labels.max()) + 1
    sides = [torch.randn(len(sizes), length, IDS, generator=draw, dtype=torch.float64) for length in lengths]
    for row, (t, u) in enumerate(sizes):
        sides[0][row, t:], sides[1][row, u + 1 :] = padding, padding
    targets = torch.randint(1, IDS, (len(sizes), int(labels.max())), generator=draw)
    weights = torch.rand(len(sizes), generator=draw, dtype=torch.float64)
    for side in sides:
        side.requires_grad_()
    found = simple_rnnt_loss(*sides, targets, frames, labels, 0, share, reduction="none")
    (found.loss * weights).sum().backward()
    return [found.loss.detach(), found.blank_use, found.label_use, sides[0].grad, sides[1].grad]


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_loss_uses_and_gradients_are_those_of_plain_torch(sizes, share: float) -> None:
    with engines.only(engines.TORCH):
        truth = computed(sizes, 0.0, share)
    with fused():
        found = computed(sizes, float("nan"), share)
    for one, other in zip(found, truth, strict=True):
        assert relative_error(one[None], other[None]) <= 1e-6
