"""A finished profile as a record like any other, so that every table of ours can be made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.machine import available_cores
from speechmeter.core.memory_timeline import FILE, MemoryTimeline, write_timeline
from speechmeter.core.traces import FOLDER, SUFFIX, Trace
from speechmeter.core.types import Case, Measurement, Record, Spec
from speechmeter.report import choose, text

if TYPE_CHECKING:
    from speechmeter.api.profiling.options import Options
    from speechmeter.api.profiling.recorder import Recorder, Recording
    from speechmeter.meters.flops.count import Count

_NOTHING = "no step was recorded"
TABLES_FILE = "tables.md"


class Profile:
    """What was recorded of something that ran. `record` is what tables are made of; `failed` is what it raised.

    Time is that of profiled steps: for shares, never for latency.
    """

    def __init__(self, name: str, options: Options) -> None:
        self.name = name
        self.options = options
        self.recordings: list[Recording] = []
        self.counted: Count | None = None
        self.refused = ""
        self.failed: BaseException | None = None

        self._next: Callable[[], None] | None = None

    def take(self, recorder: Recorder) -> None:
        """Add what a recorder has found."""
        self.recordings += recorder.recordings
        self.counted = recorder.counted or self.counted
        self.refused = recorder.refused
        for made in ("_measurements", "_on_cuda"):
            vars(self).pop(made, None)

    def step(self) -> None:
        """Inside `with`: a step has ended and the next one begins. What comes after the last one is no step."""
        if self._next is not None:
            self._next()

    @property
    def steps(self) -> int:
        """How many steps were recorded."""
        return sum(recording.steps for recording in self.recordings)

    @property
    def record(self) -> Record:
        """Everything as a record; its reason says why there is nothing, or what was raised."""
        on_cuda = bool(self.recordings) and self._on_cuda
        failed = f"{type(self.failed).__name__}: {self.failed}" if self.failed is not None else ""
        nothing = "" if self.recordings else self.refused or _NOTHING
        return Record(
            case=_case(self.name, "cuda" if on_cuda else "cpu", self._meters),
            round=0,
            sequence=0,
            status="error" if failed else "ok",
            reason=failed or nothing,
            measurements=tuple(self._measurements) if not nothing else (_absent(nothing),),
        )

    def table(self, metric: str | None = None, format: str = "markdown") -> str:
        """The tables that `speechmeter show` prints, as text: `modules`, `operators`, `split`, `timeline`, …"""
        if format not in text.FORMATS:
            raise InputError(f"there is no format {format!r}", fix=f"choose from: {', '.join(text.FORMATS)}")
        return text.FORMATS[format](choose.tables([self.record], metric))

    def __str__(self) -> str:
        return self.table()

    @property
    def trace(self) -> Trace:
        """The first recording as a trace. Raises InputError when nothing was recorded."""
        return self._first().trace

    @property
    def timeline(self) -> MemoryTimeline | None:
        """Memory through the first recorded step; None where it was not asked for or nothing was allocated."""
        from speechmeter.meters.timeline.follow import followed

        if not self.options.memory or not self.recordings:
            return None
        return followed(self.trace.events, "cuda" if self._on_cuda else "cpu")

    def export(self, folder: str | Path) -> Path:
        """Write traces, stacks, tables of operators, memory over time and the tables into a folder; returns it.

        Raises InputError when nothing was recorded.
        """
        from speechmeter.meters.operator_texts import write_texts
        from speechmeter.meters.traces.meter import file_name, write_files

        first, path = self._first(), Path(folder)
        for place, recording in enumerate(self.recordings):
            name = file_name(self.name) + (f"-{place + 1}" if place else "")
            write_files(path / FOLDER / f"{name}{SUFFIX}", recording.trace)
        write_texts(path, first.profile if first.function_events is not None else None, first.trace)
        timeline = self.timeline
        if timeline is not None:
            write_timeline(path / FILE, timeline)
        (path / TABLES_FILE).write_text(self.table(), encoding="utf-8")
        return path

    def _first(self) -> Recording:
        if not self.recordings:
            raise InputError(self.refused or _NOTHING, where=self.name, fix="record a step, or change the schedule")
        return self.recordings[0]

    @cached_property
    def _on_cuda(self) -> bool:
        return any(recording.events.kernels for recording in self.recordings)

    @property
    def _meters(self) -> tuple[str, ...]:
        asked = {"timeline": self.options.memory, "flops": self.options.flops}
        return ("modules", "operators", "split", *(name for name, wanted in asked.items() if wanted))

    @cached_property
    def _measurements(self) -> list[Measurement]:
        from speechmeter.api.profiling.readings import readings

        return readings(self, on_cuda=self._on_cuda)


def _absent(reason: str) -> Measurement:
    return Measurement.absent(metrics.TIME_MODULE, reason)


def _case(name: str, device: str, meters: Sequence[str]) -> Case:
    cores = len(available_cores())
    axes: dict[str, Any] = {"device": device, "dtype": "as it ran", "threads": cores, "cores": cores}
    return Case(
        subject=Spec(plugin="live", name=name),
        workload=Spec(plugin="live", name="steps"),
        axes={**axes, "boundary": "as it ran"},
        meters=tuple(meters),
        protocol={"mode": "profile"},
    )
