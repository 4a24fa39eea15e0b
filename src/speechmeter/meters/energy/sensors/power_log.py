"""The log of an external meter as a track: read after the calls, once it has caught up with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from speechmeter.core.errors import SensorError
from speechmeter.core.power_log import Log, read_log
from speechmeter.meters.energy.tracks import Span

PATIENCE_S = 5.0
"""How long a log may lag behind the end of a window."""
_LOOK_EVERY_S = 0.25
_USUAL_INTERVAL_S = 1.0


class LogTrack:
    """Energy from a growing CSV, or from the files that powertop adds.

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
        return Span(start_s=start_s, end_s=end_s, energy_j=self._caught_up(end).energy_j(start, end))

    def _caught_up(self, end_s: float) -> Log:
        log = read_log(self._path)
        for _ in range(round((PATIENCE_S + self.period_s) / _LOOK_EVERY_S)):
            if log.covers(end_s):
                break
            self._sleep(_LOOK_EVERY_S)
            log = read_log(self._path)
        return log


def missing(path: str | Path) -> str | None:
    """Why that log cannot be used; None when it can be read."""
    try:
        read_log(path)
    except SensorError as error:
        return str(error)
    return None
