"""A finished profile as a record like any other, so that every table of ours can be made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechmeter.api.displayed import Displayed
from speechmeter.core import metrics
from speechmeter.core.axes import Axes
from speechmeter.core.device import Device
from speechmeter.core.errors import InputError
from speechmeter.core.machine import available_cores
from speechmeter.core.memory_timeline import FILE, MemoryTimeline, write_timeline
from speechmeter.core.outputs import TraceOptions
from speechmeter.core.protocol import protocol_from_json
from speechmeter.core.traces import FOLDER, SUFFIX, Trace
from speechmeter.core.types import Case, Measurement, Record, Spec
from speechmeter.report import choose
from speechmeter.report.numbers import counted
from speechmeter.report.tables import Table

if TYPE_CHECKING:
    from speechmeter.api.profiling.options import Export, Options
    from speechmeter.api.profiling.recorder import Recorder
    from speechmeter.meters.flops.count import Count
    from speechmeter.meters.recording.recording import Recording

TABLES_FILE = "tables.md"
_COLD = "only the first step ran: its times include one-time costs (memory, caches, libraries); run more steps"
_NOT_COUNTED = (
    "FLOPs are counted in the last warm-up step, but no warm-up step ran: run more steps, or use @schedule(warmup=1)"
)


class Profile(Displayed):
    """The result of `profile`. Its tables are made from `record`; `failed` is the exception that was raised, if any.

    For a class or an object, `methods` has a profile for each method, and `table` and `export` cover all of them.
    `cold` is true if only the first step ran; it is replaced when another step is recorded. Profiling slows code down:
    use its times as shares, not as latencies.
    """

    def __init__(self, name: str, options: Options) -> None:
        self.name = name
        self.options = options
        self.methods: dict[str, Profile] = {}
        self.recordings: list[Recording] = []
        self.counted: Count | None = None
        self.refused = ""
        self.failed: BaseException | None = None
        self.cold = False
        self.seen = 0
        self._next: Callable[[], None] | None = None

    def of(self, method: str) -> Profile:
        """The profile of a method; itself where the name is empty."""
        if method and method not in self.methods:
            self.methods[method] = Profile(f"{self.name}.{method}", self.options)
        return self.methods[method] if method else self

    def take(self, recorder: Recorder) -> list[Recording]:
        """Add what a recorder has found; returns the recordings of it that are kept."""
        for kind, seen in recorder.seen.items():
            if seen:
                self.of(kind).seen = seen
        for kind, count in recorder.counted.items():
            self.of(kind).counted = count
        for kind, why in recorder.refused.items():
            self.of(kind).refused = why
        for found in recorder.found:
            own = self.of(found.kind)
            if own.cold:
                own.recordings.clear()
            own.recordings.append(found.recording)
            own.cold, own.refused = found.cold, ""
            for made in ("_read", "_on_cuda"):  # cached properties, out of date now
                vars(own).pop(made, None)
        kept = {id(recording) for recording in self._all_recordings}
        return [found.recording for found in recorder.found if id(found.recording) in kept]

    def step(self) -> None:
        """End a step and begin the next one, inside `with`. What follows the last call is not recorded as a step."""
        if self._next is not None:
            self._next()

    @property
    def steps(self) -> int:
        """How many steps were recorded."""
        return sum(recording.steps for recording in self._all_recordings)

    @property
    def records(self) -> list[Record]:
        """A record for each method, or one for a function or block."""
        return [method.record for method in self.methods.values()] or [self.record]

    @property
    def record(self) -> Record:
        """Everything as a record. Its reason says why there are no values, or which exception was raised.

        Raises InputError if several methods were recorded: each has a record of its own.
        """
        if self.methods:
            return self._only().record
        on_cuda = bool(self.recordings) and self._on_cuda
        failed = f"{type(self.failed).__name__}: {self.failed}" if self.failed is not None else ""
        nothing = "" if self.recordings else self._nothing
        return Record(
            case=_case(self.name, "cuda" if on_cuda else "cpu", self.options),
            round=0,
            sequence=0,
            status="error" if failed else "ok",
            reason=failed or nothing,
            measurements=tuple(self._measurements),
            warnings=(_COLD,) if self.cold else (),
        )

    def tables(self, metric: str | None = None) -> list[Table]:
        """The tables that `speechmeter show` prints: `modules`, `operators`, `split`, `timeline`, …"""
        records = self.records
        warnings = {f"{record.case.subject.name}: {text}": None for record in records for text in record.warnings}
        first, *others = choose.tables(records, metric)
        return [replace(first, caveats=(*first.caveats, *warnings)), *others]

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, {counted(self.steps, 'step')})"

    def _title(self) -> str:
        return f"{self.name}: {counted(self.steps, 'step')}"

    def _shown_records(self) -> Sequence[Record]:
        return self.records

    @property
    def trace(self) -> Trace:
        """All recorded steps as a trace. Raises InputError when nothing was recorded, or several methods were."""
        from speechmeter.meters.recording.trace import joined

        own = self._only()
        own._first()
        return joined([recording.trace for recording in own.recordings])

    @property
    def timeline(self) -> MemoryTimeline | None:
        """Memory through the first recorded step; None where it was not asked for or nothing was allocated."""
        from speechmeter.meters.timeline import timeline_of

        own = self._only()
        if not own.options.memory or not own.recordings:
            return None
        return timeline_of(own._first().trace.events, Device(kind="cuda" if own._on_cuda else "cpu"))

    @property
    def profilers(self) -> list[Any]:
        """Torch's own profilers (`torch.profiler.profile`), one a recording."""
        return [recording.profile for recording in self._all_recordings]

    def events(self) -> Any:
        """Torch's events (an `EventList`) of all recorded steps. Raises InputError when nothing was recorded."""
        from torch.autograd.profiler_util import EventList

        if not self._all_recordings:
            self._first()
        parts = [profiler.events() for profiler in self.profilers]
        together = EventList(event for part in parts for event in part)
        vars(together).update(vars(parts[0]))  # which columns there are, and that events know what is inside them
        return together

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Any:
        """Torch's sums by operator over all recorded steps: `key_averages().table(sort_by=…, row_limit=…)`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export(self, folder: str | Path, *, worker_name: str | None = None, use_gzip: bool = True) -> Path:
        """Write a trace, stacks, tables of operators, memory over time and the tables into a folder; returns it.

        All are of all recorded steps, but memory, which is of the first. Methods have a folder each. The trace is
        named after `worker_name`, else the profile. Raises InputError when nothing was recorded.
        """
        from speechmeter.meters.operators.use import write_texts
        from speechmeter.meters.trace import file_name, write_files

        path = Path(folder)
        if any(method.recordings for method in self.methods.values()):
            for name, method in self.methods.items():
                if method.recordings:
                    method.export(path / file_name(name), worker_name=worker_name, use_gzip=use_gzip)
            return path
        self._first()
        traces = [recording.trace for recording in self.recordings]
        trace_name = f"{file_name(worker_name or self.name)}{SUFFIX if use_gzip else SUFFIX.removesuffix('.gz')}"
        write_files(path / FOLDER / trace_name, traces, TraceOptions().most_events)
        write_texts(path, *self.recordings, memory=self.recordings[0] if self.options.memory else None)
        timeline = self.timeline
        if timeline is not None:
            write_timeline(path / FILE, timeline)
        (path / TABLES_FILE).write_text(self.table(), encoding="utf-8")
        return path

    def write(self, asked: Export) -> Path:
        """Export as it was asked for; without a folder, into `profiles/<name>`."""
        from speechmeter.meters.trace import file_name

        folder = asked.folder or Path("profiles") / file_name(self.name)
        return self.export(folder, worker_name=asked.worker_name, use_gzip=asked.use_gzip)

    @property
    def seen_by_kind(self) -> dict[str, int]:
        """How many steps there were of each method, recorded or not; those of a function are under the empty name."""
        return {"": self.seen, **{name: method.seen for name, method in self.methods.items()}}

    @property
    def counted_by_kind(self) -> dict[str, Count]:
        """The counts of FLOPs that there are, by the same names."""
        every = {"": self, **self.methods}
        return {name: one.counted for name, one in every.items() if one.counted is not None}

    @property
    def _all_recordings(self) -> list[Recording]:
        return [*self.recordings, *(one for method in self.methods.values() for one in method.recordings)]

    def _first(self) -> Recording:
        if not self.recordings:
            raise InputError(self._nothing, where=self.name, fix="record a step, or change the schedule")
        return self.recordings[0]

    def _only(self) -> Profile:
        if len(self.methods) > 1:
            names = list(self.methods)
            raise InputError(
                f"{self.name} has several profiles: {', '.join(names)}",
                fix=f"choose one: .profile.methods[{names[0]!r}]",
            )
        return next(iter(self.methods.values()), self)

    @property
    def _nothing(self) -> str:
        """Why nothing was recorded."""
        if self.methods:
            return "; ".join(f"{name}: {method._nothing}" for name, method in self.methods.items())
        if self.refused or not self.seen:
            return self.refused or "no step was recorded"
        counted = ", one of them to count FLOPs" if self.counted is not None else ""
        ran = "1 step" if self.seen == 1 else f"{self.seen} steps"
        return f"no step was recorded: only {ran} ran{counted}, and the schedule records later steps"

    @cached_property
    def _on_cuda(self) -> bool:
        return any(recording.on_cuda for recording in self.recordings)

    @property
    def _measurements(self) -> list[Measurement]:
        rows = self._read if self.recordings else [Measurement.absent(metrics.TIME_MODULE, self._nothing)]
        if not self.options.flops:
            return rows
        if self.counted is None:
            return [*rows, Measurement.absent(metrics.FLOPS, _NOT_COUNTED)]
        from speechmeter.meters.flops.meter import count_rows

        return [*rows, *count_rows(self.counted)]

    @cached_property
    def _read(self) -> list[Measurement]:
        """The rows that the meters make of the same recordings: modules, operators, kinds of work, memory."""
        from speechmeter.meters.operators.meter import operator_rows
        from speechmeter.meters.split import split_rows
        from speechmeter.meters.timeline import timeline_rows

        rows = [*_module_rows(self.recordings), *operator_rows(self.recordings, {}), *split_rows(self.recordings)]
        if self.options.memory:
            nothing = [Measurement.absent(metrics.MEMORY_TENSORS_PEAK, "no tensor was allocated")]
            rows += nothing if self.timeline is None else timeline_rows(self.timeline)
        return rows


def _module_rows(recordings: Sequence[Recording]) -> list[Measurement]:
    from speechmeter.meters.modules import gpu_busy, module_rows

    calls = [call for recording in recordings for call in recording.calls]
    named = any(recording.classes for recording in recordings)
    if named or any(row.owner.label for call in calls for row in call.rows):
        return module_rows(recordings)
    busy = [gpu_busy(calls, {}, recordings[0].notes)] if any(recording.on_cuda for recording in recordings) else []
    return [Measurement.absent(metrics.TIME_MODULE, "no torch module was called"), *busy]


def _case(name: str, device: str, options: Options) -> Case:
    asked = {"timeline": options.memory, "flops": options.flops}
    cores = len(available_cores())
    axes = {"device": device, "dtype": "as it ran", "threads": cores, "cores": cores, "boundary": "as it ran"}
    return Case(
        subject=Spec(plugin="live", name=name),
        workload=Spec(plugin="live", name="steps"),
        axes=Axes(axes),
        meters=("modules", "operators", "split", *(meter for meter, wanted in asked.items() if wanted)),
        protocol=protocol_from_json({"mode": "profile"}),
    )
