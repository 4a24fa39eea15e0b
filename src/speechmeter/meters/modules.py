"""The modules meter: which module, label and stage the time of a call goes to, and the memory of each module on a GPU.

For shares, never for latency: that comes from a pass without a profiler, in another process. The value of a row is its
own time in one call, all directions together; `forward`, `backward` and `recompute` in the notes are the same values
by direction. `inside` says in which modules a label was opened. `labels` says which labels hold the time of a row: the
time of a label with all that is inside it is added up from these. Imports torch late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import Meter, Phase, Session
from speechmeter.core.scope import LABEL, MODULE, STAGE, UNATTRIBUTED, Scope
from speechmeter.core.types import Case, Measurement
from speechmeter.meters import torch_missing
from speechmeter.meters.recording import label
from speechmeter.meters.recording.attribution import DIRECTIONS, FORWARD, Attributed, Direction, Owner, Row
from speechmeter.meters.recording.recording import Needs, Recording
from speechmeter.meters.recording.session import chosen_roots, recording_of, turns

_COMPILED = (
    "torch.compile fused the modules of the whole model into one: compile block by block to measure them separately"
)
_NO_MODULE = "the model exposes no torch module, so there are no modules to measure"
_NO_KERNEL = "the profiler saw no kernel"
_NO_CPU_PEAK = (
    "torch does not record the peak of its CPU memory; the meter `memory` measures the peak of the whole call"
)
_DIGITS = 9
"""Of seconds: the profiler's clock has steps of a nanosecond."""

Read = Callable[[Row], float]


