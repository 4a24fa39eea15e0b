"""Energy of a call by hardware sensors, tick to tick, gross and with idle subtracted. No sensor, no figure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from speechmeter.core.errors import SensorError
from speechmeter.core.live import Live
from speechmeter.core.protocols import Meter, Session
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.energy import board, libraries
from speechmeter.meters.energy.figures import METRICS, Run, domain_figures, run_load, side_rows
from speechmeter.meters.energy.power_log import read_log
from speechmeter.meters.energy.sensors import Choice, Domain, Source, choose, domains_of
from speechmeter.meters.energy.tracks import LogTrack, SensorTrack, Track, watching

WINDOW_S = 2.0
"""Seconds between the first and the last tick of a window."""
REST_S = 1.0
"""A device that was just busy draws more than an idle one: wait before idle is read."""
_MARGIN_S = 0.25
"""Ticks come every 0.1 s or faster, so this much is lost at most by starting and ending on one."""
_READINGS_PER_WINDOW = 5

SOURCES: tuple[Source, ...] = (
    Source(name="NVML", domains=("gpu",), find=libraries.find_nvml),
    Source(name="powercap", domains=("cpu", "system"), find=lambda device: board.find_powercap()),
    Source(name="hwmon", domains=("gpu", "cpu", "system"), find=lambda device: board.find_hwmon()),
    Source(name="vcgencmd", domains=("system",), find=lambda device: board.find_vcgencmd()),
    Source(name="zeus", domains=("gpu", "cpu"), find=libraries.find_zeus),
    Source(name="powertop", domains=("system",), find=lambda device: board.find_powertop()),
)
"""In order of trust: counters of the part itself, then power of rails, then figures of other programs."""


def _mean_power(domain: Domain, tracks: Sequence[SensorTrack], window: tuple[float, float]) -> Measurement:
    metric = METRICS[domain].power
    try:
        watts = sum(track.energy(*window).mean_w for track in tracks)
    except SensorError as error:
        return Measurement.absent(metric, str(error))
    return Measurement.of(metric, [watts], source=", ".join(track.name for track in tracks))


def _no_power(domain: Domain, choice: Choice) -> Measurement:
    return Measurement.absent(METRICS[domain].power, choice.reason(domain))


Watching = Callable[[Sequence[SensorTrack]], AbstractContextManager[None]]


class EnergyMeter(Meter):
    """Joules per call of GPU, processor and system, each by the sensors that are there."""

    name = "energy"
    metrics = tuple(metric for own in METRICS.values() for metric in own)

    def __init__(
        self,
        *,
        sources: Sequence[Source] = SOURCES,
        clock: Callable[[], float] = time.monotonic,
        epoch: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        watching: Watching = watching,
    ) -> None:
        self._sources = sources
        self._clock = clock
        self._epoch = epoch
        self._sleep = sleep
        self._watching = watching

    def unavailable(self, case: Case) -> str | None:
        """None when any domain of the case can be measured; else the reasons of all sources in one line."""
        reasons: list[str] = []
        if log := case.protocol.power_log:
            try:
                read_log(log)
                return None
            except SensorError as error:
                reasons.append(str(error))
        choice = self._choose(case)
        choice.close()
        if any(choice.has(domain) for domain in domains_of(case.device)):
            return None
        reasons += [why for domain in domains_of(case.device) for why in choice.reasons.get(domain, [])]
        return "no energy sensor: " + "; ".join(dict.fromkeys(reasons))

    def measure(self, session: Session) -> list[Measurement]:
        """Idle, then the calls, all sensors read side by side."""
        choice = self._choose(session.case)
        try:
            return self._measure(session, choice)
        finally:
            choice.close()

    @contextmanager
    def watching(self, case: Case, live: Live) -> Iterator[list[Measurement]]:
        """Mean power while conversations are held, of the whole machine's parts: a server's share is not separated."""
        readings: list[Measurement] = []
        choice = self._choose(case)
        tracks = [SensorTrack(sensor=sensor) for sensor in choice.sensors]
        try:
            with self._watching(tracks):
                start_s = self._clock()
                yield readings
                end_s = self._clock()
            for domain in domains_of(case.device):
                whole = [track for track in tracks if track.sensor.domain == domain and track.sensor.whole]
                readings.append(_mean_power(domain, whole, (start_s, end_s)) if whole else _no_power(domain, choice))
        finally:
            choice.close()

    def _choose(self, case: Case) -> Choice:
        """An external meter that the case names measures the whole system: no other sensor is asked for that."""
        domains = [d for d in domains_of(case.device) if d != "system" or not case.protocol.power_log]
        return choose(case.device, domains, self._sources)

    def _measure(self, session: Session, choice: Choice) -> list[Measurement]:
        sensors = [SensorTrack(sensor=sensor) for sensor in choice.sensors]
        offset_s = self._epoch() - self._clock()
        logs: list[Track] = []
        why_no_log = ""
        if path := session.case.protocol.power_log:
            try:
                logs.append(LogTrack(path, epoch_s=lambda at_s: at_s + offset_s, sleep=self._sleep))
            except SensorError as error:
                why_no_log = str(error)
        period_s = max([track.period_s for track in [*sensors, *logs]], default=0.0)
        window_s = max(WINDOW_S, _READINGS_PER_WINDOW * period_s) + max(_MARGIN_S, 2 * period_s)
        with self._watching(sensors):
            session.progress("energy: idle")
            session.sync()
            self._sleep(REST_S)
            idle_from_s = self._clock()
            self._sleep(window_s)
            idle_s = (idle_from_s, self._clock())
            session.progress("energy: calls")
            load = run_load(session, window_s=window_s, clock=self._clock)
            self._sleep(2 * period_s)  # a tick just before the end is seen by the next reading
        run = Run(idle_s=idle_s, load=load, epoch_offset_s=offset_s)
        found: list[Measurement] = []
        for domain in domains_of(session.case.device):
            if domain == "system" and logs:
                found += domain_figures(domain, logs, run)
            elif domain == "system" and why_no_log:
                found.append(Measurement.absent(METRICS[domain].gross, why_no_log))
            elif choice.has(domain):
                whole = [t for t in sensors if t.sensor.domain == domain and t.sensor.whole]
                found += domain_figures(domain, whole, run)
            else:
                found.append(Measurement.absent(METRICS[domain].gross, choice.reason(domain)))
        return found + side_rows(sensors, run)
