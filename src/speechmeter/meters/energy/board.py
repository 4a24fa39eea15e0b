"""Sensors of the machine itself: RAPL and INA monitors by files of the kernel, vcgencmd and powertop by commands."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from shutil import which

from speechmeter.core.errors import SensorError
from speechmeter.core.machine import read_text
from speechmeter.meters.energy.power_log import powertop_watts
from speechmeter.meters.energy.sensors import Domain, Found, Sensor

POWERCAP = Path("/sys/class/powercap")
PERMIT = f"sudo chmod a+r {POWERCAP}/intel-rapl:*/energy_uj"
"""Lets everyone read the counters, until the next boot."""
_ZONE = re.compile(r"intel-rapl:\d+")
_SUBZONE = re.compile(r"intel-rapl:\d+:\d+")

HWMON = Path("/sys/class/hwmon")
_CHANNEL = re.compile(r"(?:power(\d+)_input|in(\d+)_label)")
_NOT_A_RAIL = ("NC", "SUM OF SHUNT VOLTAGES")

_PMIC_LINE = re.compile(r"(\w+)_([AV]) (?:current|volt)\(\d+\)=([\d.]+)\s*[AV]")
_PMIC_TIMEOUT_S = 5

SUPPLIES = Path("/sys/class/power_supply")
_POWERTOP_SECONDS = 1
_POWERTOP_TIMEOUT_S = 30


def find_powercap(root: Path = POWERCAP) -> Found:
    """RAPL counters of packages and of the platform (psys), and of DRAM as rows of their own.

    `core` and `uncore` are inside the package, so they are left out.
    """
    if not root.is_dir():
        return Found(reason=f"{root} is missing (a virtual machine, or no RAPL)")
    zones = sorted(path for path in root.iterdir() if _ZONE.fullmatch(path.name))
    if not zones:
        return Found(reason=f"{root} has no intel-rapl zone")
    sensors: list[Sensor] = []
    try:
        for zone in zones:
            label = read_text(str(zone / "name")) or zone.name
            domain: Domain = "system" if label == "psys" else "cpu"
            whole = domain == "system" or label.startswith("package")
            sensors.append(_rapl_sensor(zone, f"powercap {label}", domain, whole=whole))
            subzones = sorted(path for path in zone.iterdir() if _SUBZONE.fullmatch(path.name))
            sensors += [
                _rapl_sensor(subzone, f"powercap {label} dram", "cpu", whole=False)
                for subzone in subzones
                if read_text(str(subzone / "name")) == "dram"
            ]
    except SensorError as error:
        return Found(reason=str(error))
    return Found(sensors=tuple(sensors))


def _rapl_sensor(zone: Path, name: str, domain: Domain, *, whole: bool) -> Sensor:
    return Sensor(name=name, domain=domain, ask=_RaplCounter(zone), counter=True, period_s=0.05, whole=whole)


class _RaplCounter:
    """Joules of one zone. The kernel's counter wraps at `max_energy_range_uj`; the values returned here keep rising."""

    def __init__(self, zone: Path) -> None:
        self._file = zone / "energy_uj"
        self._range_uj = int(read_text(str(zone / "max_energy_range_uj")) or 0)
        self._last_uj = self._read_uj()
        self._carried_uj = 0

    def __call__(self) -> float:
        now_uj = self._read_uj()
        if now_uj < self._last_uj:
            if not self._range_uj:
                raise SensorError(f"{self._file} started again from 0, and its range (max_energy_range_uj) is unknown")
            self._carried_uj += self._range_uj
        self._last_uj = now_uj
        return (self._carried_uj + now_uj) / 1e6

    def _read_uj(self) -> int:
        try:
            return int(self._file.read_text())
        except PermissionError as error:
            raise SensorError(f"only root can read {self._file}: run `{PERMIT}`") from error
        except (OSError, ValueError) as error:
            raise SensorError(f"{self._file} cannot be read: {error}") from error


def find_hwmon(root: Path = HWMON) -> Found:
    """Power of every labelled rail of every INA monitor (a chip whose name begins with `ina`), as on Jetson boards."""
    chips = sorted(path for path in root.glob("hwmon*") if (read_text(str(path / "name")) or "").startswith("ina"))
    if not chips:
        return Found(reason=f"{root} has no ina power monitor")
    rails: list[Sensor] = []
    for chip in chips:
        matches = [_CHANNEL.fullmatch(path.name) for path in chip.iterdir()]
        for channel in sorted({match[1] or match[2] for match in matches if match}, key=int):
            rail = _rail(chip, channel)
            try:
                if rail is not None:
                    rail.read()
                    rails.append(rail)
            except SensorError:
                continue
    return Found(sensors=tuple(rails), reason="" if rails else f"{chips[0]} has no labelled rail that can be read")