class ModulesMeter(Meter):
    """Time of every module by its path, forward, backward and recomputed, on the CPU and the GPU."""

    name = "modules"
    metrics = (metrics.TIME_MODULE, metrics.TIME_GPU, metrics.MEMORY_MODULE)
    phase = Phase.PROFILE

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, and modules that can be distinguished."""
        return torch_missing() or (_COMPILED if case.axes.compile else None)

    def needs(self, session: Session) -> Needs:
        """A few calls with a range around every module."""
        return Needs(modules=True, means=True)

    def measure(self, session: Session) -> list[Measurement]:
        """Rows of the calls that were recorded; on a GPU a call of its own for the memory of each module."""
        from speechmeter.meters.recording.profiler import is_compiled

        roots = chosen_roots(session)
        if not roots:
            return [Measurement.absent(metrics.TIME_MODULE, _NO_MODULE)]
        if all(is_compiled(module) for module in roots.values()):
            return [Measurement.absent(metrics.TIME_MODULE, _COMPILED)]
        recording = recording_of(session, self.needs(session))
        patterns = session.case.protocol.filter
        return [
            *module_rows([recording], turns(session, recording)),
            *module_memory(lambda: session.call(session.batches[0]), roots, patterns, session.case.device),
        ]


def module_rows(recordings: Sequence[Recording], notes: Mapping[str, Any] | None = None) -> list[Measurement]:
    """The time of every module in the calls of one or several recordings."""
    calls = [call for recording in recordings for call in recording.calls]
    classes = {path: kind for recording in recordings for path, kind in recording.classes.items()}
    gpu = any(recording.on_cuda for recording in recordings)
    return measurements(calls, classes, gpu, notes or {}, recordings[0].notes)


def measurements(
    calls: Sequence[Attributed],
    classes: Mapping[str, str],
    gpu: bool,
    notes: Mapping[str, Any],
    recorded: Mapping[str, Any] = MappingProxyType({}),
) -> list[Measurement]:
    """Rows of the CPU, and of a GPU where there is one. The sum gets `notes` and `recorded`, every row `notes`."""
    found = _all(metrics.TIME_MODULE, calls, classes, lambda row: row.cpu_s, notes, recorded)
    if not gpu:
        return found
    if not _saw_kernels(calls):
        return [*found, Measurement.absent(metrics.TIME_GPU, _NO_KERNEL)]
    return [*found, *_all(metrics.TIME_GPU, calls, classes, lambda row: row.gpu_s, notes, recorded)]


def gpu_busy(calls: Sequence[Attributed], notes: Mapping[str, Any], recorded: Mapping[str, Any]) -> Measurement:
    """How long the GPU was busy in each call: the sum of the same rows, for meters that have no module rows."""
    if not _saw_kernels(calls):
        return Measurement.absent(metrics.TIME_GPU, _NO_KERNEL)
    return _all(metrics.TIME_GPU, calls, {}, lambda row: row.gpu_s, notes, recorded)[0]


def _saw_kernels(calls: Sequence[Attributed]) -> bool:
    return any(row.gpu_s for call in calls for row in call.rows)


def _all(
    metric: Metric,
    calls: Sequence[Attributed],
    classes: Mapping[str, str],
    read: Read,
    notes: Mapping[str, Any],
    recorded: Mapping[str, Any],
) -> list[Measurement]:
    """The sum of all rows, then one row for each module, label and stage, and one for what belongs to none."""
    owners: dict[str, dict[Owner, None]] = {UNATTRIBUTED: {}}
    for call in calls:
        for row in call.rows:
            owners.setdefault(_scope_of(row.owner), {})[row.owner] = None
    table = _Table(calls, read)
    rows = []
    for scope, own in owners.items():
        first = next(iter(own), None)
        of_class = first is not None and not first.label and first.module in classes
        kind = {"class": classes[first.module]} if first is not None and of_class else {}
        rows.append(_row(metric, scope, table, list(own), {**notes, **kind}))
    total = [round(sum(values), _DIGITS) for values in zip(*(m.values for m in rows), strict=True)]
    source = {"calls": len(calls), **notes, **recorded}
    return [Measurement.of(metric, total, source="torch.profiler", notes=source), *rows]


def _scope_of(owner: Owner) -> str:
    if owner.label:
        return Scope.of(LABEL, owner.label)
    if owner.module:
        return Scope.of(MODULE, owner.module)
    return Scope.of(STAGE, owner.stage) if owner.stage else UNATTRIBUTED


class _Table:
    """The rows of all calls, to be looked up by owner and direction."""

    def __init__(self, calls: Sequence[Attributed], read: Read) -> None:
        self.calls = [{(row.owner, row.direction): row for row in call.rows} for call in calls]
        self.read = read

    def by_direction(self, owners: Sequence[Owner]) -> dict[str, list[float]]:
        """One value a call for each direction that has any."""
        found = {way: [self._seconds(call, owners, way) for call in self.calls] for way in DIRECTIONS}
        return {way: values for way, values in found.items() if any(values)}

    def _seconds(
        self, call: Mapping[tuple[Owner, Direction], Row], owners: Sequence[Owner], direction: Direction
    ) -> float:
        rows = (call.get((owner, direction)) for owner in owners)
        return round(sum(self.read(row) for row in rows if row is not None), _DIGITS)


def _row(metric: Metric, scope: str, table: _Table, owners: Sequence[Owner], notes: Mapping[str, Any]) -> Measurement:
    apart = table.by_direction(owners)
    values = [round(sum(parts), _DIGITS) for parts in zip(*apart.values(), strict=True)] or [0.0] * len(table.calls)
    # how often these were entered in an average call, not counting what was computed again
    entered = (call.get((owner, FORWARD)) for call in table.calls for owner in owners)
    calls = sum(row.calls for row in entered if row is not None) / len(table.calls)
    modules = dict.fromkeys(owner.module for owner in owners if owner.label and owner.module)
    inside = {path: table.by_direction([owner for owner in owners if owner.module == path]) for path in modules}
    labels = _labels(table, owners)
    found = {
        **notes,
        **apart,
        "calls": calls,
        **({"inside": inside} if inside else {}),
        **({"labels": labels} if labels else {}),
    }
    return Measurement.of(metric, values, scope=scope, notes=found)


def _labels(table: _Table, owners: Sequence[Owner]) -> list[dict[str, Any]]:
    """The parts of a row by the labels that hold them and, for a label, the module; empty where no label holds any.

    A single part is the whole row, and its values are not repeated.
    """
    parts: dict[tuple[tuple[str, ...], str], list[Owner]] = {}
    for owner in owners:
        parts.setdefault((owner.labels, owner.module if owner.label else ""), []).append(owner)
    if not any(held_by for held_by, _ in parts):
        return []
    return [
        {
            "in": list(held_by),
            **({"module": module} if module else {}),
            **(table.by_direction(own) if len(parts) > 1 else {}),
        }
        for (held_by, module), own in parts.items()
    ]


def module_memory(
    call: Callable[[], Any], roots: Mapping[str, Any], patterns: Sequence[str], device: Device
) -> list[Measurement]:
    """How far above its start allocation went in each module in one call, by torch's allocator; no profiler runs.

    Of a module that is called several times it is the highest.
    """
    if not device.is_cuda:
        return [Measurement.absent(metrics.MEMORY_MODULE, _NO_CPU_PEAK)]
    import torch

    from speechmeter.meters.recording.profiler import module_ranges

    name = str(device)
    peaks = Peaks(
        now=lambda: int(torch.cuda.memory_allocated(name)),
        highest=lambda: int(torch.cuda.max_memory_allocated(name)),
        forget=lambda: torch.cuda.reset_peak_memory_stats(name),
    )
    with module_ranges(roots, patterns, peaks.open):
        call()
    return [
        Measurement.of(metrics.MEMORY_MODULE, [float(growth)], scope=Scope.of(MODULE, path))
        for path, growth in peaks.by_path.items()
    ]


class Peaks:
    """What each module adds at most. An allocator has one peak since it last forgot: every edge reads and forgets."""

    def __init__(self, now: Callable[[], int], highest: Callable[[], int], forget: Callable[[], None]) -> None:
        self._now, self._highest, self._forget = now, highest, forget
        self.by_path: dict[str, int] = {}
        self._stack: list[int] = []  # the highest seen so far inside each open module, the innermost last

    @contextmanager
    def open(self, name: str) -> Iterator[None]:
        """A range that notes the peak of what runs inside it."""
        self._look()
        start = self._now()
        self._stack.append(start)
        try:
            yield
        finally:
            self._look()
            peak = self._stack.pop()
            if self._stack:
                self._stack[-1] = max(self._stack[-1], peak)
            if name.startswith(label.MODULE):
                path = name.removeprefix(label.MODULE)
                self.by_path[path] = max(self.by_path.get(path, 0), peak - start)

    def _look(self) -> None:
        """Bring the innermost module up to date."""
        if self._stack:
            self._stack[-1] = max(self._stack[-1], self._highest())
        self._forget()
