"""Sensors that are read through a library: NVIDIA GPUs by NVML, and what zeus reads beyond our own sensors.

zeus is asked for AMD GPUs, Apple silicon, and RAPL through its daemon. Written against zeus 0.16: `zeus.device` returns
objects whose counters are in millijoules and whose power is in milliwatts. Its Jetson and plain RAPL readers start
processes of their own, and we read those sensors ourselves, so they are not asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors import Domain, Found, Sensor
from speechmeter.meters.nvml_device import device_handle, load_nvml

_ZEUS_DAEMON = ("ZEUSD_SOCK_PATH", "ZEUSD_HOST_PORT")


def find_nvml(device: Device) -> Found:
    """The energy counter of `cuda:N`, or its power where the GPU has no counter."""
    if not device.is_cuda:
        return Found(reason=f"NVML measures NVIDIA GPUs only, and this case runs on {device}")
    try:
        nvml = load_nvml()
    except SensorError as error:
        return Found(reason=str(error))
    try:
        handle = device_handle(nvml, device)
        try:
            sensor = _nvml_sensor(nvml, handle, device, counter=True)
            sensor.read()
        except SensorError:
            sensor = _nvml_sensor(nvml, handle, device, counter=False)
            sensor.read()
    except SensorError as error:
        nvml.nvmlShutdown()
        return Found(reason=str(error))
    return Found(sensors=(sensor,))


def _nvml_sensor(nvml: Any, handle: Any, device: Device, *, counter: bool) -> Sensor:
    read = nvml.nvmlDeviceGetTotalEnergyConsumption if counter else nvml.nvmlDeviceGetPowerUsage

    def ask() -> float:
        try:
            return float(read(handle)) / 1e3
        except nvml.NVMLError as error:
            raise SensorError(f"NVML: {error}") from error

    return Sensor(
        name=f"NVML cuda:{device.index or 0}",
        domain="gpu",
        ask=ask,
        counter=counter,
        period_s=0.02,  # the counter moves about ten times a second: a tick is looked for more often
        close=nvml.nvmlShutdown,
    )


def find_zeus(device: Device) -> Found:
    """Everything that zeus can read here for a case on that device."""
    if find_spec("zeus") is None:
        return Found(reason="zeus is not installed: pip install 'speechmeter[zeus]'")
    try:
        devices = import_module("zeus.device")
    except Exception as error:  # its vendor libraries fail in their own ways
        return Found(reason=f"zeus cannot be imported: {error}")
    sensors: list[Sensor] = []
    reasons: list[str] = []
    for look in (_zeus_gpu, _zeus_daemon, _zeus_apple):
        try:
            sensors += look(devices, device)
        except Exception as error:
            reasons.append(" ".join(str(error).split()))
    return Found(sensors=tuple(sensors), reason="" if sensors else "; ".join(reasons) or "zeus finds no sensor")


def _zeus_sensor(name: str, domain: Domain, thousandths: Callable[[], Any], *, counter: bool = True) -> Sensor:
    def ask() -> float:
        try:
            return float(thousandths()) / 1e3
        except Exception as error:  # zeus has one exception class for each vendor's error code
            raise SensorError(f"zeus: {' '.join(str(error).split())}") from error

    return Sensor(name=name, domain=domain, ask=ask, counter=counter, period_s=0.05)


def _zeus_gpu(devices: Any, device: Device) -> Iterator[Sensor]:
    if not device.is_cuda:
        return
    index, gpus = device.index or 0, devices.get_gpus()  # zeus numbers GPUs as the framework does
    counter = bool(gpus.supports_get_total_energy_consumption(index))
    ask = gpus.get_total_energy_consumption if counter else gpus.get_instant_power_usage
    yield _zeus_sensor(f"zeus cuda:{index}", "gpu", partial(ask, index), counter=counter)


def _zeus_daemon(devices: Any, device: Device) -> Iterator[Sensor]:
    """RAPL without root, where someone runs zeusd."""
    if not any(os.environ.get(name) for name in _ZEUS_DAEMON):
        return
    cpus = devices.get_cpus()

    def package_mj(index: int) -> Any:
        return cpus.get_total_energy_consumption(index).cpu_mj

    for index in range(len(cpus)):
        yield _zeus_sensor(f"zeusd package-{index}", "cpu", partial(package_mj, index))


def _zeus_apple(devices: Any, device: Device) -> Iterator[Sensor]:
    if sys.platform != "darwin":
        return
    chip = devices.get_soc()

    def chip_mj(field: str) -> Any:
        return getattr(chip.get_total_energy_consumption(), field)

    fields: tuple[tuple[Domain, str], ...] = (("cpu", "cpu_total_mj"), ("gpu", "gpu_mj"))
    for domain, field in fields:
        if field in chip.get_available_metrics():
            yield _zeus_sensor(f"zeus Apple silicon {domain}", domain, partial(chip_mj, field))
