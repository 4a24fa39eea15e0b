"""RAPL through powercap: energy counters of processor packages, their DRAM, and the platform (psys)."""

from __future__ import annotations

import re
from pathlib import Path

from speechmeter.core.errors import SensorError
from speechmeter.core.machine import read_text
from speechmeter.meters.energy.sensors.base import Domain, Found, Reading, Sensor, stamped

ROOT = Path("/sys/class/powercap")
PERMIT = f"sudo chmod a+r {ROOT}/intel-rapl:*/energy_uj"
"""Lets everyone read the counters, until the next boot."""
_ZONE = re.compile(r"intel-rapl:\d+")
_SUBZONE = re.compile(r"intel-rapl:\d+:\d+")
_PERIOD_S = 0.05


class PowercapSensor:
    """One zone. The kernel's counter runs over at `max_energy_range_uj`; readings here go on rising."""

    counter = True
    period_s = _PERIOD_S

    def __init__(self, zone: Path, name: str, *, domain: Domain, whole: bool) -> None:
        self.name = name
        self.domain = domain
        self.whole = whole
        self._file = zone / "energy_uj"
        self._range_uj = int(read_text(str(zone / "max_energy_range_uj")) or 0)
        self._last_uj = self._read_uj()
        self._carried_uj = 0

    def read(self) -> Reading:
        """Joules since some moment in the past."""
        at_s, now_uj = stamped(self._read_uj)
        if now_uj < self._last_uj:
            self._carry()
        self._last_uj = now_uj
        return Reading(at_s=at_s, energy_j=(self._carried_uj + now_uj) / 1e6)

    def close(self) -> None:
        """Nothing is held open."""

    def _carry(self) -> None:
        if not self._range_uj:
            raise SensorError(f"{self._file} fell and max_energy_range_uj is not known")
        self._carried_uj += self._range_uj

    def _read_uj(self) -> int:
        try:
            return int(self._file.read_text())
        except PermissionError as error:
            raise SensorError(f"{self._file} is root's alone: {PERMIT}") from error
        except (OSError, ValueError) as error:
            raise SensorError(f"{self._file} cannot be read: {error}") from error


def find(root: Path = ROOT) -> Found:
    """Packages and psys, and DRAM as rows of their own. `core` and `uncore` are inside the package: left out."""
    if not root.is_dir():
        return Found(reason=f"{root} is missing (a virtual machine, or no RAPL)")
    zones = sorted(path for path in root.iterdir() if _ZONE.fullmatch(path.name))
    if not zones:
        return Found(reason=f"{root} has no intel-rapl zone")
    try:
        return Found(sensors=tuple(sensor for zone in zones for sensor in _sensors(zone)))
    except SensorError as error:
        return Found(reason=str(error))


def _sensors(zone: Path) -> list[Sensor]:
    label = read_text(str(zone / "name")) or zone.name
    domain: Domain = "system" if label == "psys" else "cpu"
    whole = domain == "system" or label.startswith("package")
    subzones = sorted(path for path in zone.iterdir() if _SUBZONE.fullmatch(path.name))
    return [
        PowercapSensor(zone, f"powercap {label}", domain=domain, whole=whole),
        *(
            PowercapSensor(subzone, f"powercap {label} dram", domain="cpu", whole=False)
            for subzone in subzones
            if read_text(str(subzone / "name")) == "dram"
        ),
    ]
