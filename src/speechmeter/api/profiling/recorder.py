"""Record steps as they come, by a schedule, with torch's profiler; then let go of everything. Imports torch."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from speechmeter.api.profiling.discover import Discovery
from speechmeter.api.profiling.options import Options, Phase
from speechmeter.core.outputs import TraceOptions
from speechmeter.core.traces import ANNOTATION, STEP, Event, Trace
from speechmeter.meters.flops.count import Count, counting
from speechmeter.meters.modules.events import Events, events_of
from speechmeter.meters.modules.names import CALL
from speechmeter.meters.modules.ranges import OPEN
from speechmeter.meters.traces.record import finished_trace

_one_at_a_time = threading.Lock()
"""Torch has one profiler in a process."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A finished profile of consecutive steps, its raw events, and path → class of the modules in it."""

    profile: Any
    events: Events
    steps: int
    classes: Mapping[str, str]

    @cached_property
    def function_events(self) -> list[Any] | None:
        """Torch's own list of what ran. None where it cannot tell it.

        With Python's stacks a module that is imported meanwhile leaves a name behind that is no text any more.
        """
        try:
            return list(self.profile.events())
        except UnicodeDecodeError:
            return None

    @cached_property
    def trace(self) -> Trace:
        """The profile as a trace, without the mark of a step that was begun when there was no further one."""
        whole = finished_trace(self.profile, self.events, most_events=TraceOptions().most_events)
        marks = [event for event in whole.events if _is_mark(event)]
        rest = {event["name"] for event in sorted(marks, key=lambda event: float(event["ts"]))[self.steps :]}
        return replace(whole, events=[event for event in whole.events if event.get("name") not in rest])


def _is_mark(event: Event) -> bool:
    return event.get("cat") == ANNOTATION and str(event.get("name", "")).startswith(STEP)


class Recorder:
    """Called at the edges of steps: `begin` and `end` of each, then `close`. Never raises for what it cannot record.

    `refused` says why nothing is recorded; empty when it is. Steps that are `apart` are recorded each by itself: what
    runs between them is nobody's business.
    """

    def __init__(self, options: Options, roots: Mapping[str, Any], *, first: int = 0, apart: bool = False) -> None:
        self.options = options
        self.apart = apart
        self.roots = dict(roots)
        self.recordings: list[Recording] = []
        self.counted: Count | None = None
        self.refused = ""
        self._step = first
        self._open = ExitStack()
        self._running: _Running | None = None
        self._step_open = ExitStack()

    @property
    def steps_seen(self) -> int:
        """How many steps there were, recorded or not, with those before `first`."""
        return self._step

    def begin(self) -> None:
        """A step begins."""
        phase = self.options.schedule.phase(self._step)
        if phase == "active" and self._running is None:
            self._start()
        if self._running is not None:
            self._running.mark(self._step, self._step_open)
        elif phase == "warmup":
            self._warm_up()

    def end(self) -> None:
        """It ended, well or not."""
        if self._running is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()  # its kernels belong to it
        self._step_open.close()
        before = self.options.schedule.phase(self._step)
        self._step += 1
        if self._running is not None:
            self._running.steps += 1
            if self.apart or self._leaves(before):
                self._stop()

    def close(self) -> None:
        """No further step comes."""
        self._step_open.close()
        self._stop()

    def _leaves(self, before: Phase) -> bool:
        """Whether the steps that are kept together end here: others follow, or another cycle begins."""
        schedule = self.options.schedule
        ends = self._step % (schedule.wait + schedule.warmup + schedule.active) == 0
        return before == "active" and (ends or schedule.phase(self._step) != "active")

    def _start(self) -> None:
        if not self._take_turn():
            return
        _pay_for_the_start()
        self._running = self._open.enter_context(_Running(self.options, self.roots))

    def _warm_up(self) -> None:
        """A profiler whose findings nobody keeps; the first such step may be counted instead."""
        if self.options.flops and self.counted is None:
            self.counted = self._step_open.enter_context(counting(self.roots))
        elif not torch.autograd._profiler_enabled():
            self._step_open.enter_context(profile(activities=activities()))

    def _stop(self) -> None:
        running, self._running = self._running, None
        self._open.close()
        if running is not None and running.steps:
            self.recordings.append(running.recording())

    def _take_turn(self) -> bool:
        if torch.autograd._profiler_enabled() or not _one_at_a_time.acquire(blocking=False):
            self.refused = "another profiler was running, and torch has one at a time"
            return False
        self._open.callback(_one_at_a_time.release)
        self.refused = ""
        return True


class _Running:
    """Torch's profiler and the ranges of modules while steps are recorded."""

    def __init__(self, options: Options, roots: Mapping[str, Any]) -> None:
        self._options = options
        self._modules = Discovery(roots)
        self._stack = ExitStack()
        self.steps = 0

    def __enter__(self) -> _Running:
        self._stack.enter_context(self._modules)
        self._profile = self._stack.enter_context(
            profile(
                activities=activities(),
                record_shapes=self._options.memory,
                profile_memory=self._options.memory,
                with_stack=self._options.python_stacks,
            )
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def mark(self, step: int, until: ExitStack) -> None:
        """Open the ranges of a step."""
        until.enter_context(torch.profiler.record_function(f"{STEP}{step}"))
        until.enter_context(OPEN(f"{CALL}{step}"))

    def recording(self) -> Recording:
        """What was found, once it is closed."""
        return Recording(
            profile=self._profile,
            events=events_of(self._profile),
            steps=self.steps,
            classes=dict(self._modules.classes),
        )


def activities() -> list[Any]:
    """What is recorded here: the CPU, and the GPU where there is one."""
    return [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]


def _pay_for_the_start() -> None:
    """The first operator of a process's first profile takes milliseconds: let it be this one."""
    with profile(activities=activities()), torch.inference_mode():
        torch.zeros(1).add(1)
