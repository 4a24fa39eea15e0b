"""The GPU beside the passes: clock, temperature, and what holds the clock back, by NVML. Silent where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.core.types import Measurement
from speechmeter.meters.nvml_device import device_handle, load_nvml

_HARMFUL_REASONS = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}


@dataclass(frozen=True, kw_only=True)
class Look:
    """One look at the GPU, after the pass that `when` names."""

    when: str
    clock_mhz: float
    temperature_c: float
    reasons: int


@dataclass(kw_only=True)
class GpuState:
    """Looks at one device. `ask` makes a look; None where the device cannot be asked."""

    ask: Callable[[str], Look] | None
    looks: list[Look] = field(default_factory=list)

    @classmethod
    def of(cls, device: Device) -> GpuState:
        """The state of a CUDA device; for any other it stays empty."""
        if not device.is_cuda:
            return cls(ask=None)
        try:
            nvml = load_nvml()
            handle = device_handle(nvml, device)
        except SensorError:
            return cls(ask=None)
        return cls(ask=lambda when: _look(nvml, handle, when))

    def look(self, when: str) -> None:
        """Take the state now; a device that stops answering is not asked again."""
        if self.ask is None:
            return
        try:
            self.looks.append(self.ask(when))
        except Exception:  # an unknown call, a device that fell off the bus: the measuring goes on
            self.ask = None

    def measurements(self) -> list[Measurement]:
        """Clock and temperature at each look, the moments in the notes."""
        if not self.looks:
            return []
        notes = {"after": [look.when for look in self.looks]}
        clocks = [look.clock_mhz for look in self.looks]
        heat = [look.temperature_c for look in self.looks]
        return [
            Measurement.of(metrics.GPU_CLOCK, clocks, source="NVML", notes={**notes, "held back by": self.causes()}),
            Measurement.of(metrics.GPU_TEMPERATURE, heat, source="NVML", notes=notes),
        ]

    def causes(self) -> list[str]:
        """Why the clock was held back at any look."""
        seen = 0
        for look in self.looks:
            seen |= look.reasons
        return list(dict.fromkeys(text for bit, text in _HARMFUL_REASONS.items() if seen & bit))

    def warnings(self) -> list[str]:
        """One line for each cause."""
        return [
            f"the GPU's clock was held back ({cause}); let it cool, or set a fixed clock" for cause in self.causes()
        ]


def _look(nvml: Any, handle: Any, when: str) -> Look:
    return Look(
        when=when,
        clock_mhz=float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        temperature_c=float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        reasons=int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
    )
