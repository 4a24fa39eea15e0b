"""INA current monitors through hwmon, as on Jetson boards: power of each labelled rail."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from speechmeter.core.errors import SensorError
from speechmeter.core.machine import read_text
from speechmeter.meters.energy.sensors.base import Domain, Found, Reading, stamped

ROOT = Path("/sys/class/hwmon")
_CHANNEL = re.compile(r"(?:power(\d+)_input|in(\d+)_label)")
_NOT_A_RAIL = ("NC", "SUM OF SHUNT VOLTAGES")


@dataclass(frozen=True, kw_only=True)
class RailSensor:
    """One rail: `power_input` in microwatts, or volts × amperes from `in_input` (mV) and `curr_input` (mA)."""

    name: str
    domain: Domain
    whole: bool
    chip: Path
    channel: str
    direct: bool
    counter: bool = False
    period_s: float = 0.05

    def read(self) -> Reading:
        """Watts now."""
        at_s, power_w = stamped(self._power_w)
        return Reading(at_s=at_s, power_w=power_w)

    def close(self) -> None:
        """Nothing is held open."""

    def _power_w(self) -> float:
        if self.direct:
            return self._number("power") / 1e6
        return self._number("in") * self._number("curr") / 1e6

    def _number(self, kind: str) -> int:
        file = self.chip / f"{kind}{self.channel}_input"
        try:
            return int(file.read_text())
        except (OSError, ValueError) as error:
            raise SensorError(f"{file} cannot be read: {error}") from error


def find(root: Path = ROOT) -> Found:
    """Every labelled rail of every chip whose name begins with `ina`."""
    chips = sorted(path for path in root.glob("hwmon*") if (read_text(str(path / "name")) or "").startswith("ina"))
    if not chips:
        return Found(reason=f"{root} has no ina power monitor")
    rails = tuple(rail for chip in chips for rail in _rails(chip))
    return Found(sensors=rails, reason="" if rails else f"{chips[0]} has no labelled rail that can be read")


def _rails(chip: Path) -> list[RailSensor]:
    matches = [_CHANNEL.fullmatch(path.name) for path in chip.iterdir()]
    channels = sorted({match[1] or match[2] for match in matches if match}, key=int)
    rails = [_rail(chip, channel) for channel in channels]
    return [rail for rail in rails if rail is not None and _answers(rail)]


def _rail(chip: Path, channel: str) -> RailSensor | None:
    """None for a channel that is no rail: the sum of shunts, one that is not connected, or one without a label."""
    direct = (chip / f"power{channel}_input").exists()
    label = _label(chip, channel, direct)
    product = (chip / f"in{channel}_input").exists() and (chip / f"curr{channel}_input").exists()
    if label is None or label.upper() in _NOT_A_RAIL or not (direct or product):
        return None
    domain, whole = domain_of(label)
    name = f"hwmon {read_text(str(chip / 'name'))} {label}"
    return RailSensor(name=name, domain=domain, whole=whole, chip=chip, channel=channel, direct=direct)


def _label(chip: Path, channel: str, direct: bool) -> str | None:
    """A chip with one rail may be labelled as a whole; shunt voltages (in4 to in6 of an ina3221) have no label."""
    names = [f"power{channel}_label", f"in{channel}_label", "label"] if direct else [f"in{channel}_label"]
    return next((text for text in (read_text(str(chip / name)) for name in names) if text), None)


def _answers(rail: RailSensor) -> bool:
    try:
        rail.read()
    except SensorError:
        return False
    return True


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
