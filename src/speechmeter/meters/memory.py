"""Peak memory of a call. CPU: the kernel's high-water mark, in a process of its own; CUDA: torch's allocator.

Why a process of its own on the CPU: glibc keeps freed memory, so a second reading in one process comes out low (43.5,
499.9, then 0.0 MiB for repeated cases where the truth is 34, 503, 34). With both thresholds at 64 KiB *from exec on*
every large block goes back to the kernel and the readings repeat; but the thresholds cost time, so nothing else is
read off that process.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from speechmeter.core import metrics
from speechmeter.core.machine import kib_field, resident_bytes
from speechmeter.core.protocols import MAIN, ORDINARY, Session
from speechmeter.core.types import Case, Measurement

_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_HIGH_WATER_MARK = "5"
_READINGS = 3
_READINGS_WHEN_SLOW = 1
_SLOW_NS = 5 * 10**9


class MemoryMeter:
    """CPU: growth of the resident size over one call. CUDA: peak allocated and reserved, and the process by NVML."""

    name = "memory"
    metrics = (
        metrics.MEMORY_CPU_PEAK,
        metrics.MEMORY_CPU_LOAD,
        metrics.MEMORY_CUDA_ALLOCATED,
        metrics.MEMORY_CUDA_RESERVED,
        metrics.MEMORY_CUDA_LOAD,
        metrics.MEMORY_CUDA_PROCESS,
    )
    environ: Mapping[str, str] = MappingProxyType(
        {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    )

    ways = ORDINARY

    def process(self, case: Case) -> str:
        """Its own on the CPU, because of the allocator; CUDA's counters can be reset in any process."""
        return MAIN if _on_cuda(case) else self.name

    def unavailable(self, case: Case) -> str | None:
        """Needs the kernel's high-water mark on the CPU."""
        if _on_cuda(case) or os.access(_CLEAR_REFS, os.W_OK):
            return None
        return "this system cannot reset a process's memory high-water mark (/proc/self/clear_refs)"

    def measure(self, session: Session) -> list[Measurement]:
        """One reading per call after the warm first one."""
        if _on_cuda(session.case):
            from speechmeter.meters.cuda_memory import measure_cuda

            return measure_cuda(session)
        return _measure_cpu(session)


def _measure_cpu(session: Session) -> list[Measurement]:
    readings = [_growth_bytes(session) for _ in range(readings_for(session))]
    loaded = session.resident_loaded_bytes
    found = [
        Measurement.of(
            metrics.MEMORY_CPU_PEAK,
            readings,
            source="VmHWM",
            notes={"mmap_threshold": os.environ.get("MALLOC_MMAP_THRESHOLD_", "default")},
        )
    ]
    if loaded is not None:
        found.append(Measurement.of(metrics.MEMORY_CPU_LOAD, [loaded], source="VmRSS"))
    return found


def readings_for(session: Session) -> int:
    """How many calls are read: memory varies little, so a slow call is read once."""
    return _READINGS if session.first_ns < _SLOW_NS else _READINGS_WHEN_SLOW


def _growth_bytes(session: Session) -> float:
    gc.collect()
    before = resident_bytes()
    _CLEAR_REFS.write_text(_RESET_HIGH_WATER_MARK)
    session.call(session.batches[0])
    peak = kib_field("/proc/self/status", "VmHWM")
    if peak is None or before is None:
        raise OSError("VmHWM or VmRSS is missing from /proc/self/status")
    return float(max(0, peak - before))


def _on_cuda(case: Case) -> bool:
    return str(case.axes.get("device", "")).startswith("cuda")
