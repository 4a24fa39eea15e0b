"""What the zeus package reads beyond our own sensors: AMD GPUs, Apple silicon, and RAPL through its daemon.

Written against zeus 0.16: `zeus.device` gives objects whose counters are in millijoules and whose power is in
milliwatts. Its Jetson and plain RAPL readers start processes of their own, and we read those sensors ourselves, so
they are not asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors.base import Domain, Found, Reading, stamped

_DAEMON = ("ZEUSD_SOCK_PATH", "ZEUSD_HOST_PORT")


@dataclass(frozen=True, kw_only=True)
class ZeusSensor:
    """One number of zeus: `ask` returns thousandths of a joule or of a watt."""

    name: str
    domain: Domain
    ask: Callable[[], float]
    counter: bool
    whole: bool = True
    period_s: float = 0.05

    def read(self) -> Reading:
        """Joules or watts; whatever zeus raises becomes a SensorError."""
        try:
            at_s, thousandths = stamped(self.ask)
        except Exception as error:  # zeus has one exception class for each vendor's error code
            raise SensorError(f"zeus: {' '.join(str(error).split())}") from error
        if self.counter:
            return Reading(at_s=at_s, energy_j=thousandths / 1e3)
        return Reading(at_s=at_s, power_w=thousandths / 1e3)

    def close(self) -> None:
        """zeus keeps its objects until the process ends."""


def find(device: Device) -> Found:
    """Everything that zeus can read here for a case on that device."""
    if find_spec("zeus") is None:
        return Found(reason="zeus is not installed: pip install 'speechmeter[zeus]'")
    try:
        devices = import_module("zeus.device")
    except Exception as error:  # its vendor libraries fail in their own ways
        return Found(reason=f"zeus cannot be imported: {error}")
    sensors: list[ZeusSensor] = []
    reasons: list[str] = []
    for look in (_gpu, _daemon, _apple):
        try:
            sensors += look(devices, device)
        except Exception as error:
            reasons.append(" ".join(str(error).split()))
    return Found(sensors=tuple(sensors), reason="" if sensors else "; ".join(reasons) or "zeus finds no sensor")


def _gpu(devices: Any, device: Device) -> Iterator[ZeusSensor]:
    """zeus numbers GPUs as the framework does."""
    if not device.is_cuda:
        return
    index, gpus = device.index or 0, devices.get_gpus()
    counter = bool(gpus.supports_get_total_energy_consumption(index))
    ask = gpus.get_total_energy_consumption if counter else gpus.get_instant_power_usage
    yield ZeusSensor(name=f"zeus cuda:{index}", domain="gpu", ask=lambda: float(ask(index)), counter=counter)


def _daemon(devices: Any, device: Device) -> Iterator[ZeusSensor]:
    """RAPL without root, where someone runs zeusd."""
    if not any(os.environ.get(name) for name in _DAEMON):
        return
    cpus = devices.get_cpus()
    for index in range(len(cpus)):
        ask = partial(_package_mj, cpus, index)
        yield ZeusSensor(name=f"zeusd package-{index}", domain="cpu", ask=ask, counter=True)


def _package_mj(cpus: Any, index: int) -> float:
    return float(cpus.get_total_energy_consumption(index).cpu_mj)


def _apple(devices: Any, device: Device) -> Iterator[ZeusSensor]:
    if sys.platform != "darwin":
        return
    chip = devices.get_soc()
    fields: tuple[tuple[Domain, str], ...] = (("cpu", "cpu_total_mj"), ("gpu", "gpu_mj"))
    for domain, field in fields:
        if field in chip.get_available_metrics():
            ask = partial(_chip_mj, chip, field)
            yield ZeusSensor(name=f"zeus Apple silicon {domain}", domain=domain, ask=ask, counter=True)


def _chip_mj(chip: Any, field: str) -> float:
    return float(getattr(chip.get_total_energy_consumption(), field))
