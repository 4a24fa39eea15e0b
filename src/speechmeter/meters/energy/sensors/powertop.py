"""powertop's report of a battery's discharge rate: needs root and a machine that runs from its battery."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from shutil import which
from time import monotonic
from typing import Literal

from speechmeter.core.errors import SensorError
from speechmeter.core.machine import read_text
from speechmeter.core.power_log import powertop_watts
from speechmeter.meters.energy.sensors.base import Found, Reading

SUPPLIES = Path("/sys/class/power_supply")
_SECONDS = 1
_TIMEOUT_S = 30


class PowertopSensor:
    """Each reading is one run of powertop. It prepares for a second or more and then measures for one second."""

    name = "powertop"
    domain: Literal["system"] = "system"
    whole = True
    counter = False
    period_s = 3.0

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> Reading:
        """Watts at the end of the run."""
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "power.csv"
            self._run(report)
            return Reading(at_s=monotonic(), power_w=powertop_watts(report.read_text(errors="replace")))

    def close(self) -> None:
        """Nothing is held open."""

    def _run(self, report: Path) -> None:
        command = [self._path, f"--csv={report}", f"--time={_SECONDS}", "--quiet"]
        try:
            subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False, cwd=report.parent)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SensorError(f"powertop: {error}") from error
        if not report.exists():
            raise SensorError("powertop wrote no report")


def find(command: str = "powertop", supplies: Path = SUPPLIES) -> Found:
    """powertop, where it would have watts to tell."""
    path = which(command)
    if path is None:
        return Found(reason=f"{command} is not installed")
    if os.geteuid() != 0:
        return Found(reason="needs root")
    if not any(read_text(str(battery / "status")) == "Discharging" for battery in supplies.glob("*")):
        return Found(reason=f"no battery discharges ({supplies})")
    return Found(sensors=(PowertopSensor(path),))
