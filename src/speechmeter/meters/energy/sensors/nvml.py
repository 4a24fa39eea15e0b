"""The energy counter of an NVIDIA GPU, or its power where the GPU has no counter."""

from __future__ import annotations

from typing import Any, Literal

from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors.base import Found, Reading, stamped
from speechmeter.meters.nvml_device import device_handle, load_nvml

_PERIOD_S = 0.02
"""A tick of the counter is looked for this often; the counter itself moves about ten times a second."""


class NvmlSensor:
    """One GPU. `counter` says which of the two functions the GPU supports."""

    domain: Literal["gpu"] = "gpu"
    whole = True
    period_s = _PERIOD_S

    def __init__(self, nvml: Any, handle: Any, name: str, *, counter: bool) -> None:
        self.name = name
        self.counter = counter
        self._nvml = nvml
        self._handle = handle
        self._ask = nvml.nvmlDeviceGetTotalEnergyConsumption if counter else nvml.nvmlDeviceGetPowerUsage

    def read(self) -> Reading:
        """Joules since the driver was loaded, or watts now."""
        try:
            at_s, thousandths = stamped(lambda: self._ask(self._handle))
        except self._nvml.NVMLError as error:
            raise SensorError(f"NVML: {error}") from error
        if self.counter:
            return Reading(at_s=at_s, energy_j=thousandths / 1e3)
        return Reading(at_s=at_s, power_w=thousandths / 1e3)

    def close(self) -> None:
        """Give NVML back."""
        self._nvml.nvmlShutdown()


def find(device: Device) -> Found:
    """The sensor of `cuda:N`, by counter where the GPU has one."""
    if not device.is_cuda:
        return Found(reason=f"NVML does not know {device}")
    try:
        nvml = load_nvml()
    except SensorError as error:
        return Found(reason=str(error))
    try:
        return Found(sensors=(_sensor(nvml, device),))
    except SensorError as error:
        nvml.nvmlShutdown()
        return Found(reason=str(error))


def _sensor(nvml: Any, device: Device) -> NvmlSensor:
    handle, name = device_handle(nvml, device), f"NVML cuda:{device.index or 0}"
    sensor = NvmlSensor(nvml, handle, name, counter=True)
    try:
        sensor.read()
    except SensorError:
        sensor = NvmlSensor(nvml, handle, name, counter=False)
        sensor.read()
    return sensor
