"""The power chip of a Raspberry Pi 5, by `vcgencmd pmic_read_adc`: volts times amperes over its rails."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from shutil import which
from typing import Literal

from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors.base import Found, Reading, stamped

_LINE = re.compile(r"(\w+)_([AV]) (?:current|volt)\(\d+\)=([\d.]+)\s*[AV]")
_TIMEOUT_S = 5

Ask = Callable[[], str]


class RaspberrySensor:
    """The sum over all rails that have both a voltage and a current."""

    name = "Raspberry Pi PMIC"
    domain: Literal["system"] = "system"
    whole = True
    counter = False
    period_s = 0.1

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def read(self) -> Reading:
        """Watts now."""
        at_s, power_w = stamped(lambda: rails_watts(self._ask()))
        return Reading(at_s=at_s, power_w=power_w)

    def close(self) -> None:
        """Nothing is held open."""


def rails_watts(text: str) -> float:
    """Watts in the text that `vcgencmd pmic_read_adc` prints; SensorError when no rail has volts and amperes."""
    found: dict[str, dict[str, float]] = {"A": {}, "V": {}}
    for rail, kind, value in _LINE.findall(text):
        found[kind][rail] = float(value)
    rails = found["A"].keys() & found["V"].keys()
    if not rails:
        raise SensorError(f"vcgencmd pmic_read_adc shows no rail: {' '.join(text.split())[:80] or 'no output'}")
    return sum(found["A"][rail] * found["V"][rail] for rail in sorted(rails))


def find(command: str = "vcgencmd") -> Found:
    """The board's own sensor, when the command is there and this board answers it."""
    path = which(command)
    if path is None:
        return Found(reason=f"{command} is not installed (not a Raspberry Pi)")
    sensor = RaspberrySensor(lambda: _run(path))
    try:
        sensor.read()
    except SensorError as error:
        return Found(reason=str(error))
    return Found(sensors=(sensor,))


def _run(path: str) -> str:
    try:
        done = subprocess.run([path, "pmic_read_adc"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SensorError(f"vcgencmd pmic_read_adc: {error}") from error
    return done.stdout or done.stderr
