"""Power logs of external meters: read them, and integrate watts between two moments. Standard library only.

Two formats. A CSV with the header `time_s,watts`, times in seconds since the Unix epoch, in order; and the CSV report
of powertop, which holds one mean and its starting time.
"""

from __future__ import annotations

import csv
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isfinite
from pathlib import Path
from statistics import median

from speechmeter.core.errors import SensorError

HEADER = ("time_s", "watts")
_PREFIXES = {"": 1.0, "u": 1e-6, "m": 1e-3, "k": 1e3}
_NUMBER = r"""[\s,;"]*([\d.]+)\s*([umk]?)\s*"""
_DISCHARGE = re.compile(r"discharge rate of:" + _NUMBER + "W")
_CONSUMED = re.compile(r"energy consumed was :" + _NUMBER + "J")
_RAN_AT = re.compile(r"ran at (\w{3} +\w{3} +\d+ [\d:]{8} \d{4})")


@dataclass(frozen=True, kw_only=True)
class PowerLog:
    """Watts over time: `times_s` are seconds since the Unix epoch, in rising order."""

    name: str
    times_s: tuple[float, ...]
    watts: tuple[float, ...]

    @property
    def interval_s(self) -> float | None:
        """The usual time between two samples; None below two samples."""
        gaps = [after - before for before, after in pairwise(self.times_s)]
        return median(gaps) if gaps else None

    def covers(self, end_s: float) -> bool:
        """Whether the log reaches that moment."""
        return bool(self.times_s) and self.times_s[-1] >= end_s

    def energy_j(self, start_s: float, end_s: float) -> float:
        """Joules between two epoch times: trapezoids, cut at both ends by linear interpolation.

        Raises SensorError when the log does not cover the window, or has a hole in it that is longer than the window.
        """
        self._check(start_s, end_s)
        first, last = bisect_right(self.times_s, start_s), bisect_left(self.times_s, end_s)
        times = [start_s, *self.times_s[first:last], end_s]
        watts = [self._watts_at(start_s), *self.watts[first:last], self._watts_at(end_s)]
        return trapezoid(times, watts)

    def _check(self, start_s: float, end_s: float) -> None:
        if end_s <= start_s:
            raise ValueError("a window ends after it starts")
        if not self.times_s:
            raise SensorError(f"{self.name} holds no sample")
        if self.times_s[0] > start_s or self.times_s[-1] < end_s:
            raise SensorError(
                f"{self.name} covers {self.times_s[0]:.1f} to {self.times_s[-1]:.1f}, "
                f"the window is {start_s:.1f} to {end_s:.1f} (Unix time): log during the whole run, "
                "with both clocks set"
            )
        first, last = bisect_right(self.times_s, start_s) - 1, bisect_left(self.times_s, end_s) + 1
        hole_s = max((after - before for before, after in pairwise(self.times_s[first:last])), default=0.0)
        if hole_s > end_s - start_s:
            raise SensorError(
                f"{self.name} has a hole of {hole_s:.1f} s, the window is {end_s - start_s:.1f} s: log more often"
            )

    def _watts_at(self, moment_s: float) -> float:
        after = bisect_left(self.times_s, moment_s)
        if self.times_s[after] == moment_s:
            return self.watts[after]
        left_s, right_s = self.times_s[after - 1], self.times_s[after]
        share = (moment_s - left_s) / (right_s - left_s)
        return self.watts[after - 1] + share * (self.watts[after] - self.watts[after - 1])


def trapezoid(times_s: Sequence[float], watts: Sequence[float]) -> float:
    """Joules under a line through (time, watts) points; 0 below two points."""
    steps = zip(pairwise(times_s), pairwise(watts), strict=True)
    return sum((t1 - t0) * (w0 + w1) / 2 for (t0, t1), (w0, w1) in steps)


def read_log(path: str | Path) -> PowerLog:
    """The log in a file, which may still be growing. SensorError when it is missing or not a power log."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SensorError(f"power log {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return parse_log(text, name=f"power log {path}")


def parse_log(text: str, *, name: str) -> PowerLog:
    """A log from its text, either format. A last line without its end is left out: it may be half a number."""
    if "PowerTOP" in text:
        return _from_powertop(text, name)
    whole = text[: text.rfind("\n") + 1].splitlines()
    if not whole or tuple(cell.strip() for cell in whole[0].split(",")) != HEADER:
        raise SensorError(f"{name} is not a power log: its first line must be {','.join(HEADER)}")
    rows = [_row(cells, f"{name}, line {line}") for line, cells in enumerate(csv.reader(whole[1:]), 2) if cells]
    for (before_s, _), (after_s, _) in pairwise(rows):
        if after_s <= before_s:
            raise SensorError(f"{name} goes back in time at {after_s:.3f}: times must rise")
    return PowerLog(name=name, times_s=tuple(t for t, _ in rows), watts=tuple(w for _, w in rows))


def _row(cells: Sequence[str], where: str) -> tuple[float, float]:
    try:
        time_s, watts = map(float, cells)
    except ValueError as error:
        raise SensorError(f"{where}: two numbers are needed, not {','.join(cells)!r}") from error
    if not (isfinite(time_s) and isfinite(watts)):
        raise SensorError(f"{where}: {','.join(cells)!r} is not a finite number")
    return time_s, watts


def powertop_watts(text: str) -> float:
    """The discharge rate in a powertop CSV report; SensorError when the report has none."""
    return _quantity(_DISCHARGE, text, "watts (powertop prints them on a battery that discharges)")


def _from_powertop(text: str, name: str) -> PowerLog:
    """One mean from its start on. powertop writes no duration: it is the energy divided by the power."""
    watts, energy_j = powertop_watts(text), _quantity(_CONSUMED, text, "energy")
    start_s, duration_s = _ran_at_s(text), energy_j / watts
    steps = max(1, ceil(duration_s))
    times_s = tuple(start_s + duration_s * step / steps for step in range(steps + 1))
    return PowerLog(name=name, times_s=times_s, watts=(watts,) * len(times_s))


def _quantity(pattern: re.Pattern[str], text: str, what: str) -> float:
    match = pattern.search(text)
    value = float(match[1]) * _PREFIXES[match[2]] if match else 0.0
    if value <= 0:
        raise SensorError(f"the powertop report holds no {what}")
    return value


def _ran_at_s(text: str) -> float:
    match = _RAN_AT.search(text)
    if match is None:
        raise SensorError("the powertop report does not say when it ran")
    return time.mktime(time.strptime(match[1], "%a %b %d %H:%M:%S %Y"))
