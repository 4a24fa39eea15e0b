"""Readings over time, and the energy between two moments of them: of a sensor, or of the log of an external meter.

A counter that ticks is trusted at its ticks alone: between two ticks it says nothing new, so a start/stop reading
errs by up to one tick of power at either end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Protocol

from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.power_log import read_log
from speechmeter.meters.energy.sensors import Reading, Sensor

LOG_PATIENCE_S = 5.0
"""How long a log may lag behind the end of a window."""
_LOOK_EVERY_S = 0.25
_USUAL_INTERVAL_S = 1.0

Knot = tuple[float, float]
"""A moment in seconds, and the joules until then."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Joules between two moments of the monotonic clock."""

    start_s: float
    end_s: float
    energy_j: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_s - self.start_s

    @property
    def mean_w(self) -> float:
        """Its mean power."""
        return self.energy_j / self.seconds


class Track(Protocol):
    """Something that knows the energy of a past window."""

    @property
    def name(self) -> str:
        """For records."""
        ...

    @property
    def period_s(self) -> float:
        """Time between two readings."""
        ...

    def energy(self, start_s: float, end_s: float) -> Span:
        """The longest span inside the window that it can vouch for; SensorError when there is none."""
        ...


@dataclass(kw_only=True)
class SensorTrack:
    """The readings of one sensor, and why it failed if it did."""

    sensor: Sensor
    readings: list[Reading] = field(default_factory=list)
    failure: str = ""

    @property
    def name(self) -> str:
        """The sensor's."""
        return self.sensor.name

    @property
    def period_s(self) -> float:
        """The sensor's."""
        return self.sensor.period_s

    def poll(self) -> bool:
        """Take one reading; False, and the reason kept, when the sensor fails."""
        try:
            self.readings.append(self.sensor.read())
        except Exception as error:  # in a thread of its own nobody else would see it
            self.failure = str(error) if isinstance(error, SensorError) else f"{type(error).__name__}: {error}"
        return not self.failure

    def energy(self, start_s: float, end_s: float) -> Span:
        """From the first knot at or after the start to the last one at or before the end."""
        if self.failure:
            raise SensorError(f"{self.name} failed: {self.failure}")
        curve = counter_knots(self.readings) if self.sensor.counter else power_knots(self.readings)
        inside = [knot for knot in curve if start_s <= knot[0] <= end_s]
        if len(inside) < 2:
            what = "the energy counter did not change" if self.sensor.counter else "too few readings"
            raise SensorError(f"{self.name}: {what} in {end_s - start_s:.1f} s")
        (first_s, first_j), (last_s, last_j) = inside[0], inside[-1]
        if last_j < first_j:
            raise SensorError(f"{self.name}: the energy counter decreased, so there is no energy for this window")
        return Span(start_s=first_s, end_s=last_s, energy_j=last_j - first_j)


def counter_knots(readings: Sequence[Reading]) -> list[Knot]:
    """Where a counter moved: its ticks.

    A tick lies between two readings, so it is put in their middle. A counter that moved at the reading before as well
    ticks faster than it is read, and then the reading itself is the best knowledge.
    """
    knots: list[Knot] = []
    moving = False
    for before, after in pairwise(readings):
        moved = after.energy_j != before.energy_j
        if moved and after.energy_j is not None:
            knots.append((after.at_s if moving else (before.at_s + after.at_s) / 2, after.energy_j))
        moving = moved
    return knots


def power_knots(readings: Sequence[Reading]) -> list[Knot]:
    """Joules since the first reading, by trapezoids over the watts."""
    knots: list[Knot] = []
    total_j, last_s, last_w = 0.0, 0.0, 0.0
    for reading in readings:
        if reading.power_w is None:
            continue
        if knots:
            total_j += (reading.at_s - last_s) * (reading.power_w + last_w) / 2
        last_s, last_w = reading.at_s, reading.power_w
        knots.append((last_s, total_j))
    return knots


@contextmanager
def watching(tracks: Sequence[SensorTrack]) -> Iterator[None]:
    """Poll every sensor at its period, each in a thread of its own: a slow one does not delay the others."""
    stop = Event()

    def watch(track: SensorTrack) -> None:
        begun_s = monotonic()
        while track.poll() and not stop.wait(max(0.0, begun_s + track.period_s - monotonic())):
            begun_s = monotonic()

    threads = [Thread(target=watch, args=(track,), name=track.name, daemon=True) for track in tracks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


class LogTrack:
    """The log of an external meter: a growing CSV, or the files that powertop adds. Read once it covers the window.

    `epoch_s` turns the meter's clock into Unix time.
    """

    def __init__(self, path: str | Path, *, epoch_s: Callable[[float], float], sleep: Callable[[float], None]) -> None:
        self._path = path
        self._epoch_s = epoch_s
        self._sleep = sleep
        log = read_log(path)
        self.name = log.source
        self.period_s = log.interval_s or _USUAL_INTERVAL_S

    def energy(self, start_s: float, end_s: float) -> Span:
        """The whole window, between samples by interpolation; SensorError when the log does not cover it."""
        start, end = self._epoch_s(start_s), self._epoch_s(end_s)
        log = read_log(self._path)
        for _ in range(round((LOG_PATIENCE_S + self.period_s) / _LOOK_EVERY_S)):
            if log.covers(end):
                break
            self._sleep(_LOOK_EVERY_S)
            log = read_log(self._path)
        return Span(start_s=start_s, end_s=end_s, energy_j=log.energy_j(start, end))
