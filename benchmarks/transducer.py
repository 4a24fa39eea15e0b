"""Our fused transducer losses on a GPU beside torchaudio's, in one run: time, memory and training.

    python benchmarks/transducer.py [--shapes FILE] [--steps 20] [--parts loss,step,curve]

loss      the loss alone, logits given: medians over the batches of both workloads, ratios to torchaudio, to the floor
          of two passes (true logits read twice, every gradient written once, at the measured rate of a copy), and peaks
step      joiner, loss and backward, float32 with TF32 and bfloat16, and the pruned step; the GPU's busy time beside it
curve     a small transducer on synthetic data, trained with each loss from the same start

Batches are 30 utterances in the order of the file, and 10,000 frames sorted by columns, steps 20 on, as in the original
study; FILE is a shape file, without it shapes are drawn. Losses take turns batch by batch. Needs CUDA.
`speechmeter run plans/largest-batch-losses.yaml` finds the largest batch that fits.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch

from speechmeter.core.stages import run_chain
from speechmeter.core.types import Batch
from speechmeter.subjects.losses import step
from speechmeter.subjects.losses.known import BY_NAME
from speechmeter.transducer import joint_rnnt_loss, rnnt_loss
from speechmeter.workloads.shapes.batching import COLUMNS, Groups, Rule, cells, cells_padded, grouped
from speechmeter.workloads.shapes.file import read
from speechmeter.workloads.shapes.generator import generate

FIRST = 20
DISCARDED = 2
VOCABULARY = 500
MIB = 2**20
LOSSES = ("torchaudio", "ours", "ours-in-place")
STEPS = (
    ("torchaudio", "float32", "tf32"),
    ("ours-in-place", "float32", "tf32"),
    ("ours-joint", "float32", "full"),
    ("ours-joint", "float32", "tf32"),
    ("ours-joint", "bfloat16", "tf32"),
    ("ours-pruned-joint", "float32", "tf32"),
)


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device here: the CPU's benchmark is transducer_cpu.py")
    asked = _arguments()
    shapes = generate() if asked.shapes is None else read(asked.shapes)
    workloads = {
        "fixed 30": grouped(shapes, Rule()).taken(FIRST, asked.steps),
        "10,000 frames, columns": grouped(shapes, Rule(max_frames=10_000, pairing=COLUMNS)).taken(FIRST, asked.steps),
    }
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {asked.steps} batches of each workload")
    for part in asked.parts.split(","):
        {"loss": losses, "step": steps, "curve": curve}[part](workloads)


def losses(workloads: dict[str, Groups]) -> None:
    """The loss alone."""
    rate = copy_bytes_per_s()
    print(f"\nloss alone, float32, {VOCABULARY} ids; a copy moves {rate / 1e12:.2f} TB/s")
    for name, groups in workloads.items():
        batches = [groups.one(place) for place in range(len(groups))]
        floor = median((2 * cells(rows) + cells_padded(rows)) * VOCABULARY * 4 / rate for rows in batches)
        ways = {loss: chain(loss, "float32", "loss") for loss in LOSSES}
        print(f"\n{name}: floor of two passes {1e3 * floor:.2f} ms")
        print(f"{'':16}{'ms':>8}{'of torchaudio':>15}{'of the floor':>14}{'peak MiB':>10}")
        _rows(timed(ways, batches), floor, "torchaudio")


def steps(workloads: dict[str, Groups]) -> None:
    """Joiner, loss and backward."""
    print(f"\nwhole step, {VOCABULARY} ids; busy is the time in which kernels run")
    for name, groups in workloads.items():
        batches = [groups.one(place) for place in range(len(groups))]
        print(f"\n{name}\n{'':30}{'ms':>8}{'of torchaudio':>15}{'busy ms':>9}{'peak MiB':>10}")
        first = None
        for loss, dtype, precision in STEPS:
            with tf32(precision == "tf32"):
                way = chain(loss, dtype, "step")
                ((_, (seconds, peak)),) = timed({loss: way}, batches).items()
                busy = busy_s(way, batches[len(batches) // 2])
            first = first or seconds
            label = f"{loss} {dtype}{' TF32' if precision == 'tf32' and dtype == 'float32' else ''}"
            print(f"{label:30}{1e3 * seconds:8.2f}{seconds / first:15.3f}{1e3 * busy:9.2f}{peak / MIB:10,.0f}")


def curve(workloads: dict[str, Groups]) -> None:
    """The same training with three losses."""
    curves = {
        "reference": train(_plain, torch.float64),
        "ours float32": train(_joint("float32"), torch.float32),
        "ours bfloat16": train(_joint(None), torch.bfloat16),
    }
    print(f"\ntraining, {len(curves['reference'])} steps: loss at steps 1, 100, 200, 300; largest relative difference")
    for name, values in curves.items():
        far = max(abs(a - b) / b for a, b in zip(values, curves["reference"], strict=True))
        print(f"{name:16}{'  '.join(f'{values[at]:9.4f}' for at in (0, 99, 199, 299))}   {far:.1e}", flush=True)


def chain(loss: str, dtype: str, part: str) -> Callable[[Any], Any]:
    """A call of one loss on rows (T, U), as the subject makes it."""
    known = BY_NAME[loss]
    kind = getattr(torch, dtype)
    recipe = step.Recipe(known=known, vocabulary=VOCABULARY, dtype=kind, device="cuda")
    if part == "loss":
        stages = step.loss_stages(recipe, known.implementation())
    else:
        output = torch.nn.Linear(step.WIDTH, VOCABULARY).to("cuda", kind)
        stages = (
            step.joint_stages(recipe, output, None, known.implementation())
            if known.joint
            else step.step_stages(recipe, output, known.implementation())
        )

    def call(rows: Any) -> float:
        """Seconds of the clocked stages, between synchronisations."""
        made = stages[0].fn(Batch(data=rows, items=len(rows)))
        torch.cuda.synchronize()
        begin = perf_counter()
        run_chain(stages[1:], made)
        torch.cuda.synchronize()
        return perf_counter() - begin

    return call


def timed(ways: dict[str, Callable[[Any], float]], batches: Sequence[Any]) -> dict[str, tuple[float, int]]:
    """Median seconds and the largest allocator's peak of each way; ways take turns."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    peaks = dict.fromkeys(ways, 0)
    for turn, rows in enumerate([*batches[:1] * DISCARDED, *batches]):
        for name, way in ways.items():
            torch.cuda.reset_peak_memory_stats()
            seconds = way(rows)
            if turn >= DISCARDED:
                found[name].append(seconds)
                peaks[name] = max(peaks[name], torch.cuda.max_memory_allocated())
    return {name: (median(found[name]), peaks[name]) for name in ways}


