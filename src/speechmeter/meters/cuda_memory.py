"""CUDA memory by torch's own counters and by NVML. Imports torch: only the memory meter imports this."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.core.finding import one_call
from speechmeter.core.protocols import Session
from speechmeter.core.scope import STAGE, Scope
from speechmeter.core.stages import step
from speechmeter.core.types import Batch, Measurement, by_turns
from speechmeter.meters.nvml_device import device_handle, load_nvml

_READINGS = 2


@dataclass(frozen=True, kw_only=True)
class _Peak:
    """What torch's counters said before and after a piece of work."""

    before_bytes: int
    allocated_bytes: int
    reserved_bytes: int


def measure_cuda(session: Session) -> list[Measurement]:
    """Peaks of a call from an emptied cache, twice or of each of several batches; of the stages; of the process."""
    device = torch.device(str(session.case.device))
    turns = by_turns(session.batches)
    peaks = [_call(session, device, batch) for batch in _to_read(session)]
    quick = one_call(session.case)
    stages = [] if quick else _stages(session, device)
    _reset(session, device)
    return [
        *_measurements(peaks, turns),
        Measurement.of(
            metrics.MEMORY_CUDA_RESERVED, [float(p.reserved_bytes) for p in peaks], source="torch", notes=turns
        ),
        Measurement.of(metrics.MEMORY_CUDA_LOAD, [float(torch.cuda.memory_allocated(device))], source="torch"),
        *stages,
        *([] if quick else [_process(session, device)]),
    ]


def _to_read(session: Session) -> Sequence[Batch]:
    once = len(session.batches) > 1 or one_call(session.case)
    return session.batches if once else list(session.batches) * _READINGS


def _call(session: Session, device: torch.device, batch: Batch) -> _Peak:
    _reset(session, device)
    before_bytes = torch.cuda.memory_allocated(device)
    session.call(batch)
    return _peak(before_bytes, device)


def _stages(session: Session, device: torch.device) -> list[Measurement]:
    """Peaks of each stage, in calls of their own; nothing for a chain of one."""
    if len(session.stages) == 1:
        return []
    calls = [_call_by_stage(session, device, batch) for batch in _to_read(session)]
    turns = by_turns(session.batches)
    rows = zip(session.stages, *calls, strict=True)
    return [found for stage, *peaks in rows for found in _measurements(peaks, turns, Scope.of(STAGE, stage.name))]


def _call_by_stage(session: Session, device: torch.device, batch: Batch) -> list[_Peak]:
    """One call, its peak reset before each stage; outputs stay alive to its end, as in `run_chain`."""
    _reset(session, device)
    outputs: list[Any] = [batch]
    peaks = []
    for stage in session.stages:
        torch.cuda.reset_peak_memory_stats(device)
        before_bytes = torch.cuda.memory_allocated(device)
        step(stage, outputs)
        session.sync()
        peaks.append(_peak(before_bytes, device))
    return peaks


def _peak(before_bytes: int, device: torch.device) -> _Peak:
    return _Peak(
        before_bytes=before_bytes,
        allocated_bytes=torch.cuda.max_memory_allocated(device),
        reserved_bytes=torch.cuda.max_memory_reserved(device),
    )


def _measurements(peaks: Sequence[_Peak], turns: Mapping[str, Any], scope: str = "total") -> list[Measurement]:
    allocated = [float(peak.allocated_bytes) for peak in peaks]
    growth = [float(peak.allocated_bytes - peak.before_bytes) for peak in peaks]
    return [
        Measurement.of(metrics.MEMORY_CUDA_ALLOCATED, allocated, scope=scope, source="torch", notes=turns),
        Measurement.of(metrics.MEMORY_CUDA_GROWTH, growth, scope=scope, source="torch", notes=turns),
    ]


def _reset(session: Session, device: torch.device) -> None:
    session.sync()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)


def _process(session: Session, device: torch.device) -> Measurement:
    session.call(session.batches[0])
    index = device.index if device.index is not None else torch.cuda.current_device()
    try:
        mine = _used_bytes(Device(kind="cuda", index=index))
    except SensorError as error:
        return Measurement.absent(metrics.MEMORY_CUDA_PROCESS, str(error))
    if not mine:
        return Measurement.absent(
            metrics.MEMORY_CUDA_PROCESS, "NVML does not list this process (a container hides process numbers)"
        )
    return Measurement.of(metrics.MEMORY_CUDA_PROCESS, [float(mine[0])], source="NVML")


def _used_bytes(device: Device) -> list[int]:
    """This process's memory on the device, by NVML; empty when it is not listed."""
    nvml = load_nvml()
    try:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(device_handle(nvml, device))
    except nvml.NVMLError as error:
        raise SensorError(f"NVML: {error}") from error
    finally:
        nvml.nvmlShutdown()
    return [p.usedGpuMemory for p in processes if p.pid == os.getpid() and p.usedGpuMemory]
