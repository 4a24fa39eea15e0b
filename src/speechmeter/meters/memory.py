"""Peak memory of a call. CPU: the kernel's high-water mark, in a process of its own; CUDA: torch's allocator.

Why a process of its own on the CPU: glibc keeps freed memory, so a second reading in one process comes out low (43.5,
499.9, then 0.0 MiB for repeated cases where the truth is 34, 503, 34). With both thresholds at 64 KiB *from exec on*
every large block goes back to the kernel and the readings repeat; but the thresholds cost time, so nothing else is
read off that process.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.finding import one_call
from speechmeter.core.heap import hidden_from_collector
from speechmeter.core.live import Live
from speechmeter.core.machine import GLIBC, allocator_name
from speechmeter.core.protocols import Meter, Phase, Session
from speechmeter.core.scope import STAGE, Scope
from speechmeter.core.stages import step
from speechmeter.core.types import Batch, Case, Measurement, Stage, by_turns
from speechmeter.meters.resident import Probe, Reading, Work, joined, probes
from speechmeter.meters.server_use import ServerUse
from speechmeter.meters.started import INCLUDED, WithStarted, starts_processes
from speechmeter.meters.weights import held_bytes, uncountable, weights_of

_MOST_SIZED = 4
_READINGS = 3
_READINGS_WHEN_SLOW = 1
_SLOW_NS = 5 * 10**9


class MemoryMeter(Meter):
    """CPU: highest resident size during a call, and its growth. CUDA: peaks of torch's allocator, the process by NVML.

    The processes that the model started count too. In total and by stage, and the weights separately. `found` are the
    ways to read the resident size, the best first; what this system offers, unless given.
    """

    name = "memory"
    metrics = (
        metrics.MEMORY_CPU_TOTAL,
        metrics.MEMORY_CPU_PEAK,
        metrics.MEMORY_CPU_LOAD,
        metrics.MEMORY_CPU_STARTED,
        metrics.MEMORY_WEIGHTS,
        metrics.MEMORY_CUDA_ALLOCATED,
        metrics.MEMORY_CUDA_GROWTH,
        metrics.MEMORY_CUDA_RESERVED,
        metrics.MEMORY_CUDA_LOAD,
        metrics.MEMORY_CUDA_PROCESS,
        metrics.MEMORY_LIVE,
        metrics.MEMORY_SERVER,
        metrics.CPU_SERVER,
    )
    environ: Mapping[str, str] = MappingProxyType(
        {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    )
    phase = Phase.MEMORY

    def __init__(self, found: Sequence[Probe] | None = None) -> None:
        self._probes = tuple(found) if found is not None else probes()

    def unavailable(self, case: Case) -> str | None:
        """Needs some way to read this process's size on the CPU."""
        if case.device.is_cuda or self._probes:
            return None
        return "this system reports neither the resident size of a process nor its highest one (/proc, getrusage)"

    @contextmanager
    def watching(self, case: Case, live: Live) -> Iterator[list[Measurement]]:
        """The highest resident size while conversations are held; the memory of a GPU is not read."""
        readings: list[Measurement] = []
        if case.device.is_cuda:
            yield readings
            readings.append(
                Measurement.absent(metrics.MEMORY_LIVE, "only memory on the CPU is read, and this case runs on a GPU")
            )
            return
        # the processes of a server are read apart
        probe = self._probes[0] if live.processes is not None else WithStarted(self._probes[0])
        done = Event()
        found: list[Reading] = []
        server = None if live.processes is None else ServerUse(live.processes)
        readers = [Thread(target=lambda: found.append(probe.read(done.wait)), daemon=True)]
        readers += [] if server is None else [Thread(target=server.watch, args=(done,), daemon=True)]
        for reader in readers:
            reader.start()
        try:
            yield readings
        finally:
            done.set()
            for reader in readers:
                reader.join()
        readings += _while_live(probe, found) + ([] if server is None else server.measurements())

    def measure(self, session: Session) -> list[Measurement]:
        """One reading per call after the warm first one; the weights last, because unpacking some takes memory.

        Garbage is collected before each reading, in 2 µs, as what was there before is hidden from the collector.
        """
        with hidden_from_collector():
            if session.case.device.is_cuda:
                from speechmeter.meters.cuda_memory import measure_cuda

                return [*measure_cuda(session), *weights(session)]
            return [*self._on_cpu(session), *weights(session)]

    def _on_cpu(self, session: Session) -> list[Measurement]:
        """With the processes that the model started; most models start none, and are read without looking for any."""
        if not starts_processes():
            found = _readings(session, self._probes)
            if not starts_processes():
                return found
        return _readings(session, [WithStarted(probe) for probe in self._probes])


