"""The raw events of a finished profile as plain values: what ran on the CPU, and what ran on the device."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from speechmeter.meters.modules.names import OURS

BACKWARD_SCOPE, USER_SCOPE = 1, 7
"""Of torch's record scopes: a node of the backward pass, and `record_function`."""
_NODE = "autograd::engine::evaluate_function"
_RUNTIME = re.compile(r"(cuda|hip)[A-Z]|cu[A-Z]")
"""Calls of the device's runtime: their time is their operator's."""
_WAITS = frozenset({"Context Sync", "Stream Sync", "Event Sync", "Stream Wait Event"})
_NOT_LABELS = re.compile(r"ProfilerStep|Torch-Compiled Region|TorchDynamo|AOTDispatcher|Pregraph|## ")
"""Ranges that torch opens by itself and that name no part of a model."""


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """What a device did, by order of the CPU event with that id."""

    start_ns: int
    end_ns: int
    launched_by: int


@dataclass(frozen=True, kw_only=True)
class Events:
    """Of one profile."""

    cpu: tuple[CpuEvent, ...]
    kernels: tuple[Kernel, ...] = ()


def events_of(profile: Any) -> Events:
    """The events of a finished `torch.profiler.profile`."""
    return sorted_out(profile.profiler.kineto_results.events())


def sorted_out(raw: Iterable[Any]) -> Events:
    """Torch's own event objects, sorted into those of the CPU and kernels."""
    from torch.autograd import DeviceType

    cpu: list[CpuEvent] = []
    kernels: list[Kernel] = []
    for event in raw:
        if _is_python(event):
            continue
        name = event.name()
        if event.device_type() != DeviceType.CPU:
            if not event.is_user_annotation() and name not in _WAITS and not name.startswith(OURS):
                start = event.start_ns()
                end = start + event.duration_ns()
                kernels.append(Kernel(start_ns=start, end_ns=end, launched_by=event.linked_correlation_id()))
        elif not event.is_async() and not _RUNTIME.match(name) and not name.startswith("[memory]"):
            cpu.append(_cpu_event(event, name))
    return Events(cpu=tuple(cpu), kernels=tuple(kernels))


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
