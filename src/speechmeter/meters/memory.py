"""Peak memory of a call. CPU: the kernel's high-water mark, in a process of its own; CUDA: torch's allocator.

Why a process of its own on the CPU: glibc keeps freed memory, so a second reading in one process comes out low (43.5,
499.9, then 0.0 MiB for repeated cases where the truth is 34, 503, 34). With both thresholds at 64 KiB *from exec on*
every large block goes back to the kernel and the readings repeat; but the thresholds cost time, so nothing else is
read off that process.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.finding import one_call
from speechmeter.core.machine import GLIBC, allocator_name
from speechmeter.core.protocols import Meter, Phase, Session
from speechmeter.core.scope import STAGE, Scope
from speechmeter.core.stages import step
from speechmeter.core.types import Batch, Case, Measurement, Stage, by_turns
from speechmeter.meters.resident import Probe, Reading, Work, probes
from speechmeter.meters.weights import held_bytes, uncountable, weights_of

_READINGS = 3
_READINGS_WHEN_SLOW = 1
_SLOW_NS = 5 * 10**9


class MemoryMeter(Meter):
    """CPU: highest resident size during a call, and its growth. CUDA: peaks of torch's allocator, the process by NVML.

    In total and by stage, and the weights separately. `found` are the ways to read the resident size, the best first;
    what this system offers, unless given.
    """

    name = "memory"
    metrics = (
        metrics.MEMORY_CPU_TOTAL,
        metrics.MEMORY_CPU_PEAK,
        metrics.MEMORY_CPU_LOAD,
        metrics.MEMORY_WEIGHTS,
        metrics.MEMORY_CUDA_ALLOCATED,
        metrics.MEMORY_CUDA_GROWTH,
        metrics.MEMORY_CUDA_RESERVED,
        metrics.MEMORY_CUDA_LOAD,
        metrics.MEMORY_CUDA_PROCESS,
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

    def measure(self, session: Session) -> list[Measurement]:
        """One reading per call after the warm first one; the weights last, because unpacking some takes memory.

        Garbage is collected before each reading. What was there before is hidden from the collector: going through the
        objects of imported libraries takes 0.2 s each time, 2 µs without them.
        """
        gc.collect()
        gc.freeze()
        try:
            if session.case.device.is_cuda:
                from speechmeter.meters.cuda_memory import measure_cuda

                return [*measure_cuda(session), *weights(session)]
            stages = [] if one_call(session.case) else _stages(session, self._probes)
            return [*_total(session, self._probes[0]), *stages, *weights(session)]
        finally:
            gc.unfreeze()


def _total(session: Session, probe: Probe) -> list[Measurement]:
    readings = [_read(probe, partial(session.call, batch)) for batch in _batches_to_read(session)]
    growth = _growth(readings, probe, turns=by_turns(session.batches))
    peaks = [float(reading.peak_bytes) for reading in readings if reading.peak_bytes is not None]
    if len(peaks) < len(readings):
        whole = Measurement.absent(metrics.MEMORY_CPU_TOTAL, f"{probe.source} reads the growth alone")
    else:
        whole = Measurement.of(metrics.MEMORY_CPU_TOTAL, peaks, source=probe.source, notes=growth.notes)
    loaded = session.resident_loaded_bytes
    load = [] if loaded is None else [Measurement.of(metrics.MEMORY_CPU_LOAD, [loaded], source="VmRSS")]
    return [whole, growth, *load]


def _stages(session: Session, found: Sequence[Probe]) -> list[Measurement]:
    """The growth over each stage, in calls of their own; nothing for a chain of one."""
    names = [stage.name for stage in session.stages]
    if len(names) == 1:
        return []
    probe = next((probe for probe in found if probe.restarts), None)
    if probe is None:
        reason = f"{found[0].source} cannot be reset between stages"
        return [Measurement.absent(metrics.MEMORY_CPU_PEAK, reason, scope=Scope.of(STAGE, name)) for name in names]

    def work(stage: Stage, outputs: list[Any]) -> None:
        step(stage, outputs)
        session.sync()

    calls = []
    for batch in _batches_to_read(session):
        outputs: list[Any] = [batch]  # outputs stay alive to the end of the call, as in `run_chain`
        calls.append([_read(probe, partial(work, stage, outputs)) for stage in session.stages])
    turns = by_turns(session.batches)
    rows = zip(names, *calls, strict=True)
    return [_growth(readings, probe, Scope.of(STAGE, name), turns=turns) for name, *readings in rows]


def _read(probe: Probe, work: Work) -> Reading:
    gc.collect()
    return probe.read(work)


def _growth(
    readings: Sequence[Reading], probe: Probe, scope: str = "total", *, turns: Mapping[str, Any]
) -> Measurement:
    values = [float(reading.growth_bytes) for reading in readings]
    caveats = dict.fromkeys(reading.caveat for reading in readings if reading.caveat)
    notes: dict[str, Any] = {"mmap_threshold": os.environ.get("MALLOC_MMAP_THRESHOLD_", "default"), **turns}
    if (allocator := allocator_name()) != GLIBC:
        caveats[f"allocator {allocator}: the thresholds work in glibc only, so readings may be too low"] = None
    if caveats:
        notes["notes"] = list(caveats)
    return Measurement.of(metrics.MEMORY_CPU_PEAK, values, scope=scope, source=probe.source, notes=notes)


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


def _batches_to_read(session: Session) -> Sequence[Batch]:
    """What is called and read: each of several batches once; the only one a few times, or once when it is slow."""
    if len(session.batches) > 1 or one_call(session.case):
        return session.batches
    return list(session.batches) * (_READINGS if session.first_ns < _SLOW_NS else _READINGS_WHEN_SLOW)
