"""What telling modules apart costs: a plain step, a modules pass, and torch.profiler as the original study uses it.

The original runs with stacks, shapes and memory. Ways take turns in every round, in an order that turns round too, and
are compared within a round: the ratio is the geometric mean over rounds with a 95 % interval, and where that holds 1
the benchmark cannot tell. On a CPU in processor time, on a GPU in wall time between synchronisations. What a profiler
does once, and what reading its table takes, stand apart from the step.

    python benchmarks/attribution.py [--device cuda] [--layers 12 --width 512 --heads 8 --frames 30000 --length 1840]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from speechmeter.analysis.intervals import over_rounds
from speechmeter.core.stages import run_chain
from speechmeter.core.types import Batch
from speechmeter.meters.recording.attribution import attribute
from speechmeter.meters.recording.events import events_of
from speechmeter.meters.recording.profiler import module_ranges
from speechmeter.subjects.train.conformer import Size
from speechmeter.subjects.train.step import Recipe, step_stages
from speechmeter.subjects.train.transducer import ConformerTransducer

_STEPS = 5


def main() -> None:
    asked = _arguments()
    task = ConformerTransducer(Size(layers=asked.layers, width=asked.width, heads=asked.heads, inner=4 * asked.width))
    for module in task.modules.values():
        module.to(asked.device).train()
    stages = step_stages(Recipe(task=task, device=asked.device))
    batch = _batch(asked.frames, asked.length)
    ways = {name: way for name, way in _ways(task, asked.device).items() if name not in asked.without}
    step = lambda: run_chain(stages, batch)  # noqa: E731
    step()
    times = {name: [] for name in ways}
    after = {name: [] for name in ways}
    for number in range(asked.rounds):
        order = list(ways) if number % 2 == 0 else list(ways)[::-1]
        for name in order:
            inside_s, read_s = _timed(step, ways[name], asked.device, read_it=number == 0)
            times[name].append(inside_s)
            after[name].append(read_s)
    _report(times, after)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--frames", type=int, default=200, help="raw frames of a batch")
    parser.add_argument("--length", type=int, default=200, help="raw frames of an utterance")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--without", nargs="*", default=[], help="ways to leave out, such as 'profiler alone'")
    asked = parser.parse_args()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    return asked


def _batch(frames: int, length: int) -> Batch:
    items = max(1, frames // length)
    return Batch(data=np.array([(length, length // 16)] * items, dtype=np.int32), items=items)


def _ways(task: ConformerTransducer, device: str) -> dict[str, Callable[[], Any]]:
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.startswith("cuda") else [])]

    @contextmanager
    def modules() -> Iterator[Callable[[], Any]]:
        with profile(activities=activities) as profiled, module_ranges(task.modules):
            yield lambda: attribute(events_of(profiled))

    @contextmanager
    def original() -> Iterator[Callable[[], Any]]:
        with profile(activities=activities, with_stack=True, record_shapes=True, profile_memory=True) as profiled:
            yield lambda: profiled.key_averages().table(sort_by="cpu_time_total", row_limit=10)

    @contextmanager
    def bare() -> Iterator[Callable[[], Any]]:
        with profile(activities=activities) as profiled:
            yield profiled.events

    return {
        "plain": lambda: nullcontext(lambda: None),
        "profiler alone": bare,
        "modules pass": modules,
        "original": original,
    }


def _timed(step: Callable[[], Any], way: Callable[[], Any], device: str, *, read_it: bool) -> tuple[float, float]:
    """(seconds of a step inside, seconds that reading the table takes afterwards, where it is read)."""
    on_cuda = device.startswith("cuda")
    sync, clock = (torch.cuda.synchronize, time.perf_counter) if on_cuda else (lambda: None, time.process_time)
    with way() as read:
        step()  # what a profiler does once is no cost of a step
        sync()
        start = clock()
        for _ in range(_STEPS):
            step()
        sync()
        inside = (clock() - start) / _STEPS
    start = clock()
    if read_it:
        read()
    return inside, clock() - start


def _report(times: dict[str, list[float]], after: dict[str, list[float]]) -> None:
    print(f"{'':16} {'step':>10}   {'/ plain, 95 % interval':24} {'reading':>8}")
    for name, taken in times.items():
        print(
            f"{name:16} {median(taken) * 1000:7.1f} ms   {_ratio(taken, times['plain'])[0]:24} {after[name][0]:6.2f} s"
        )
    text, verdict = _ratio(times["modules pass"], times["original"])
    print(f"modules pass / original: {text}: {verdict}")


def _ratio(mine: list[float], theirs: list[float]) -> tuple[str, str]:
    """The ratio within rounds with its interval, and what it says."""
    value, low, high = over_rounds([a / b for a, b in zip(mine, theirs, strict=True)], exact=False)
    if low is None or high is None:
        return f"{value:.3f}", "cannot tell: one round"
    verdict = "below" if high < 1 else "above" if low > 1 else "cannot tell"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]", verdict


if __name__ == "__main__":
    main()