def _rail(chip: Path, channel: str) -> Sensor | None:
    """None for a channel that is no rail: the sum of shunts, one that is not connected, or one without a label."""
    direct = (chip / f"power{channel}_input").exists()
    product = (chip / f"in{channel}_input").exists() and (chip / f"curr{channel}_input").exists()
    # a chip with one rail may be labelled as a whole; shunt voltages (in4 to in6 of an ina3221) have no label
    names = [f"power{channel}_label", f"in{channel}_label", "label"] if direct else [f"in{channel}_label"]
    label = next((text for text in (read_text(str(chip / name)) for name in names) if text), None)
    if label is None or label.upper() in _NOT_A_RAIL or not (direct or product):
        return None
    domain, whole = domain_of(label)

    def power_w() -> float:
        if direct:
            return _number(chip / f"power{channel}_input") / 1e6
        return _number(chip / f"in{channel}_input") * _number(chip / f"curr{channel}_input") / 1e6  # mV × mA

    name = f"hwmon {read_text(str(chip / 'name'))} {label}"
    return Sensor(name=name, domain=domain, ask=power_w, counter=False, period_s=0.05, whole=whole)


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError) as error:
        raise SensorError(f"{file} cannot be read: {error}") from error


def domain_of(label: str) -> tuple[Domain, bool]:
    """(domain, whether it is the domain's total) by the words of a rail's label.

    A rail that feeds processor and GPU together belongs to neither: it is a side row of the system, like memory or I/O.
    """
    words = [word for word in re.split(r"[^A-Z0-9]+", label.upper()) if word]
    if words[-1:] == ["IN"] or words == ["VIN"]:
        return "system", True
    if ("GPU" in words) is not ("CPU" in words):
        return ("gpu" if "GPU" in words else "cpu"), True
    return "system", False


def find_vcgencmd(command: str = "vcgencmd") -> Found:
    """The power chip of a Raspberry Pi 5, where `vcgencmd pmic_read_adc` answers."""
    path = which(command)
    if path is None:
        return Found(reason=f"{command} is not installed (not a Raspberry Pi)")

    def power_w() -> float:
        call = [path, "pmic_read_adc"]
        try:
            done = subprocess.run(call, capture_output=True, text=True, timeout=_PMIC_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SensorError(f"vcgencmd pmic_read_adc: {error}") from error
        return rails_watts(done.stdout or done.stderr)

    sensor = Sensor(name="Raspberry Pi PMIC", domain="system", ask=power_w, counter=False, period_s=0.1)
    try:
        sensor.read()
    except SensorError as error:
        return Found(reason=str(error))
    return Found(sensors=(sensor,))


def rails_watts(text: str) -> float:
    """Volts times amperes, over all rails in the text that `vcgencmd pmic_read_adc` prints; SensorError without any."""
    found: dict[str, dict[str, float]] = {"A": {}, "V": {}}
    for rail, kind, value in _PMIC_LINE.findall(text):
        found[kind][rail] = float(value)
    rails = found["A"].keys() & found["V"].keys()
    if not rails:
        raise SensorError(f"vcgencmd pmic_read_adc shows no rail: {' '.join(text.split())[:80] or 'no output'}")
    return sum(found["A"][rail] * found["V"][rail] for rail in sorted(rails))


def find_powertop(command: str = "powertop", supplies: Path = SUPPLIES) -> Found:
    """powertop's discharge rate of a battery: needs root and a machine that runs from its battery."""
    path = which(command)
    if path is None:
        return Found(reason=f"{command} is not installed")
    if os.geteuid() != 0:
        return Found(reason="needs root")
    if not any(read_text(str(battery / "status")) == "Discharging" for battery in supplies.glob("*")):
        return Found(reason=f"no battery is discharging ({supplies})")
    # each reading is one run of powertop, which prepares for a second or more and then measures for one second
    ask = partial(battery_watts, path)
    sensor = Sensor(name="powertop", domain="system", ask=ask, counter=False, period_s=3.0, at_end=True)
    return Found(sensors=(sensor,))


def battery_watts(powertop: str) -> float:
    """The discharge rate in the report of one run of powertop."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "power.csv"
        command = [powertop, f"--csv={report}", f"--time={_POWERTOP_SECONDS}", "--quiet"]
        try:
            subprocess.run(command, capture_output=True, timeout=_POWERTOP_TIMEOUT_S, check=False, cwd=folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SensorError(f"powertop: {error}") from error
        if not report.exists():
            raise SensorError("powertop wrote no report")
        return powertop_watts(report.read_text(errors="replace"))
