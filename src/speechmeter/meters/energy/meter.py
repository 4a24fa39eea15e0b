"""Energy of a call by hardware sensors, tick to tick, gross and with idle subtracted. No sensor, no figure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType

from speechmeter.core.errors import SensorError
from speechmeter.core.protocols import ORDINARY, Phase, Session
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.energy.figures import METRICS, Run, absent, domain_figures, side_rows
from speechmeter.meters.energy.load import run_load
from speechmeter.meters.energy.sensors import power_log
from speechmeter.meters.energy.sensors.sources import SOURCES, Choice, Source, choose, domains_of
from speechmeter.meters.energy.tracks import SensorTrack, Track, watching

WINDOW_S = 2.0
"""Seconds between the first and the last tick of a window."""
REST_S = 1.0
"""A device that was just busy draws more than an idle one: wait before idle is read."""
_MARGIN_S = 0.25
"""Ticks come every 0.1 s or faster, so this much is lost at most by starting and ending on one."""
_READINGS_PER_WINDOW = 5

Watching = Callable[[Sequence[SensorTrack]], AbstractContextManager[None]]


class EnergyMeter:
    """Joules per call of GPU, processor and system, each by the sensors that are there."""

    name = "energy"
    metrics = tuple(metric for m in METRICS.values() for metric in (m.gross, m.net, m.power, m.idle))
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.TIMING

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
        log = case.protocol.power_log
        why_no_log = power_log.missing(log) if log else None
        if log and why_no_log is None:
            return None
        choice = self._choose(case)
        choice.close()
        if any(choice.has(domain) for domain in domains_of(case)):
            return None
        reasons = [why for domain in domains_of(case) for why in choice.reasons.get(domain, [])]
        return "no energy sensor: " + "; ".join(dict.fromkeys([*([why_no_log] if why_no_log else []), *reasons]))

    def measure(self, session: Session) -> list[Measurement]:
        """Idle, then the calls, all sensors read side by side."""
        choice = self._choose(session.case)
        try:
            return self._measure(session, choice)
        finally:
            choice.close()

    def _choose(self, case: Case) -> Choice:
        """An external meter that the case names stands for the whole system: no other is asked."""
        domains = [d for d in domains_of(case) if d != "system" or not case.protocol.power_log]
        return choose(case.device, domains, self._sources)

    def _measure(self, session: Session, choice: Choice) -> list[Measurement]:
        sensors = [SensorTrack(sensor=sensor) for sensor in choice.sensors]
        offset_s = self._epoch() - self._clock()
        log, why_no_log = self._log(session.case, offset_s)
        period_s = max([track.period_s for track in [*sensors, *log]], default=0.0)
        window_s = max(WINDOW_S, _READINGS_PER_WINDOW * period_s) + max(_MARGIN_S, 2 * period_s)
        with self._watching(sensors):
            run = self._run(session, window_s, offset_s)
            self._sleep(2 * period_s)  # a tick just before the end is seen by the next reading
        found: list[Measurement] = []
        for domain in domains_of(session.case):
            if domain == "system" and (log or why_no_log):
                found += domain_figures(domain, log, run) if log else [absent(domain, why_no_log)]
            elif choice.has(domain):
                whole = [t for t in sensors if t.sensor.domain == domain and t.sensor.whole]
                found += domain_figures(domain, whole, run)
            else:
                found.append(absent(domain, choice.reason(domain)))
        return found + side_rows(sensors, run)

    def _log(self, case: Case, offset_s: float) -> tuple[list[Track], str]:
        path = case.protocol.power_log
        if not path:
            return [], ""
        try:
            return [power_log.LogTrack(path, epoch_s=lambda at_s: at_s + offset_s, sleep=self._sleep)], ""
        except SensorError as error:
            return [], str(error)

    def _run(self, session: Session, window_s: float, offset_s: float) -> Run:
        session.progress("energy: idle")
        session.sync()
        self._sleep(REST_S)
        idle_from_s = self._clock()
        self._sleep(window_s)
        idle_s = (idle_from_s, self._clock())
        session.progress("energy: calls")
        load = run_load(session, window_s=window_s, clock=self._clock)
        return Run(idle_s=idle_s, load=load, epoch_offset_s=offset_s)
