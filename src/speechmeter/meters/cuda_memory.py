"""CUDA memory by torch's own counters and by NVML. Imports torch: only the memory meter imports this."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.core.finding import one_call
from speechmeter.core.process_tree import started_processes
from speechmeter.core.protocols import Session
from speechmeter.core.scope import STAGE, Scope
from speechmeter.core.stages import step
from speechmeter.core.types import Batch, Measurement
from speechmeter.meters.memory import batches_to_read
from speechmeter.meters.nvml_device import device_handle, load_nvml

_READINGS = 2


class _Peak(NamedTuple):
    """The readings of torch's counters before and after a piece of work."""

    before_bytes: int
    allocated_bytes: int
    reserved_bytes: int


def measure_cuda(session: Session) -> list[Measurement]:
    """Peaks of a call from an emptied cache, twice or of several batches; of the stages; of the process."""
    device = torch.device(str(session.case.device))
    batches, turns = batches_to_read(session, _READINGS)
    quick = one_call(session.case)

    apart = len(session.stages) > 1 and not quick
    peaks: list[_Peak] = []
    by_stage: list[list[_Peak]] = [[] for _ in session.stages]
    for batch in batches:
        _reset(session, device)
        before_bytes = torch.cuda.memory_allocated(device)
        if not apart:
            session.call(batch)
            peaks.append(_peak(before_bytes, device))
            continue
        own = _peaks_of_stages(session, batch, device)
        for stage, peak in zip(by_stage, own, strict=True):
            stage.append(peak)
        highest = (max(peak.allocated_bytes for peak in own), max(peak.reserved_bytes for peak in own))
        peaks.append(_Peak(before_bytes, *highest))

    _reset(session, device)
    reserved = [float(peak.reserved_bytes) for peak in peaks]
    return [
        *_measurements(peaks, turns),
        Measurement.of(metrics.MEMORY_CUDA_RESERVED, reserved, source="torch", notes=turns),
        Measurement.of(metrics.MEMORY_CUDA_LOAD, [float(torch.cuda.memory_allocated(device))], source="torch"),
        *(
            found
            for stage, own in zip(session.stages, by_stage, strict=True)
            for found in (_measurements(own, turns, Scope.of(STAGE, stage.name)) if own else ())
        ),
        *([] if quick else [_process(session, device)]),
    ]


def _peaks_of_stages(session: Session, batch: Batch, device: torch.device) -> list[_Peak]:
    """One call, stage by stage."""
    outputs: list[Any] = [batch]  # outputs stay alive to the end of the call, as in `run_chain`
    peaks = []
    for stage in session.stages:
        torch.cuda.reset_peak_memory_stats(device)
        before_bytes = torch.cuda.memory_allocated(device)
        step(stage, outputs)
        session.sync()
        peaks.append(_peak(before_bytes, device))
    return peaks


def _peak(before_bytes: int, device: torch.device) -> _Peak:
    return _Peak(before_bytes, torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device))


def _measurements(peaks: Sequence[_Peak], turns: dict[str, Any], scope: str = "total") -> list[Measurement]:
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
        mine = used_bytes(Device(kind="cuda", index=index))
    except SensorError as error:
        return Measurement.absent(metrics.MEMORY_CUDA_PROCESS, str(error))
    if not mine:
        why = "NVML does not list this process (a container hides process numbers)"
        return Measurement.absent(metrics.MEMORY_CUDA_PROCESS, why)
    return Measurement.of(metrics.MEMORY_CUDA_PROCESS, [float(sum(mine))], source="NVML")


def used_bytes(device: Device) -> list[int]:
    """Memory on the device of this process and of each that it started, by NVML; empty when none is listed."""
    nvml = load_nvml()
    try:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(device_handle(nvml, device))
    except nvml.NVMLError as error:
        raise SensorError(f"NVML: {error}") from error
    finally:
        nvml.nvmlShutdown()
    own = {os.getpid(), *started_processes()}
    return [p.usedGpuMemory for p in processes if p.pid in own and p.usedGpuMemory]
