"""Figures from a call that was profiled: busy time against audio, an idle GPU, and waiting for launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric

CPU, GPU = "busy:cpu", "busy:gpu"
"""Scopes of the busy time."""
_AT_WORK, _WAITING = ("split:kernel", "split:memcpy"), ("split:runtime", "split:cpu", "split:idle")


class Readings(Protocol):
    """What one round read."""

    def values(self, metric: Metric, scope: str = "total") -> tuple[float, ...]:
        """Every value."""
        ...

    def typical(self, metric: Metric, scope: str = "total") -> float | None:
        """The typical one; None where there is none."""
        ...


Derive = Callable[[Readings, str], tuple[float, int] | None]


def busy_rtf(worker: str) -> Derive:
    """Busy seconds over those of the audio that was fed meanwhile."""

    def rtf(this: Readings, scope: str) -> tuple[float, int] | None:
        busy, audio = this.values(metrics.TIME_BUSY, worker), this.values(metrics.AUDIO_SECONDS)
        if scope != "total" or not busy or min(audio, default=0.0) <= 0:
            return None
        return sum(busy) / sum(audio[call % len(audio)] for call in range(len(busy))), len(busy)

    return rtf


def gpu_idle(this: Readings, scope: str) -> tuple[float, int] | None:
    """The share of the calls in which nothing ran on the GPU."""
    work, wait = ([sum(this.values(metrics.TIME_SPLIT, kind)) for kind in kinds] for kinds in (_AT_WORK, _WAITING))
    count = len(this.values(metrics.TIME_SPLIT, _AT_WORK[0]))
    whole = sum([*work, *wait])
    return (sum(wait) / whole, count) if scope == "total" and count and whole > 0 else None


def launch_bound(this: Readings, scope: str) -> tuple[float, int] | None:
    """Latency over the GPU's busy time, from whichever meter took it."""
    latency, busy = this.typical(metrics.LATENCY, scope), this.typical(metrics.TIME_GPU, scope)
    if busy is None and scope == "total":
        busy = this.typical(metrics.TIME_BUSY, GPU)
    return (latency / busy, len(this.values(metrics.LATENCY, scope))) if latency is not None and busy else None
