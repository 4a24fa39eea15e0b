"""Memory and CPU time of a server while it is spoken to: of all its processes, by /proc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from time import perf_counter

from speechmeter.core import metrics
from speechmeter.core.process_tree import cpu_seconds, resident_bytes
from speechmeter.core.types import Measurement

_EVERY_S = 0.1
_SOURCE = "/proc"


class ServerUse:
    """What processes use between the begin and the end of `watch`. `processes` lists those that there are."""

    def __init__(self, processes: Callable[[], Sequence[int]]) -> None:
        self._processes = processes
        self._peak_bytes = 0
        self._cpu_s = self._wall_s = 0.0

    def watch(self, done: Event) -> None:
        """Read until it is done."""
        begun_s, before_s = perf_counter(), cpu_seconds(self._processes())
        latest_s = before_s
        while True:
            pids = self._processes()
            self._peak_bytes = max(self._peak_bytes, resident_bytes(pids))
            latest_s = max(latest_s, cpu_seconds(pids))  # a process that ends takes its time along
            if done.wait(_EVERY_S):
                break
        self._cpu_s = max(latest_s, cpu_seconds(self._processes())) - before_s
        self._wall_s = perf_counter() - begun_s

    def measurements(self) -> list[Measurement]:
        """The highest size, and the cores that were used."""
        if not self._peak_bytes:
            reason = "the server had ended"
            return [Measurement.absent(metric, reason) for metric in (metrics.MEMORY_SERVER, metrics.CPU_SERVER)]
        return [
            Measurement.of(metrics.MEMORY_SERVER, [float(self._peak_bytes)], source=_SOURCE),
            Measurement.of(metrics.CPU_SERVER, [self._cpu_s / self._wall_s], source=_SOURCE),
        ]
