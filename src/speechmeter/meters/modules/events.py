"""The raw events of a finished profile as plain values: what ran on the CPU, and what ran on the device.

They are read once; every meter that looks at a recording works on these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from speechmeter.core.traces import STEP
from speechmeter.meters.modules.names import OURS
from speechmeter.meters.modules.spans import Span

BACKWARD_SCOPE, USER_SCOPE = 1, 7
"""Of torch's record scopes: a node of the backward pass, and `record_function`."""
_NODE = "autograd::engine::evaluate_function"
_RUNTIME = re.compile(r"(cuda|hip)[A-Z]|cu[A-Z]")
"""Calls of the device's runtime: their time is their operator's."""
_WAITS = frozenset({"Context Sync", "Stream Sync", "Event Sync", "Stream Wait Event"})
_MEMORY = "[memory]"
_COPIES = ("Memcpy", "Memset")
_NOT_LABELS = re.compile(r"ProfilerStep|Torch-Compiled Region|TorchDynamo|AOTDispatcher|Pregraph|## ")
"""Ranges that torch opens by itself and that name no part of a model."""


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
        """Whether somebody else's `record_function` opened it, to name something."""
        return self.scope == USER_SCOPE and not self.name.startswith(OURS) and not _NOT_LABELS.match(self.name)

    @property
    def is_range(self) -> bool:
        """Whether it only names a stretch of time, in which others do the work."""
        return self.scope == USER_SCOPE or self.name.startswith((*OURS, STEP))


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """What a device did, by order of the CPU event with that id: computed, or copied or set memory."""

    start_ns: int
    end_ns: int
    launched_by: int
    copies: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """Bytes that a thread took from torch's allocator of the CPU or of a GPU; negative where it gave them back."""

    at_ns: int
    thread: int
    bytes: int
    on_gpu: bool = False


@dataclass(frozen=True, kw_only=True)
class Events:
    """Of one profile. `runtime` are the spans of calls of the device's runtime; `memory` is empty unless asked for."""

    cpu: tuple[CpuEvent, ...]
    kernels: tuple[Kernel, ...] = ()
    runtime: tuple[Span, ...] = ()
    memory: tuple[Allocation, ...] = ()

    def kernel_ns(self) -> dict[int, int]:
        """How long kernels ran by order of each CPU event, by its id; those that overlap are added up."""
        found: dict[int, int] = {}
        for kernel in self.kernels:
            if kernel.launched_by > 0:  # 0: the profiler does not know who gave the order
                found[kernel.launched_by] = found.get(kernel.launched_by, 0) + kernel.end_ns - kernel.start_ns
        return found


def events_of(profile: Any) -> Events:
    """The events of a finished `torch.profiler.profile`."""
    return sorted_out(profile.profiler.kineto_results.events())


def sorted_out(raw: Iterable[Any]) -> Events:
    """Torch's own event objects, sorted into those of the CPU and kernels."""
    from torch.autograd import DeviceType

    cpu: list[CpuEvent] = []
    kernels: list[Kernel] = []
    runtime: list[Span] = []
    memory: list[Allocation] = []
    for event in raw:
        if _is_python(event):
            continue
        name = event.name()
        on_gpu = event.device_type() != DeviceType.CPU
        if name == _MEMORY:
            start, thread = event.start_ns(), event.start_thread_id()
            memory.append(Allocation(at_ns=start, thread=thread, bytes=event.nbytes(), on_gpu=on_gpu))
        elif on_gpu:
            if not event.is_user_annotation() and name not in _WAITS and not name.startswith(OURS):
                kernels.append(_kernel(event, name))
        elif _RUNTIME.match(name):
            runtime.append((event.start_ns(), event.start_ns() + event.duration_ns()))
        elif not event.is_async():
            cpu.append(_cpu_event(event, name))
    return Events(cpu=tuple(cpu), kernels=tuple(kernels), runtime=tuple(runtime), memory=tuple(memory))


def _kernel(event: Any, name: str) -> Kernel:
    start = event.start_ns()
    return Kernel(
        start_ns=start,
        end_ns=start + event.duration_ns(),
        launched_by=event.linked_correlation_id(),
        copies=name.startswith(_COPIES),
    )


def _is_python(event: Any) -> bool:
    """A function of Python's stacks: no place of its own, and of a module that was imported meanwhile torch has let go
    of the name. Older versions of torch do not tell."""
    tells = getattr(event, "is_python_function", None)
    return tells is not None and bool(tells())


def _cpu_event(event: Any, name: str) -> CpuEvent:
    start = event.start_ns()
    return CpuEvent(
        name=name,
        thread=event.start_thread_id(),
        start_ns=start,
        end_ns=start + event.duration_ns(),
        sequence=event.sequence_nr(),
        forward_thread=event.fwd_thread_id(),
        scope=event.scope(),
        id=event.correlation_id(),
    )
