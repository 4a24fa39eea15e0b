"""Record steps with torch's profiler, every call of a module a range of its own. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch.profiler import ProfilerActivity, profile, record_function

from speechmeter.core.protocols import Session
from speechmeter.core.traces import STEP, Trace, read_trace
from speechmeter.meters.modules.events import Events, events_of
from speechmeter.meters.modules.meter import marked_call
from speechmeter.meters.modules.ranges import module_ranges
from speechmeter.meters.traces.places import homes_of, placed
from speechmeter.meters.traces.tidy import tidied

Step = Callable[[], Any]


def record(
    steps: Sequence[Step],
    roots: Mapping[str, Any],
    *,
    cuda: bool,
    python_stacks: bool = False,
    most_events: int | None = None,
) -> Trace:
    """A trace of the steps, one after another; `roots` are modules by name. For what ran, never for latency."""
    with profiling(cuda=cuda):  # the first operators of the first recording pay for the profiler's start
        steps[0]()
    with module_ranges(roots), profiling(cuda=cuda, python_stacks=python_stacks) as running:
        for place, step in enumerate(steps):
            with record_function(f"{STEP}{place}"):
                step()
    return finished_trace(running, events_of(running), most_events=most_events)


@contextmanager
def profiling(*, cuda: bool, python_stacks: bool = False) -> Iterator[Any]:
    """torch's profiler with shapes and memory, on the CPU and, if `cuda`, on the GPU."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities, record_shapes=True, profile_memory=True, with_stack=python_stacks) as running:
        yield running


def finished_trace(finished: Any, events: Events, *, most_events: int | None = None) -> Trace:
    """The trace of a finished profile, tidied and with modules.

    Its raw events must have been read before: torch gives up their memory when it writes a trace, which it does once.
    """
    return tidied(placed(_exported(finished), homes_of(events)), most_events=most_events)


def _exported(finished: Any) -> Trace:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        finished.export_chrome_trace(str(path))
        return read_trace(path)


def steps_of(session: Session, most: int) -> list[Step]:
    """Calls of the first batches with their stages marked, as many as asked for; few batches are called again."""
    batches = [session.batches[place % len(session.batches)] for place in range(most)]
    return [partial(marked_call, session, batch, place) for place, batch in enumerate(batches)]


def on_cuda(session: Session) -> bool:
    """Whether the case runs on a GPU."""
    return str(session.case.axes["device"]).startswith("cuda")