def _while_live(probe: Probe, found: Sequence[Reading]) -> list[Measurement]:
    """The highest resident size of this process."""
    if not found or found[0].peak_bytes is None:
        reason = f"this system does not report the resident memory of a process ({probe.source})"
        return [Measurement.absent(metrics.MEMORY_LIVE, reason)]
    caveats = _caveats(found)
    notes = {"notes": caveats} if caveats else {}
    return [Measurement.of(metrics.MEMORY_LIVE, [float(found[0].peak_bytes)], source=probe.source, notes=notes)]


def _readings(session: Session, found: Sequence[Probe]) -> list[Measurement]:
    """The whole call and its stages, off the same calls where the probe can be reset between stages."""
    probe, several = found[0], len(session.stages) > 1 and not one_call(session.case)
    batches, notes = _batches(session)
    if not several or not probe.restarts:
        readings = [_read(probe, partial(session.call, batch)) for batch in batches]
        return [*_total(session, probe, readings, notes), *(_stages_apart(session, found) if several else ())]
    calls = [_read_stages(probe, session, batch) for batch in batches]
    return [*_total(session, probe, [joined(call) for call in calls], notes), *_stages(session, probe, calls, notes)]


def _batches(session: Session) -> tuple[Sequence[Batch], dict[str, Any]]:
    return batches_to_read(session, _READINGS if session.first_ns < _SLOW_NS else _READINGS_WHEN_SLOW)


def _total(session: Session, probe: Probe, readings: Sequence[Reading], notes: Mapping[str, Any]) -> list[Measurement]:
    growth = _growth(readings, probe, more=notes)
    peaks = [float(reading.peak_bytes) for reading in readings if reading.peak_bytes is not None]
    if len(peaks) < len(readings):
        whole = Measurement.absent(
            metrics.MEMORY_CPU_TOTAL, f"this system reports only the growth of resident memory ({probe.source})"
        )
    else:
        whole = Measurement.of(metrics.MEMORY_CPU_TOTAL, peaks, source=probe.source, notes=growth.notes)
    loaded = session.resident_loaded_bytes
    load = [] if loaded is None else [Measurement.of(metrics.MEMORY_CPU_LOAD, [loaded], source="VmRSS")]
    return [whole, growth, *load, *_started(readings, growth.notes)]


def _started(readings: Sequence[Reading], notes: Mapping[str, Any]) -> list[Measurement]:
    """The part of the peak that is not in this process; no row for a model that starts no other."""
    values = [float(reading.started_bytes) for reading in readings]
    return [Measurement.of(metrics.MEMORY_CPU_STARTED, values, source="Pss", notes=notes)] if any(values) else []


def _stages_apart(session: Session, found: Sequence[Probe]) -> list[Measurement]:
    """The growth over each stage, by another probe than the total's, in calls of their own."""
    probe = next((probe for probe in found if probe.restarts), None)
    if probe is None:
        reason = f"this system reports the peak of the whole call only ({found[0].source})"
        names = [stage.name for stage in session.stages]
        return [Measurement.absent(metrics.MEMORY_CPU_PEAK, reason, scope=Scope.of(STAGE, name)) for name in names]
    batches, notes = _batches(session)
    return _stages(session, probe, [_read_stages(probe, session, batch) for batch in batches], notes)


