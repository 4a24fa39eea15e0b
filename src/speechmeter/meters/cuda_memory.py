"""CUDA memory by torch's own counters and by NVML. Imports torch: only the memory meter imports this."""

from __future__ import annotations

import gc
import os

import torch

from speechmeter.core import metrics
from speechmeter.core.errors import SensorError
from speechmeter.core.protocols import Session
from speechmeter.core.types import Measurement
from speechmeter.meters.nvml_device import device_handle, load_nvml


def measure_cuda(session: Session) -> list[Measurement]:
    """Peaks of one call that starts from an emptied cache, twice; then the process's size by NVML."""
    device = torch.device(str(session.case.axes["device"]))
    allocated: list[float] = []
    reserved: list[float] = []
    for _ in range(2):
        _reset(session, device)
        session.call(session.batches[0])
        allocated.append(float(torch.cuda.max_memory_allocated(device)))
        reserved.append(float(torch.cuda.max_memory_reserved(device)))
    _reset(session, device)
    return [
        Measurement.of(metrics.MEMORY_CUDA_ALLOCATED, allocated, source="torch"),
        Measurement.of(metrics.MEMORY_CUDA_RESERVED, reserved, source="torch"),
        Measurement.of(metrics.MEMORY_CUDA_LOAD, [float(torch.cuda.memory_allocated(device))], source="torch"),
        _process(session, device),
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
        mine = _used_bytes(f"cuda:{index}")
    except SensorError as error:
        return Measurement.absent(metrics.MEMORY_CUDA_PROCESS, str(error))
    if not mine:
        return Measurement.absent(
            metrics.MEMORY_CUDA_PROCESS, "NVML does not list this process (a container hides process numbers)"
        )
    return Measurement.of(metrics.MEMORY_CUDA_PROCESS, [float(mine[0])], source="NVML")


def _used_bytes(device: str) -> list[int]:
    """This process's memory on the device, by NVML; empty when it is not listed."""
    nvml = load_nvml()
    try:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(device_handle(nvml, device))
    except nvml.NVMLError as error:
        raise SensorError(f"NVML: {error}") from error
    finally:
        nvml.nvmlShutdown()
    return [p.usedGpuMemory for p in processes if p.pid == os.getpid() and p.usedGpuMemory]
