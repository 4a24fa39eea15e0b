"""What went on beside a measurement: other processes, throttled clocks, the state of the GPU.

Each warning names the cause and the fix.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.core.machine import available_cores, read_text
from speechmeter.core.process_tree import started_cpu_seconds
from speechmeter.core.types import Measurement
from speechmeter.meters.nvml_device import device_handle, load_nvml

_BUSY = 0.10
_SHORTEST_S = 0.3
"""The kernel counts in hundredths of a second: a shorter window says nothing."""
_GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
_STEADY_GOVERNORS = ("performance", None)


@dataclass(frozen=True, kw_only=True)
class Watch:
    """The state of the machine at one moment: CPU time of this process, of what it started, and of the cores."""

    at_s: float
    own_s: float
    started_s: float = 0.0
    busy_s: float
    throttled: int

    @classmethod
    def now(cls, processes: Sequence[int] = ()) -> Watch:
        """Read the clocks. `processes` are those of a server that somebody else started: what is measured, too."""
        times, started = os.times(), started_cpu_seconds(processes)
        files = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
        throttled = sum(int(read_text(str(file)) or 0) for file in files)
        return cls(
            at_s=monotonic(), own_s=times.user + times.system, started_s=started,
            busy_s=_busy_s(available_cores()), throttled=throttled,
        )  # fmt: skip


def disturbances(before: Watch, after: Watch) -> tuple[list[Measurement], list[str]]:
    """The share of the case's cores that others used meanwhile, what the model's processes used, and warnings."""
    cores = len(available_cores())
    window_s = after.at_s - before.at_s
    found: list[Measurement] = []
    warnings: list[str] = []
    if window_s >= _SHORTEST_S and after.busy_s > 0:
        started_s = max(0.0, after.started_s - before.started_s)
        used_s = after.own_s - before.own_s + started_s
        others = max(0.0, (after.busy_s - before.busy_s) - used_s) / (window_s * cores)
        found.append(Measurement.of(metrics.OTHER_BUSY, [round(others, 4)], source="/proc/stat"))
        if started_s:
            found.append(Measurement.of(metrics.CPU_STARTED, [round(started_s / window_s, 4)], source="/proc"))
        if others > _BUSY:
            warnings.append(f"other processes were busy: they used {others:.0%} of the cores; close them, or wait")
    if after.throttled > before.throttled:
        warnings.append("the processor's clock was throttled by heat; improve the cooling, or use fewer cores")
    if (governor := read_text(_GOVERNOR)) not in _STEADY_GOVERNORS:
        warnings.append(
            f"the clock governor is {governor}: the speed follows the load; run: cpupower frequency-set -g performance"
        )
    return found, warnings


def _busy_s(cores: Sequence[int]) -> float:
    """Seconds that the given cores have been in use since the machine started; 0 where the kernel does not say."""
    ticks = 0
    for line in (read_text("/proc/stat") or "").splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in fields[:7])
            ticks += user + nice + system + irq + softirq
    return ticks / os.sysconf("SC_CLK_TCK")


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
    """Looks at one device between the meters, by NVML: its clock, its temperature, and what holds the clock back.

    `ask` makes a look; None where the device cannot be asked."""

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

        def look(when: str) -> Look:
            return Look(
                when=when,
                clock_mhz=float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
                temperature_c=float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
                reasons=int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
            )

        return cls(ask=look)

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
            f"the GPU lowered its clock rate ({cause}); let it cool, or set a fixed clock rate"
            for cause in self.causes()
        ]
