"""What else went on while a case was measured: other processes, throttled clocks. Each warning names cause and fix."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from speechmeter.core import metrics
from speechmeter.core.machine import available_cores, read_text
from speechmeter.core.types import Measurement

_BUSY = 0.10
_SHORTEST_S = 0.3
"""The kernel counts in hundredths of a second: a shorter window says nothing."""
_GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
_STEADY_GOVERNORS = ("performance", None)


@dataclass(frozen=True, kw_only=True)
class Watch:
    """The state of the machine at one moment."""

    at_s: float
    own_s: float
    busy_s: float
    throttled: int

    @classmethod
    def now(cls) -> Watch:
        """Read the clocks."""
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        return cls(at_s=monotonic(), own_s=own, busy_s=_busy_s(available_cores()), throttled=_throttle_count())


def disturbances(before: Watch, after: Watch) -> tuple[list[Measurement], list[str]]:
    """The share of the case's cores that others used meanwhile, and warnings."""
    cores = len(available_cores())
    window_s = after.at_s - before.at_s
    found: list[Measurement] = []
    warnings: list[str] = []
    if window_s >= _SHORTEST_S and after.busy_s > 0:
        others = max(0.0, (after.busy_s - before.busy_s) - (after.own_s - before.own_s)) / (window_s * cores)
        found.append(Measurement.of(metrics.OTHER_BUSY, [round(others, 4)], source="/proc/stat"))
        if others > _BUSY:
            warnings.append(f"another process was busy: {others:.0%} of the cores were in use; close it, or wait")
    if after.throttled > before.throttled:
        warnings.append("the processor's clock was throttled by heat; improve cooling, or limit cores")
    if (governor := read_text(_GOVERNOR)) not in _STEADY_GOVERNORS:
        warnings.append(f"the clock governor is {governor}: speed follows load; cpupower frequency-set -g performance")
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


def _throttle_count() -> int:
    files = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    return sum(int(read_text(str(file)) or 0) for file in files)
