"""The events of a finished profile as plain values, and arithmetic on spans of time.

The events are read once. Every meter that reads a recording works on these values.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from speechmeter.core.traces import STEP
from speechmeter.meters.recording.label import OURS

Span = tuple[int, int]
"""Start and end in nanoseconds."""
Who = TypeVar("Who", bound=Hashable)

BACKWARD_SCOPE, USER_SCOPE = 1, 7
"""Of torch's record scopes: a node of the backward pass, and `record_function`."""
_NODE = "autograd::engine::evaluate_function"
_RUNTIME = re.compile(r"(cuda|hip)[A-Z]|cu[A-Z]")
"""Calls of the device's runtime: their time is that of the operator that made them."""
_WAITS = frozenset({"Context Sync", "Stream Sync", "Event Sync", "Stream Wait Event"})
_MEMORY = "[memory]"
_COPIES = ("Memcpy", "Memset")
_NOT_LABELS = re.compile(r"ProfilerStep|Torch-Compiled Region|TorchDynamo|AOTDispatcher|Pregraph|## ")
"""Ranges that torch itself opens. They name no part of a model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CpuEvent:
    """An operator, a node of the backward pass, or a range. `sequence` joins a node with its forward operator."""

    name: str
    thread: int
    start_ns: int
    end_ns: int
    sequence: int = -1
    forward_thread: int = 0
    scope: int = 0
    id: int = 0

    @property
    def is_node(self) -> bool:
        """Whether a node of the backward pass runs in it."""
        return self.scope == BACKWARD_SCOPE or self.name.startswith(_NODE)

    @property
    def is_label(self) -> bool:
        """Whether a `record_function` that is neither ours nor torch's opened it."""
        return self.scope == USER_SCOPE and not self.name.startswith(OURS) and not _NOT_LABELS.match(self.name)

    @property
    def is_range(self) -> bool:
        """Whether it only names a stretch of time, in which other events do the work."""
        return self.scope == USER_SCOPE or self.name.startswith((*OURS, STEP))


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """What a device ran for the CPU event with that id: a computation, or (`copies`) a copy or fill of memory."""

    start_ns: int
    end_ns: int
    launched_by: int
    copies: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """Bytes that a thread took from torch's allocator of the CPU or of a GPU; negative where it freed them."""

    at_ns: int
    thread: int
    bytes: int
    on_gpu: bool = False


@dataclass(frozen=True, kw_only=True)
class Events:
    """The events of one profile.

    `runtime` has the spans of calls of the device's runtime; `memory` is empty unless allocations were recorded.
    """

    cpu: tuple[CpuEvent, ...]
    kernels: tuple[Kernel, ...] = ()
    runtime: tuple[Span, ...] = ()
    memory: tuple[Allocation, ...] = ()

    def kernel_ns(self) -> dict[int, int]:
        """How long the kernels of each CPU event ran, by the id of the event; overlapping ones are added up."""
        found: dict[int, int] = {}
        for kernel in self.kernels:
            if kernel.launched_by > 0:  # 0: the profiler does not know what launched it
                found[kernel.launched_by] = found.get(kernel.launched_by, 0) + kernel.end_ns - kernel.start_ns
        return found


def events_of(profile: Any) -> Events:
    """The events of a finished `torch.profiler.profile`."""
    return sorted_out(profile.profiler.kineto_results.events())


def sorted_out(raw: Iterable[Any]) -> Events:
    """Torch's own event objects, sorted into events of the CPU, kernels, calls of the runtime and allocations."""
    from torch.autograd import DeviceType

    cpu: list[CpuEvent] = []
    kernels: list[Kernel] = []
    runtime: list[Span] = []
    memory: list[Allocation] = []
    for event in raw:
        # Functions of Python's stacks do no work of their own, and torch may have freed the name of one whose module
        # was imported meanwhile. Older versions of torch do not have the question.
        is_python = getattr(event, "is_python_function", None)
        if is_python is not None and is_python():
            continue
        name = event.name()
        on_gpu = event.device_type() != DeviceType.CPU
        start = event.start_ns()
        end = start + event.duration_ns()
        if name == _MEMORY:
            thread = event.start_thread_id()
            memory.append(Allocation(at_ns=start, thread=thread, bytes=event.nbytes(), on_gpu=on_gpu))
        elif on_gpu:
            if not event.is_user_annotation() and name not in _WAITS and not name.startswith(OURS):
                launched_by, copies = event.linked_correlation_id(), name.startswith(_COPIES)
                kernels.append(Kernel(start_ns=start, end_ns=end, launched_by=launched_by, copies=copies))
        elif _RUNTIME.match(name):
            runtime.append((start, end))
        elif not event.is_async():
            cpu.append(
                CpuEvent(
                    name=name,
                    thread=event.start_thread_id(),
                    start_ns=start,
                    end_ns=end,
                    sequence=event.sequence_nr(),
                    forward_thread=event.fwd_thread_id(),
                    scope=event.scope(),
                    id=event.correlation_id(),
                )
            )
    return Events(cpu=tuple(cpu), kernels=tuple(kernels), runtime=tuple(runtime), memory=tuple(memory))


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same instants as spans that do not overlap, in order."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def gaps(whole: Span, inner: Iterable[Span]) -> list[Span]:
    """What is left of a span outside those inside it."""
    left, until = [], whole[0]
    for start, end in merged(inner):
        if start > until:
            left.append((until, start))
        until = max(until, end)
    if whole[1] > until:
        left.append((until, whole[1]))
    return left


def overlap(whole: Span, spans: Sequence[Span]) -> int:
    """How much of a span lies inside others, which do not overlap and are in order, as `merged` returns them."""
    total = 0
    for start, end in spans[max(0, bisect_left(spans, (whole[0], 0)) - 1) :]:
        if start >= whole[1]:
            break
        total += max(0, min(end, whole[1]) - max(start, whole[0]))
    return total


def shared_out(spans: Sequence[tuple[int, int, Who]]) -> dict[Who, float]:
    """Busy time by owner. While n spans run at once each gets 1/n of the time, so that all of them add up."""
    lasting = [(index, start, end) for index, (start, end, _) in enumerate(spans) if end > start]
    edges = sorted([(start, 1, index) for index, start, _ in lasting] + [(end, 0, index) for index, _, end in lasting])
    busy: dict[Who, float] = {}
    running: set[int] = set()
    last = 0
    for instant, begins, index in edges:
        for one in running if instant > last else ():
            who = spans[one][2]
            busy[who] = busy.get(who, 0.0) + (instant - last) / len(running)
        (running.add if begins else running.discard)(index)
        last = instant
    return busy
