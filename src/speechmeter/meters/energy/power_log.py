"""Power logs of external meters: read them, and integrate watts between two moments. Standard library only.

Two formats. A CSV with the header `time_s,watts`, times in seconds since the Unix epoch, in order; and the reports of
`powertop --csv=NAME --iteration=N`, one file a measurement.
"""

from __future__ import annotations

import csv
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import fmean, median
from typing import ClassVar

from speechmeter.core.errors import InputError, SensorError
from speechmeter.core.files import MIB, read_text

HEADER = ("time_s", "watts")
LARGEST_LOG = 256 * MIB
"""A day at a hundred samples a second."""
_STAMP_S = 1.0
"""powertop writes times in whole seconds: what it did at a stamp happened within so long after it."""
_LEAST_REPORTS = 2
_RECENT = 10
"""Files before these may be of an earlier powertop, with another --time."""
_PREFIXES = {"": 1.0, "u": 1e-6, "m": 1e-3, "k": 1e3}
_DISCHARGE = re.compile(r"""discharge rate of:[\s,;"]*([\d.]+)\s*([umk]?)\s*W""")
_STAMPED = re.compile(r"(.*)-(\d{8}-\d{6})$", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class PowerLog:
    """Watts over time: `times_s` are seconds since the Unix epoch, in rising order."""

    name: str
    times_s: tuple[float, ...]
    watts: tuple[float, ...]
    source: ClassVar[str] = "power log"
    """What it is called in records."""

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
            raise ValueError("the end of a time window must be after its start")
        if not self.times_s:
            raise SensorError(f"{self.name} contains no reading")
        if self.times_s[0] > start_s or self.times_s[-1] < end_s:
            raise SensorError(
                f"{self.name} covers {self.times_s[0]:.1f} to {self.times_s[-1]:.1f}, "
                f"the window is {start_s:.1f} to {end_s:.1f} (Unix time): log during the whole run, "
                "with synchronised clocks"
            )
        first, last = bisect_right(self.times_s, start_s) - 1, bisect_left(self.times_s, end_s) + 1
        hole_s = max((after - before for before, after in pairwise(self.times_s[first:last])), default=0.0)
        if hole_s > end_s - start_s:
            raise SensorError(
                f"{self.name} has a gap of {hole_s:.1f} s, but a window lasts {end_s - start_s:.1f} s: log more often"
            )

    def _watts_at(self, moment_s: float) -> float:
        after = bisect_left(self.times_s, moment_s)
        if self.times_s[after] == moment_s:
            return self.watts[after]
        left_s, right_s = self.times_s[after - 1], self.times_s[after]
        share = (moment_s - left_s) / (right_s - left_s)
        return self.watts[after - 1] + share * (self.watts[after] - self.watts[after - 1])


@dataclass(frozen=True, kw_only=True)
class PowertopLog:
    """Reports of powertop, each a file whose name ends in the moment its measurement began: `starts_s`, Unix time.

    A report holds no time of its end. powertop opens the next file right after it, so a measurement lasted until the
    stamp of the next one; the last file is never used. The watts are the battery's rate when the measurement ended.
    The energy that powertop prints is no help: it multiplies the time by the rate of the measurement before
    (measurement_manager.cpp, sysfs.cpp), so energy divided by power is not its duration.
    """

    name: str
    starts_s: tuple[float, ...]
    files: tuple[Path, ...]
    source: ClassVar[str] = "powertop reports"

    @property
    def interval_s(self) -> float | None:
        """The usual time from one measurement to the next, of the last ones; None below two files."""
        gaps = [after - before for before, after in pairwise(self.starts_s[-_RECENT:])]
        return median(gaps) if gaps else None

    def covers(self, end_s: float) -> bool:
        """Whether every measurement that ended before that moment has been written."""
        return self.starts_s[-1] + _STAMP_S >= end_s

    def energy_j(self, start_s: float, end_s: float) -> float:
        """Joules between two epoch times: mean watts of the measurements that lie inside them, times the seconds.

        Raises SensorError when fewer than two lie inside, or when a report holds no watts.
        """
        inside = [
            file
            for file, begun_s, next_s in zip(self.files, self.starts_s, self.starts_s[1:], strict=False)
            if start_s <= begun_s and next_s + _STAMP_S <= end_s
        ]
        if len(inside) < _LEAST_REPORTS:
            raise SensorError(
                f"{self.name}: {len(inside)} of {len(self.files)} measurements lie inside the window "
                f"{_clock(start_s)} to {_clock(end_s)}, {_LEAST_REPORTS} are needed; they began between "
                f"{_clock(self.starts_s[0])} and {_clock(self.starts_s[-1])} (local time): start powertop before the "
                "run, with --time=1 and an --iteration that lasts until its end"
            )
        return fmean(map(_report_watts, inside)) * (end_s - start_s)


Log = PowerLog | PowertopLog


def trapezoid(times_s: Sequence[float], watts: Sequence[float]) -> float:
    """Joules under a line through (time, watts) points; 0 below two points."""
    steps = zip(pairwise(times_s), pairwise(watts), strict=True)
    return sum((t1 - t0) * (w0 + w1) / 2 for (t0, t1), (w0, w1) in steps)


def read_log(path: str | Path) -> Log:
    """The log in a file, which may still be growing, or the reports of powertop whose `--csv` this name was.

    SensorError when there is no such file, or it is not a power log.
    """
    reports = _reports(Path(path))
    if reports is not None:
        return reports
    return parse_log(_read(Path(path)), name=f"power log {path}")


def _read(path: Path) -> str:
    try:
        return read_text(path, LARGEST_LOG)
    except (OSError, UnicodeDecodeError) as error:
        raise SensorError(f"power log {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except InputError as error:
        raise SensorError(f"power log {path} cannot be read: {error.reason}") from error


def parse_log(text: str, *, name: str) -> PowerLog:
    """A log from its text. A last line without its end is left out: it may be half a number."""
    if "PowerTOP" in text or "P o w e r T O P" in text:
        raise SensorError(
            f"{name} is a single report of powertop. It says when its measurement began, but not when it ended, so its "
            "readings cannot be assigned to calls: run powertop with --iteration=N, which writes one file for each "
            "measurement, such as NAME-20261115-120047.csv. power_log=NAME.csv reads all of these files"
        )
    whole = text[: text.rfind("\n") + 1].splitlines()
    if not whole or tuple(cell.strip() for cell in whole[0].split(",")) != HEADER:
        raise SensorError(f"{name} is not a power log: its first line must be {','.join(HEADER)}")
    rows = [_row(cells, f"{name}, line {line}") for line, cells in enumerate(csv.reader(whole[1:]), 2) if cells]
    for (before_s, _), (after_s, _) in pairwise(rows):
        if after_s <= before_s:
            raise SensorError(
                f"{name} has times that decrease at {after_s:.3f}: the times must increase from line to line"
            )
    return PowerLog(name=name, times_s=tuple(t for t, _ in rows), watts=tuple(w for _, w in rows))


def _row(cells: Sequence[str], where: str) -> tuple[float, float]:
    try:
        time_s, watts = map(float, cells)
    except ValueError as error:
        raise SensorError(f"{where}: a line must hold two numbers, not {','.join(cells)!r}") from error
    if not (isfinite(time_s) and isfinite(watts)):
        raise SensorError(f"{where}: {','.join(cells)!r} is not a finite number")
    return time_s, watts


def powertop_watts(text: str) -> float:
    """The discharge rate in a powertop CSV report; SensorError when the report has none."""
    match = _DISCHARGE.search(text)
    value = float(match[1]) * _PREFIXES[match[2]] if match else 0.0
    if value <= 0:
        raise SensorError("the powertop report holds no watts (powertop prints them on a battery that discharges)")
    return value


def _report_watts(path: Path) -> float:
    try:
        return powertop_watts(_read(path))
    except SensorError as error:
        raise SensorError(f"{path}: {error}") from error


def _reports(path: Path) -> PowertopLog | None:
    """The files that powertop made of this name, or of the name that one of them came from; None where there is none.

    powertop writes NAME-YYYYmmdd-HHMMSS.csv for --csv=NAME.csv, in local time (report.cpp). SensorError when the last
    finished one holds no watts: then there is no need to wait for more.
    """
    own = _STAMPED.match(path.stem)
    base = own[1] if own else path.stem
    found: dict[float, Path] = {}
    for file in path.parent.glob(f"*{path.suffix}"):
        stamped = _STAMPED.match(file.stem)
        if stamped and stamped[1] == base and file.suffix == path.suffix:
            with suppress(ValueError, OverflowError):  # digits that are no date
                found[time.mktime(time.strptime(stamped[2], "%Y%m%d-%H%M%S"))] = file
    if not found:
        return None
    starts_s = sorted(found)
    if len(starts_s) > 1:
        _report_watts(found[starts_s[-2]])
    return PowertopLog(
        name=f"powertop reports {path.parent / base}-*{path.suffix}",
        starts_s=tuple(starts_s),
        files=tuple(found[start_s] for start_s in starts_s),
    )


def _clock(moment_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment_s))
