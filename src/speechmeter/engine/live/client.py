"""Whether the client itself was the bottleneck: lateness of every send, lag of its event loop, its share of a core."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter, thread_time

from speechmeter.core import metrics
from speechmeter.core.axes import REALTIME
from speechmeter.core.live import CLIENT_BOUND, Clock
from speechmeter.core.types import Measurement

_SAMPLE_S = 0.01
_MOST_LATE_P99, _MOST_LATE = 0.1, 1.0
"""In chunks. Beyond these the figures are those of the client as well."""
_MOST_OF_LATENCY = 0.1
"""By more of the typical latency of requests the client may not be late itself."""
LATE = 0.1
"""A send that is later than this share of a chunk counts as late in the progress."""


@dataclass(kw_only=True)
class ClientWatch:
    """What the client did in the measured part of a round. Lateness is counted from the moment a chunk was due."""

    clock: Clock
    late_s: list[float] = field(default_factory=list)
    begun_late_s: list[float] = field(default_factory=list)
    """How late conversations were begun that arrive at moments of their own."""
    lag_s: list[float] = field(default_factory=list)
    busy: float = 0.0
    """Share of a core that the thread of the event loop used."""
    _begun: tuple[float, float] = (0.0, 0.0)
    _sampling: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, inside the event loop."""
        self._begun = (perf_counter(), thread_time())
        self._sampling = asyncio.ensure_future(self._sample())

    async def stop(self) -> None:
        """End; the readings are complete."""
        if self._sampling is None:
            return
        begun_s, cpu_s = self._begun
        window_s = perf_counter() - begun_s
        self.busy = (thread_time() - cpu_s) / window_s if window_s > 0 else 0.0
        self._sampling.cancel()
        await asyncio.wait({self._sampling})

    async def _sample(self) -> None:
        while True:
            due_s = self.clock.now() + _SAMPLE_S
            await self.clock.sleep_until(due_s)
            self.lag_s.append(self.clock.now() - due_s)

    def measurements(self, pace: str) -> list[Measurement]:
        """Lateness (of a paced feed), loop lag and CPU share; nothing where no conversation was measured."""
        found = []
        if pace == REALTIME and self.late_s:
            found = [
                Measurement.of(metrics.CLIENT_SLIP_P50, [percentile(self.late_s, 50)], source="sends"),
                Measurement.of(metrics.CLIENT_SLIP_P99, [percentile(self.late_s, 99)], source="sends"),
                Measurement.of(metrics.CLIENT_SLIP_MAX, [max(self.late_s)], source="sends"),
            ]
        if self.lag_s:
            found.append(Measurement.of(metrics.CLIENT_LAG_P99, [percentile(self.lag_s, 99)], source="event loop"))
            found.append(Measurement.of(metrics.CLIENT_LAG_MAX, [max(self.lag_s)], source="event loop"))
            found.append(Measurement.of(metrics.CLIENT_BUSY, [self.busy], source="thread_time"))
        return found

    def warnings(self, pace: str, chunk_s: float) -> list[str]:
        """The warning that figures are bounded by the client, where sends were late."""
        if pace != REALTIME or not self.late_s:
            return []
        p99_s, most_s = percentile(self.late_s, 99), max(self.late_s)
        if p99_s <= _MOST_LATE_P99 * chunk_s and most_s <= _MOST_LATE * chunk_s:
            return []
        return [
            f"{CLIENT_BOUND}: this program sent chunks of {chunk_s * 1e3:g} ms late, by {p99_s * 1e3:.1f} ms at p99 "
            f"and {most_s * 1e3:.1f} ms at most; measured delays include that, and the system may serve more streams "
            "than measured; close other programs, or use more cores or fewer streams"
        ]

    def late_requests(self, latencies_s: Sequence[float]) -> list[str]:
        """The same warning for requests, where the client was late by a part of their latency that counts."""
        late_s, lag_s = (percentile(values, 99) if values else 0.0 for values in (self.begun_late_s, self.lag_s))
        typical_s = percentile(latencies_s, 50) if latencies_s else 0.0
        if not typical_s or max(late_s, lag_s) <= _MOST_OF_LATENCY * typical_s:
            return []
        return [
            f"{CLIENT_BOUND}: this program began requests {late_s * 1e3:.1f} ms late and noticed answers "
            f"{lag_s * 1e3:.1f} ms late, at p99, while half of them took up to {typical_s * 1e3:.1f} ms; measured "
            "latencies include that, and the system may carry more than measured; close other programs, or use more "
            "cores or a lower load"
        ]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` percent of all do not exceed."""
    ordered = sorted(values)
    rank = -(-len(ordered) * share // 100)
    return ordered[max(0, int(rank) - 1)]