def _rows(found: dict[str, tuple[float, int]], floor: float, peer: str) -> None:
    for name, (seconds, peak) in found.items():
        ratios = f"{seconds / found[peer][0]:15.3f}{seconds / floor:14.2f}"
        print(f"{name:16}{1e3 * seconds:8.2f}{ratios}{peak / MIB:10,.0f}")


def busy_s(way: Callable[[Any], Any], rows: Any) -> float:
    """Seconds in which at least one kernel runs, those that draw the input left out."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        way(rows)
    spans = sorted(
        (event.time_range.start, event.time_range.end)
        for event in profile.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
        and "distribution" not in event.name  # the input's random numbers
    )
    edges = [(start, max(end for _, end in spans[: place + 1])) for place, (start, end) in enumerate(spans)]
    gaps = sum(max(0.0, after[0] - before[1]) for before, after in pairwise(edges))
    return float(edges[-1][1] - edges[0][0] - gaps) / 1e6


def copy_bytes_per_s(size: int = 2**30) -> float:
    """Bytes read and written by a copy of 1 GiB a second, the best of ten."""
    source, target = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    best = float("inf")
    for _ in range(10):
        torch.cuda.synchronize()
        begin = perf_counter()
        target.copy_(source)
        torch.cuda.synchronize()
        best = min(best, perf_counter() - begin)
    return 2 * size / best


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Let torch multiply in TF32, or not."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


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
    return tuple(tensor.cuda() for tensor in (features, targets, 4 * labels, labels))


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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=Path)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--parts", default="loss,step,curve")
    return parser.parse_args()


if __name__ == "__main__":
    main()
