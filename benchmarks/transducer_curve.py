"""The same training with several transducer losses on a GPU: curves of a small transducer on synthetic data.

    python benchmarks/transducer_curve.py

Needs CUDA. Every loss starts from the same weights and sees the same batches, whose lengths differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from speechmeter.transducer import graphed, joint_rnnt_loss, rnnt_loss


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device here")
    curves = {
        "reference": train(_plain, torch.float64),
        "ours float32": train(_joint("float32"), torch.float32),
        "the same again": train(_joint("float32"), torch.float32),
        "graphed": train(_graphed("float32"), torch.float32),
        "ours bfloat16": train(_joint(None), torch.bfloat16),
    }
    print(f"training, {len(curves['reference'])} steps: loss at steps 1, 100, 200, 300; largest relative difference")
    for name, values in curves.items():
        far = max(abs(a - b) / b for a, b in zip(values, curves["reference"], strict=True))
        print(f"{name:16}{'  '.join(f'{values[at]:9.4f}' for at in (0, 99, 199, 299))}   {far:.1e}", flush=True)
    pairs = zip(curves["graphed"], curves["ours float32"], strict=True)
    print(f"graphed from eager: at most {max(abs(a - b) / b for a, b in pairs):.1e} of the loss")


def train(loss: Callable[..., torch.Tensor], dtype: torch.dtype, count: int = 300) -> list[float]:
    """Losses of a transducer of 40,000 parameters that learns which label a band of frames stands for."""
    torch.manual_seed(0)
    width, ids, bands = 64, 32, 16
    model = torch.nn.ModuleDict(
        {
            "encoder": torch.nn.Sequential(
                torch.nn.Linear(bands, width), torch.nn.ReLU(), torch.nn.Linear(width, width)
            ),
            "predictor": torch.nn.Embedding(ids, width),
            "joiner": torch.nn.Linear(width, ids),
        }
    ).to("cuda", dtype if dtype == torch.float64 else torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    codes = torch.randn(ids, bands, generator=torch.Generator().manual_seed(1))
    found = []
    for number in range(count):
        features, targets, frames, labels = _task(codes, number)
        half = torch.autocast("cuda", torch.bfloat16, enabled=dtype == torch.bfloat16)
        with half:
            encoder = model["encoder"](features.to(next(model.parameters()).dtype))
            before = torch.nn.functional.pad(targets, (1, 0))
            value = loss(encoder, model["predictor"](before), model["joiner"], targets, frames, labels)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        found.append(float(value))
    return found


def _task(codes: torch.Tensor, number: int) -> tuple[torch.Tensor, ...]:
    """Sixteen utterances of up to 12 labels, each held for four noisy frames."""
    draw = torch.Generator().manual_seed(number)
    labels = torch.randint(4, 13, (16,), generator=draw)
    targets = torch.randint(1, len(codes), (16, 12), generator=draw)
    features = codes[targets].repeat_interleave(4, 1) + 0.5 * torch.randn(16, 48, codes.shape[1], generator=draw)
    longest = int(labels.max())  # a batch is no longer than its utterances
    batch = features[:, : 4 * longest], targets[:, :longest], 4 * labels, labels
    return tuple(tensor.cuda() for tensor in batch)


def _plain(encoder: Any, predictor: Any, joiner: Any, *labels: torch.Tensor) -> torch.Tensor:
    logits = joiner(torch.tanh(encoder.unsqueeze(2) + predictor.unsqueeze(1)))
    loss: torch.Tensor = rnnt_loss(logits, *labels, blank=0)
    return loss


def _joint(precision: str | None) -> Callable[..., torch.Tensor]:
    def loss(encoder: Any, predictor: Any, joiner: Any, *labels: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = joint_rnnt_loss(
            encoder, predictor, joiner.weight, joiner.bias, *labels, blank=0, precision=precision
        )
        return value

    return loss


def _graphed(precision: str) -> Callable[..., torch.Tensor]:
    def loss(encoder: Any, predictor: Any, targets: Any, frames: Any, labels: Any, *output: Any) -> torch.Tensor:
        value: torch.Tensor = joint_rnnt_loss(
            encoder, predictor, *output, targets, frames, labels, blank=0, precision=precision, check=False
        )
        return value

    fast = graphed(loss, frames=16, labels=4)
    return lambda encoder, predictor, joiner, *labels: fast(encoder, predictor, *labels, *joiner.parameters())


if __name__ == "__main__":
    main()
