"""Our exact transducer loss on the CPU beside a peer: time and extra memory of the loss alone, forward and backward.

Batches of 4 utterances at sizes of LibriSpeech (4× subsampled frames, 500 word pieces): four as they come, with
padding, and four of equal length, without. Calls are interleaved (ours, torch, peer, peer, torch, ours) in one process;
the table shows medians and ratios of medians. Extra memory is the growth of the resident size over one call, less the
gradient.

    python benchmarks/transducer_cpu.py --peer path/to/file.py:function

The peer is a function (logits, targets, logit_lengths, target_lengths, blank=0, reduction="sum"). Exit 1 when ours
takes more than 0.4 of its time, or more extra memory than a quarter of the logits.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import NamedTuple

import torch

from speechmeter.meters.resident import HighWaterMark
from speechmeter.transducer import differentiable, engines, rnnt_loss

VOCABULARY = 500
BATCHES = {
    "as they come": ((433, 101), (288, 73), (325, 92), (342, 83)),
    "equal lengths": ((455, 112),) * 4,
}
MIB = 2**20
MOST_TIME = 0.4
MOST_EXTRA = 0.25

Loss = Callable[..., torch.Tensor]


class Batch(NamedTuple):
    """The arguments of a loss."""

    logits: torch.Tensor
    targets: torch.Tensor
    logit_lengths: torch.Tensor
    target_lengths: torch.Tensor


def make_batch(sizes: tuple[tuple[int, int], ...]) -> Batch:
    """Normal logits with a gradient, targets without blank (0), true lengths."""
    torch.manual_seed(0)
    frames, labels = torch.tensor(sizes).unbind(1)
    logits = torch.randn(len(sizes), int(frames.max()), int(labels.max()) + 1, VOCABULARY, requires_grad=True)
    return Batch(logits, torch.randint(1, VOCABULARY, (len(sizes), int(labels.max()))), frames, labels)


def call(loss: Loss, batch: Batch) -> float:
    """Loss and gradient, which is dropped; returns the loss."""
    value = loss(*batch, blank=0, reduction="sum")
    value.backward()
    batch.logits.grad = None
    return value.item()


def load_peer(where: str) -> Loss:
    """Return the function named `path:function`; the function is `rnnt_loss_diag` when none is named."""
    path, _, name = where.partition(":")
    spec = importlib.util.spec_from_file_location("peer", Path(path))
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file; give --peer path/to/file.py:function")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name or "rnnt_loss_diag")


@contextmanager
def without_numba() -> Iterator[None]:
    """Compute by plain torch, as where numba is not installed."""
    usual = differentiable.engine_for
    differentiable.engine_for = lambda logits: engines.TORCH
    try:
        yield
    finally:
        differentiable.engine_for = usual


def plain_torch(*args: object, **options: object) -> torch.Tensor:
    """Our loss by plain torch, forward; the backward pass stays with the engine that went forward."""
    with without_numba():
        return rnnt_loss(*args, **options)


def extra_bytes(loss: Loss, batch: Batch) -> int:
    """Growth of the resident size over one call, less the gradient."""
    growth = HighWaterMark().read(lambda: call(loss, batch)).growth_bytes
    return growth - batch.logits.numel() * batch.logits.element_size()


def times_ms(losses: dict[str, Loss], batch: Batch, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each call, there and back through the losses in every repeat."""
    taken: dict[str, list[float]] = {name: [] for name in losses}
    for _ in range(repeats):
        for name in [*losses, *reversed(losses)]:
            start = perf_counter_ns()
            call(losses[name], batch)
            taken[name].append((perf_counter_ns() - start) / 1e6)
    return taken


def compare(title: str, losses: dict[str, Loss], repeats: int) -> bool:
    """Print the table of one batch, the peer last; return whether ours, the first, is within both limits."""
    for loss in losses.values():
        call(loss, make_batch(((9, 3),)))  # compiled and loaded before anything is read
    batch = make_batch(BATCHES[title])
    logits_bytes = batch.logits.numel() * batch.logits.element_size()
    extra = {name: extra_bytes(loss, batch) for name, loss in losses.items()}
    values = {name: call(loss, batch) for name, loss in losses.items()}
    taken = {name: median(ms) for name, ms in times_ms(losses, batch, repeats).items()}
    ours, peer = next(iter(losses)), list(losses)[-1]
    shape = "×".join(str(n) for n in batch.logits.shape)
    print(f"\n{title}: logits {shape}, {logits_bytes / MIB:.0f} MiB, {torch.get_num_threads()} thread(s)")
    print(f"{'':16}{'ms':>8}{'of peer':>9}{'extra MiB':>11}{'of logits':>11}{'loss':>16}")
    for name in losses:
        ratio, share = taken[name] / taken[peer], extra[name] / logits_bytes
        print(f"{name:16}{taken[name]:8.0f}{ratio:9.3f}{extra[name] / MIB:11.1f}{share:11.3f}{values[name]:16.4f}")
    return taken[ours] <= MOST_TIME * taken[peer] and extra[ours] <= MOST_EXTRA * logits_bytes


def main() -> int:
    """Compare on both batches; 0 when ours is within the limits on each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="path/to/file.py:function")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, help="torch's number when left out")
    asked = parser.parse_args()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    ours = engines.engine_for(torch.zeros(1)).name
    losses: dict[str, Loss] = {f"ours ({ours})": rnnt_loss}
    if ours != engines.TORCH.name:
        losses["ours (torch)"] = plain_torch
    losses["peer"] = load_peer(asked.peer)
    verdicts = [compare(title, losses, asked.repeats) for title in BATCHES]
    print(f"\nat most {MOST_TIME} of the time and {MOST_EXTRA} of the logits: {'yes' if all(verdicts) else 'no'}")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
