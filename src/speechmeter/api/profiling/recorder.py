"""Record steps as they come, by a schedule, with torch's profiler. Imports torch."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from speechmeter.api.profiling.options import Options
from speechmeter.core.traces import STEP
from speechmeter.meters.flops.count import Count, counting
from speechmeter.meters.recording.events import events_of
from speechmeter.meters.recording.label import CALL
from speechmeter.meters.recording.profiler import OPEN, module_ranges, named_modules, profiling
from speechmeter.meters.recording.recording import Needs, Recording

_one_at_a_time = threading.Lock()
"""Torch has one profiler in a process."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A recording of steps of one kind. A cold one is of the first step, which the schedule leaves out."""

    kind: str
    recording: Recording
    cold: bool


class Recorder:
    """Called at the edges of steps: `begin` and `end` of each, then `close`. Never raises for what it cannot record.

    The schedule applies to each kind of step separately: `seen` says how many there were of each, `refused` why a kind
    is not recorded. Steps that are `apart` get a recording each, so that what runs between them is not recorded.
    """

    def __init__(self, options: Options, roots: Mapping[str, Any], *, seen: Mapping[str, int], apart: bool) -> None:
        self.options = options
        self.apart = apart
        self.roots = dict(roots)
        self.seen = dict(seen)
        self.found: list[Found] = []
        self.counted: dict[str, Count] = {}
        self.refused: dict[str, str] = {}
        self._kind = ""
        self._on_gpu = options.gpu and torch.cuda.is_available()
        self._open = ExitStack()
        self._running: _Running | None = None
        self._step_open = ExitStack()

    def begin(self, kind: str = "") -> None:
        """A step begins."""
        number = self.seen.setdefault(kind, 0)
        phase = self.options.schedule.phase(number)
        if self._running is not None and (self._kind != kind or phase != "active"):
            self._stop()
        self._kind = kind
        last = phase == "warmup" and self.options.schedule.phase(number + 1) == "active"
        counts = last and self.options.flops and kind not in self.counted
        cold = phase == "warmup" and number == 0 and not counts
        if (phase == "active" or cold) and self._running is None and self._take_turn(self._open):
            # the first operator under a profiler takes milliseconds in each process, which no step should pay
            with profiling(Needs(), cuda=self._on_gpu), torch.inference_mode():
                torch.zeros(1).add(1)
            running = _Running(self.options, self.roots, cold=cold, cuda=self._on_gpu)
            self._running = self._open.enter_context(running)
        if self._running is not None:
            self._running.mark(number, self._step_open)
        elif counts:
            self.counted[kind] = self._step_open.enter_context(counting(self.roots))
        elif phase == "warmup" and not cold and self._take_turn(self._step_open):
            self._step_open.enter_context(profiling(Needs(), cuda=self._on_gpu))

    def end(self) -> None:
        """The step ended, or failed."""
        if self._running is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()  # its kernels belong to it
        self._step_open.close()
        number = self.seen[self._kind]
        self.seen[self._kind] += 1
        if self._running is not None:
            self._running.steps += 1
            if self.apart or self._running.cold or self.options.schedule.ends(number):
                self._stop()

    def close(self) -> None:
        """There are no more steps."""
        self._step_open.close()
        self._stop()

    def _take_turn(self, until: ExitStack) -> bool:
        """Whether no other profiler is running. Torch sees only those of this thread; a second one is fatal."""
        if torch.autograd._profiler_enabled() or not _one_at_a_time.acquire(blocking=False):
            self.refused[self._kind] = "another torch profiler was running; torch supports only one at a time"
            return False
        self.refused.pop(self._kind, None)
        until.callback(_one_at_a_time.release)
        return True

    def _stop(self) -> None:
        running, self._running = self._running, None
        self._open.close()
        if running is None or not running.steps:
            return
        recording = running.recording()
        if self._kind and all(event.is_range for event in recording.events.cpu):
            self.seen[self._kind] -= running.steps  # a method of an object that computes nothing: a getter, say
        else:
            self.found.append(Found(kind=self._kind, recording=recording, cold=running.cold))


