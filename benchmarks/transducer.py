"""Transducer losses on a GPU in one run: ours beside every other that is installed; time, memory and agreement.

    python benchmarks/transducer.py [--shapes FILE] [--steps 20] [--parts loss,step,kernels] [--workloads fixed,columns]

loss      the loss alone, logits given: medians over the batches, ratios to torchaudio and to the floor of two passes
          (true logits read twice, every gradient written once, at the measured rate of a copy), and peaks
step      joiner, loss and backward, in float32, float32 with TF32, and bfloat16; ours also from CUDA graphs, and with
          little memory. Busy is the time in which kernels run
kinds     steps of losses of other kinds: token-and-duration, multi-blank, CTC
kernels   where the time of our steps goes: kernel by kernel, and the gaps between them

Batches are 30 utterances in the order of the file (fixed), and 10,000 frames, sorted by columns or by utterances, steps
20 on, as in the original study; FILE is a shape file, without it shapes are drawn. Losses take turns batch by batch, so
that the card is the same for all. Needs CUDA. What graphs keep is not in the peaks: none is given for them.
`speechmeter run plans/largest-batch-losses.yaml` finds the largest batch.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
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
from speechmeter.subjects.losses.call import BLANK, Joint
from speechmeter.subjects.losses.known import ALL, BY_NAME, CUDA, FRAMES, TRANSDUCER, Known
from speechmeter.transducer import (
    graphed,
    joint_rnnt_loss,
    prune_ranges,
    pruned_joint_rnnt_loss,
    rnnt_loss,
    simple_rnnt_loss,
)
from speechmeter.workloads.shapes.batching import COLUMNS, UTTERANCE, Groups, Rule, cells, cells_padded, grouped
from speechmeter.workloads.shapes.file import read
from speechmeter.workloads.shapes.generator import generate

FIRST = 20
VOCABULARY = 500
MIB = 2**20
RULES = {
    "fixed": Rule(),
    "columns": Rule(max_frames=10_000, pairing=COLUMNS),
    "utterances": Rule(max_frames=10_000, pairing=UTTERANCE),
}
PRECISIONS = ("float32", "tf32", "bfloat16")
Way = Callable[[Any], float]


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device here: the CPU's benchmark is transducer_cpu.py")
    asked = _arguments()
    shapes = generate() if asked.shapes is None else read(asked.shapes)
    workloads = {name: grouped(shapes, RULES[name]).taken(FIRST, asked.steps) for name in asked.workloads.split(",")}
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {asked.steps} batches of each workload")
    for part in asked.parts.split(","):
        {"loss": losses, "step": steps, "kinds": kinds, "kernels": kernels}[part](workloads)


def losses(workloads: dict[str, Groups]) -> None:
    """The loss alone."""
    rate = copy_bytes_per_s()
    print(f"\nloss alone, float32, {VOCABULARY} ids; a copy moves {rate / 1e12:.2f} TB/s")
    for name, groups in workloads.items():
        batches = [groups.one(place) for place in range(len(groups))]
        floor = median((2 * cells(rows) + cells_padded(rows)) * VOCABULARY * 4 / rate for rows in batches)
        found = timed({"ours unchecked": alone(BY_NAME["ours"], _unchecked)} | {
            known.name: alone(known, known.implementation()) for known in _rivals("float32") if not known.joint
        }, batches)  # fmt: skip
        print(f"\n{name}: floor of two passes {1e3 * floor:.2f} ms")
        print(f"{'':24}{'ms':>8}{'of torchaudio':>15}{'of the floor':>14}{'peak MiB':>10}")
        for loss, (seconds, peak) in found.items():
            of_peer = seconds / found["torchaudio"][0] if "torchaudio" in found else float("nan")
            ratios = f"{of_peer:15.3f}{seconds / floor:14.2f}"
            print(f"{loss:24}{1e3 * seconds:8.2f}{ratios}{peak / MIB:10,.0f}", flush=True)


def steps(workloads: dict[str, Groups]) -> None:
    """Joiner, loss and backward."""
    print(f"\nwhole step, {VOCABULARY} ids; busy is the time in which kernels run")
    for name, groups in workloads.items():
        batches = [groups.one(place) for place in range(len(groups))]
        for precision in PRECISIONS:
            dtype = "float32" if precision == "tf32" else precision
            print(f"\n{name}, {precision}\n{'':28}{'ms':>8}{'busy ms':>9}{'peak MiB':>10}")
            with tf32(precision == "tf32"):
                ways = our_steps(dtype) | {
                    known.name: whole(known, dtype) for known in _rivals(dtype) if not known.pruned and not known.joint
                }
                for loss, (seconds, peak) in timed(ways, batches).items():
                    busy = busy_s(ways[loss], batches[len(batches) // 2])
                    held = "–" if loss.endswith("graphed") else f"{peak / MIB:,.0f}"
                    print(f"{loss:28}{1e3 * seconds:8.2f}{1e3 * busy:9.2f}{held:>10}", flush=True)


def kinds(workloads: dict[str, Groups]) -> None:
    """Whole steps of losses that are other functions: what a step costs, not how well it trains."""
    for name, groups in workloads.items():
        batches = [groups.one(place) for place in range(min(3, len(groups)))]
        print(f"\n{name}, float32, other kinds of losses\n{'':28}{'ms':>8}{'peak MiB':>19}")
        ways = {
            f"{known.name} ({known.kind})": whole(known, "float32")
            for known in ALL
            if known.kind != TRANSDUCER and CUDA in known.devices and known.missing() is None
        }
        for loss, (seconds, peak) in timed(ways, batches).items():
            print(f"{loss:28}{1e3 * seconds:8.2f}{peak / MIB:19,.0f}", flush=True)


def kernels(workloads: dict[str, Groups]) -> None:
    """Kernels of our steps, in the order of their time, and the longest gaps before a kernel."""
    for name, groups in workloads.items():
        rows = groups.one(len(groups) // 2)
        ways = {"float32": our_steps("float32")}
        with tf32(True):
            ways["tf32"] = our_steps("float32")
            ways["loss"] = {"ours-in-place": alone(BY_NAME["ours-in-place"], BY_NAME["ours-in-place"].implementation())}
        for precision, some in ways.items():
            for loss, way in some.items():
                with tf32(precision == "tf32"):
                    way(rows)
                    _tell_kernels(f"{name}, {precision}, {loss}", _spans(way, rows))


def _tell_kernels(title: str, spans: list[tuple[float, float, str]]) -> None:
    total: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for start, end, kernel in spans:
        total[kernel[:40]] += end - start
        count[kernel[:40]] += 1
    print(f"\n{title}: {len(spans)} kernels, {spans[-1][1] - spans[0][0]:.0f} µs from the first to the end of the last")
    print("  " + ", ".join(f"{kernel} {count[kernel]}x {us:.0f}" for kernel, us in total.most_common(9)))
    gaps = [(after[0] - before[1], before[2][:24], after[2][:24]) for before, after in pairwise(spans)]
    print(f"  gaps {sum(max(0.0, gap) for gap, *_ in gaps):.0f} µs:", *(
        f"{gap:.0f} {before}>{after};" for gap, before, after in sorted(gaps, reverse=True)[:5]
    ), flush=True)  # fmt: skip


def our_steps(dtype: str) -> dict[str, Way]:
    """Our steps with the joiner inside: exact, checked, with little memory, pruned; eager and from graphs."""
    exact, pruned = BY_NAME["ours-joint"], BY_NAME["ours-pruned-joint"]
    ways = {
        "ours-joint": whole(exact, dtype),
        "ours-joint checked": whole(exact, dtype, Joint(loss=_called(_joint(check=True)))),
        "ours-joint graphed": whole(exact, dtype, Joint(loss=_called(graphed(_joint())))),
        "ours-joint low": whole(exact, dtype, Joint(loss=_called(_joint(memory="low")))),
        "ours-joint low graphed": whole(exact, dtype, Joint(loss=_called(graphed(_joint(memory="low"))))),
        "ours-pruned-joint": whole(pruned, dtype),
        "ours-pruned-joint graphed": whole(pruned, dtype, Joint(loss=_called(graphed(_pruned)))),
    }
    return ways


def _joint(**options: Any) -> Callable[..., torch.Tensor]:
    how = {"blank": BLANK, "reduction": "none", "check": False} | options
    return lambda encoder, predictor, targets, frames, labels, weight, bias: joint_rnnt_loss(
        encoder, predictor, weight, bias, targets, frames, labels, **how
    )


def _pruned(encoder: Any, predictor: Any, targets: Any, frames: Any, labels: Any, *output: Any) -> torch.Tensor:
    simple = simple_rnnt_loss(encoder, predictor, targets, frames, labels, BLANK, 0.25, check=False)
    starts = prune_ranges(simple, frames, labels, 5, check=False)
    loss: torch.Tensor = pruned_joint_rnnt_loss(
        encoder, predictor, *output, targets, starts, frames, labels, 5, BLANK, reduction="none", check=False
    )
    return loss


def _called(loss: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda sides, labels, ranges, states: loss(*sides[:2], *labels.arguments, *sides[2:])


def _unchecked(logits: torch.Tensor, labels: Any) -> torch.Tensor:
    value: torch.Tensor = rnnt_loss(logits, *labels.arguments, blank=BLANK, reduction="none", check=False)
    return value


def _rivals(dtype: str) -> Iterator[Known]:
    """Exact losses that are installed and take the dtype."""
    for known in ALL:
        fits = known.kind == TRANSDUCER and known.layout != FRAMES and CUDA in known.devices and dtype in known.dtypes
        if fits and not known.pruned and known.name != "ours-torch" and known.missing() is None:
            yield known


def alone(known: Known, loss: Any) -> Way:
    """A call of one loss on rows (T, U), logits given."""
    return _clocked(step.loss_stages(_recipe(known, "float32"), loss))


def whole(known: Known, dtype: str, joint: Joint | None = None) -> Way:
    """A call of joiner, loss and backward, as the subject makes it; `joint` in place of the implementation."""
    recipe = _recipe(known, dtype)
    output = torch.nn.Linear(step.WIDTH, recipe.outputs).to("cuda", getattr(torch, dtype))
    if known.joint:
        return _clocked(step.joint_stages(recipe, output, None, joint or known.implementation()))
    return _clocked(step.step_stages(recipe, output, known.implementation()))


def _recipe(known: Known, dtype: str) -> step.Recipe:
    return step.Recipe(known=known, vocabulary=VOCABULARY, dtype=getattr(torch, dtype), device="cuda")


def _clocked(stages: Sequence[Any]) -> Way:
    def call(rows: Any) -> float:
        """Seconds of the clocked stages, between synchronisations."""
        made = stages[0].fn(Batch(data=rows, items=len(rows)))
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        begin = perf_counter()
        run_chain(stages[1:], made)
        torch.cuda.synchronize()
        return perf_counter() - begin

    return call


def timed(ways: dict[str, Way], batches: Sequence[Any]) -> dict[str, tuple[float, int]]:
    """Median seconds and the largest growth of the allocator of each way; each sees all batches once before."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    peaks = dict.fromkeys(ways, 0)
    for rows in batches:
        for way in ways.values():
            way(rows)
    held = torch.cuda.memory_allocated()  # what graphs keep
    for rows in batches:
        for name, way in ways.items():
            found[name].append(way(rows))
            peaks[name] = max(peaks[name], torch.cuda.max_memory_allocated() - held)
    return {name: (median(found[name]), peaks[name]) for name in ways}


def busy_s(way: Way, rows: Any) -> float:
    """Seconds in which at least one kernel runs, those that draw the input left out."""
    spans = _spans(way, rows)
    edges = [(start, max(end for _, end, _ in spans[: place + 1])) for place, (start, _, _) in enumerate(spans)]
    gaps = sum(max(0.0, after[0] - before[1]) for before, after in pairwise(edges))
    return float(edges[-1][1] - edges[0][0] - gaps) / 1e6


def _spans(way: Way, rows: Any) -> list[tuple[float, float, str]]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        way(rows)
    return sorted(
        (event.time_range.start, event.time_range.end, event.name)
        for event in profile.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
        and "distribution" not in event.name  # the input's random numbers
    )


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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=Path)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--parts", default="loss,step")
    parser.add_argument("--workloads", default=",".join(RULES))
    return parser.parse_args()


if __name__ == "__main__":
    main()
