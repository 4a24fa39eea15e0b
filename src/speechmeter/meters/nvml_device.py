"""The NVML handle of a CUDA device, as the process sees it: CUDA_VISIBLE_DEVICES may renumber or name devices."""

from __future__ import annotations

import os
from typing import Any

from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError


def load_nvml() -> Any:
    """The initialised `pynvml` module; SensorError when the library or the driver is missing.

    Each call needs one `nvmlShutdown`.
    """
    try:
        import pynvml
    except ImportError as error:
        raise SensorError("nvidia-ml-py is not installed: pip install 'speechmeter[gpu]'") from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise SensorError(f"NVML: {error}") from error
    return pynvml


def device_handle(nvml: Any, device: Device) -> Any:
    """The handle of `cuda:N` as numbered inside this process; SensorError when NVML does not know it."""
    index = device.index or 0
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    named = str(index)
    if setting is not None:
        names = [name.strip() for name in setting.split(",") if name.strip()]
        if index >= len(names):
            raise SensorError(f"CUDA_VISIBLE_DEVICES={setting!r} has no device {index}")
        named = names[index]
    try:
        if named.isdigit():
            return nvml.nvmlDeviceGetHandleByIndex(int(named))
        # CUDA accepts the beginning of a UUID, NVML does not: compare with every device
        for number in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            if str(nvml.nvmlDeviceGetUUID(handle)).lower().startswith(named.lower()):
                return handle
    except nvml.NVMLError as error:
        raise SensorError(f"NVML: {error}") from error
    hint = " (a MIG slice has no sensor of its own)" if named.startswith("MIG") else ""
    raise SensorError(f"NVML knows no device {named}{hint}")