def _stages(
    session: Session, probe: Probe, calls: Sequence[Sequence[Reading]], notes: Mapping[str, Any]
) -> list[Measurement]:
    rows = zip(session.stages, *calls, strict=True)
    return [_growth(own, probe, Scope.of(STAGE, stage.name), more=notes) for stage, *own in rows]


def _read_stages(probe: Probe, session: Session, batch: Batch) -> list[Reading]:
    """One call, stage by stage. Nothing is collected in between, as in any other call."""

    def work(stage: Stage) -> None:
        step(stage, outputs)
        session.sync()

    gc.collect()
    outputs: list[Any] = [batch]  # outputs stay alive to the end of the call, as in `run_chain`
    return [probe.read(partial(work, stage)) for stage in session.stages]


def _read(probe: Probe, work: Work) -> Reading:
    gc.collect()
    return probe.read(work)


def _growth(readings: Sequence[Reading], probe: Probe, scope: str = "total", *, more: Mapping[str, Any]) -> Measurement:
    values = [float(reading.growth_bytes) for reading in readings]
    caveats = dict.fromkeys([*more.get("notes", ()), *_caveats(readings)])
    notes: dict[str, Any] = {"mmap_threshold": os.environ.get("MALLOC_MMAP_THRESHOLD_", "default"), **more}
    if (allocator := allocator_name()) != GLIBC:
        caveats[f"memory allocator {allocator}: it may reuse memory that was freed, so readings may be too low"] = None
    if caveats:
        notes["notes"] = list(caveats)
    return Measurement.of(metrics.MEMORY_CPU_PEAK, values, scope=scope, source=probe.source, notes=notes)


def _caveats(readings: Sequence[Reading]) -> list[str]:
    """What bounds the readings, each said once, and whether other processes are in them."""
    included = [INCLUDED] if any(reading.started_bytes for reading in readings) else []
    return list(dict.fromkeys([*included, *(reading.caveat for reading in readings if reading.caveat)]))


def weights(session: Session) -> list[Measurement]:
    """Bytes that the subject's weights hold, in total and for each stage that names modules."""
    modules = session.prepared.modules
    if not modules:
        return [
            Measurement.absent(
                metrics.MEMORY_WEIGHTS, "the model exposes no torch module, so the size of its weights is unknown"
            )
        ]
    parts = {"total": modules}
    if len(session.stages) > 1:
        parts.update({Scope.of(STAGE, stage.name): stage.modules for stage in session.stages if stage.modules})
    found = []
    for scope, part in parts.items():
        if reason := uncountable(part):
            found.append(Measurement.absent(metrics.MEMORY_WEIGHTS, reason, scope=scope))
        else:
            held = [float(held_bytes(weights_of(part)))]
            found.append(Measurement.of(metrics.MEMORY_WEIGHTS, held, scope=scope, source="tensors"))
    return found


def batches_to_read(session: Session, readings: int) -> tuple[Sequence[Batch], dict[str, Any]]:
    """What is called and read, and the notes: each of several batches once; the only one so many times.

    A batch of shapes says how many cells it fills, which decides what a call takes. Of many such batches a few are
    read, from the smallest to the largest in even steps: 40 calls of a loss would give the same largest figure as 4.
    """
    batches = session.batches
    if one_call(session.case):
        return batches, by_turns(batches)
    if len(batches) == 1:
        return list(batches) * readings, {}
    sized = [(value, index) for index, batch in enumerate(batches) for value in _cells(batch)]
    if len(batches) <= _MOST_SIZED or len(sized) < len(batches):
        return batches, by_turns(batches)
    order = [index for _, index in sorted(sized)]
    last = len(order) - 1
    chosen = [batches[order[round(step * last / (_MOST_SIZED - 1))]] for step in range(_MOST_SIZED)]
    note = f"memory was read for {_MOST_SIZED} of {len(batches)} batches, from the smallest to the largest"
    return chosen, by_turns(chosen) | {"notes": [note]}


def _cells(batch: Batch) -> list[float]:
    return [fact.values[0] for fact in batch.facts if fact.metric == metrics.CELLS_PADDED.id]
