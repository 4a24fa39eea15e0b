"""Torch's profiler: started here and nowhere else. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch.profiler import ProfilerActivity, profile, record_function

from speechmeter.core.machine import note_profiler
from speechmeter.core.traces import STEP
from speechmeter.meters.modules.events import events_of
from speechmeter.meters.modules.ranges import module_ranges
from speechmeter.meters.recording.needs import Needs
from speechmeter.meters.recording.recording import Recording

Step = Callable[[], Any]


@contextmanager
def profiling(needs: Needs, *, cuda: bool, kind: type[profile] = profile) -> Iterator[Any]:
    """Torch's profiler on the CPU and, if `cuda`, on the GPU, with what is needed and no more."""
    note_profiler()
    with kind(
        activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])],
        record_shapes=needs.shapes,
        profile_memory=needs.memory,
        with_stack=needs.stacks,
    ) as running:
        yield running


def recorded(
    first: Step,
    steps: Sequence[Step],
    roots: Mapping[str, Any],
    needs: Needs,
    *,
    cuda: bool,
    patterns: Sequence[str] = (),
) -> Recording:
    """One recording of the steps, one after another, each to the end of its work. `roots` are modules by name.

    `first` is run before them: it pays for the profiler's start and belongs to no step. For what ran, not for latency.
    """
    with module_ranges(roots if needs.modules else {}, patterns) as classes, profiling(needs, cuda=cuda) as running:
        first()
        for place, step in enumerate(steps):
            with record_function(f"{STEP}{place}"):
                step()
    return Recording(
        profile=running, events=events_of(running), steps=len(steps), classes=classes, needs=needs, on_cuda=cuda
    )


def count_events(step: Step, roots: Mapping[str, Any], needs: Needs, *, cuda: bool) -> int:
    """How many events the profiler keeps of one step: they take memory, and time to read."""
    with module_ranges(roots if needs.modules else {}), profiling(needs, cuda=cuda) as running:
        step()
    return len(running.profiler.kineto_results.events())