class _Running:
    """Torch's profiler and the ranges of modules while steps are recorded."""

    def __init__(self, options: Options, roots: Mapping[str, Any], *, cold: bool, cuda: bool) -> None:
        self.cold = cold
        self.steps = 0
        self._options = options
        self._cuda = cuda
        self._modules = Discovery(roots)
        self._stack = ExitStack()

    def __enter__(self) -> _Running:
        self._stack.enter_context(self._modules)
        self._profile = self._stack.enter_context(profiling(self._needs, cuda=self._cuda, kind=TorchProfile))
        return self

    @property
    def _needs(self) -> Needs:
        """Every step may be looked at as a trace."""
        options = self._options
        return Needs(
            modules=True,
            memory=options.memory,
            shapes=options.memory if options.shapes is None else options.shapes,
            stacks=options.python_stacks,
            means=True,
            traced=max(1, self.steps),
        )

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def mark(self, step: int, until: ExitStack) -> None:
        """Open the ranges of a step."""
        until.enter_context(torch.profiler.record_function(f"{STEP}{step}"))
        until.enter_context(OPEN(f"{CALL}{step}"))

    def recording(self) -> Recording:
        """What was found, once it is closed."""
        events = events_of(self._profile)
        return Recording(
            profile=self._profile,
            events=events,
            steps=self.steps,
            classes=dict(self._modules.classes),
            needs=self._needs,
            on_cuda=bool(events.kernels),
        )


class Discovery:
    """Ranges for the given modules, and for every other module that is called, named by its class.

    A module keeps the first name it gets, also inside another module. After the context no hook is left. `classes` is
    path → class of all that were named, `roots` the outermost ones by name.
    """

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self.roots = {name: root for name, root in roots.items() if isinstance(root, torch.nn.Module)}
        self.classes: dict[str, str] = {}
        self._known: set[int] = set()
        self._undo = ExitStack()

    def __enter__(self) -> Discovery:
        for name, root in self.roots.items():
            self._follow(name, root)
        self._undo.callback(register_module_forward_pre_hook(self._called).remove)
        return self

    def __exit__(self, *error: object) -> None:
        self._undo.close()

    def _follow(self, name: str, root: torch.nn.Module) -> None:
        known = frozenset(self._known)
        self._known |= {id(module) for module in named_modules({name: root}, known).values()}
        self.classes.update(self._undo.enter_context(module_ranges({name: root}, known=known)))

    def _called(self, module: torch.nn.Module, inputs: Any) -> None:
        """Before a call of any module. Its own hooks were gathered already: its range of this call is opened here."""
        if id(module) in self._known or torch.compiler.is_compiling():
            return
        kind = type(module).__name__
        names = (kind if number == 1 else f"{kind}-{number}" for number in count(1))
        name = next(name for name in names if name not in self.roots)
        self.roots[name] = module
        self._follow(name, module)
        if module._compiled_call_impl is None:
            opening = next(iter(module._forward_pre_hooks.values()))
            opening(module, inputs)


class TorchProfile(torch.profiler.profile):  # type: ignore[misc]
    """Torch's profiler, whose trace can be written more than once: by us, and by handlers that the user gave."""

    _written: bytes | None = None

    def export_chrome_trace(self, path: str, *args: Any, **kwargs: Any) -> None:
        """Write the trace, compressed where the name ends in .gz."""
        if self._written is None:
            self.events()  # read first: torch drops what it recorded when it writes
            with TemporaryDirectory() as folder:
                file = Path(folder) / "trace.json"
                super().export_chrome_trace(str(file), *args, **kwargs)
                self._written = gzip.compress(file.read_bytes(), compresslevel=1)
        Path(path).write_bytes(self._written if str(path).endswith(".gz") else gzip.decompress(self._written))
