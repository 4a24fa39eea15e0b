"""Queues with a known edge as executors of a search: requests are simulated without an event loop, in milliseconds."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from random import Random

from speechmeter.core import metrics
from speechmeter.core.live import CLIENT_BOUND
from speechmeter.core.types import Case, Measurement
from speechmeter.engine.measure import Outcome

SLOTS, WORK_S, LIMIT_S = 4, 0.25, 1.25


@dataclass
class RandomQueue:
    """M/M/4: `rate` of a case in requests per second. `late_from` is the rate from which the client is late."""

    seed: int
    requests: int = 1000
    late_from: float = math.inf
    interrupt_after: int | None = None
    asked: list = field(default_factory=list)

    def measure(self, case: Case, report, extent="all", round_=0) -> Outcome:
        if len(self.asked) == self.interrupt_after:
            raise KeyboardInterrupt
        rate = case.axes["rate"]
        self.asked.append((rate, round_))
        draw = Random(f"{self.seed}/{round_}/{rate}")
        free, moment, delays = [0.0] * SLOTS, 0.0, []
        for number in range(self.requests + self.requests // 10):
            moment += draw.expovariate(rate)
            start = max(moment, heapq.heappop(free))
            end = start + draw.expovariate(1 / WORK_S)
            heapq.heappush(free, end)
            if number >= self.requests // 10:
                delays.append(end - moment)
        late = rate >= self.late_from
        # a client that is late makes every request late, and says so
        delays = [delay + LIMIT_S for delay in delays] if late else delays
        return outcome(delays, span_s=self.requests / rate, warnings=[f"{CLIENT_BOUND}: late"] if late else [])


def outcome(delays, *, span_s=1e6, warnings=(), missing=()) -> Outcome:
    """A round with these latencies; `missing` are conversations without an answer, numbered after the others."""
    count = len(delays) + len(missing)
    notes = {"of": list(range(len(delays)))} | ({"missing": list(missing), "timeout_s": 30.0} if missing else {})
    below = [span_s / count] * count
    found = [
        Measurement.of(
            metrics.LIVE_ANSWERED, [1.0] * len(delays) + [0.0] * len(missing), notes={"utterances": ["u"] * count}
        ),
        Measurement.of(metrics.REQUEST_LATENCY, list(delays), notes=notes)
        if delays
        else Measurement.absent(metrics.REQUEST_LATENCY, "no text came", notes=notes),
        Measurement.of(
            metrics.LIVE_THROUGHPUT, [1.0] * count, notes={"of": list(range(count)), "above": below, "below": below}
        ),
    ]
    return Outcome(status="ok", measurements=tuple(found), warnings=tuple(warnings))


def beyond(rate: float, limit_s: float = LIMIT_S) -> float:
    """The share of requests to M/M/4 that take longer: Erlang C for the wait, then the work."""
    mu, load = 1 / WORK_S, rate * WORK_S
    blocked = 1.0  # Erlang B by its recursion, then C
    for servers in range(1, SLOTS + 1):
        blocked = load * blocked / (servers + load * blocked)
    waits = blocked / (1 - load / SLOTS * (1 - blocked))
    theta = SLOTS * mu - rate
    # the sum of two exponential times
    both = (theta * math.exp(-mu * limit_s) - mu * math.exp(-theta * limit_s)) / (theta - mu)
    return (1 - waits) * math.exp(-mu * limit_s) + waits * both


def true_edge() -> float:
    """The rate at which 5 % take longer than the limit."""
    low, high = 0.1, SLOTS / WORK_S - 0.01
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) <= 0.05 else (low, middle)
    return low
