"""What a loss adds to the resident size, read in a process of its own: others leave memory that is used again."""

from __future__ import annotations

import torch
from transducer_cases import make_batch, using

from speechmeter.meters.resident import HighWaterMark
from speechmeter.transducer import rnnt_loss


def tell(engine: str) -> None:
    """Print bytes: of the logits, grown by loss and backward, grown by a whole log-softmax and its backward."""
    torch.set_num_threads(1)
    mark = HighWaterMark()
    batch = make_batch([(150, 60), (100, 40), (150, 60), (90, 55)], 500, torch.float32)
    logits = batch.logits.requires_grad_()

    def step() -> None:
        rnnt_loss(logits, *batch.arguments, reduction="sum").backward()
        logits.grad = None

    def whole_log_softmax() -> None:
        logits.log_softmax(-1).exp().sum().backward()
        logits.grad = None

    with using(engine):
        rnnt_loss(logits[:1, :2, :2].contiguous(), batch.targets[:1, :1], *torch.tensor([[2], [1]])).backward()
        logits.grad = None
        grown = mark.read(step).growth_bytes
    print(logits.numel() * logits.element_size(), grown, mark.read(whole_log_softmax).growth_bytes)
