"""Whether the search for a capacity brackets the true edge, against queues whose edge is known exactly.

Three systems on the virtual clock: a closed loop with c slots and fixed work (latency ⌈N/c⌉·D), paced streams with d
seconds of work for each chunk of p seconds on c workers (stable while N·d ≤ c·p), and M/M/c, whose latency beyond a
limit follows from Erlang C. Each search is an ordinary run with a seed of its own.

    python benchmarks/capacity.py [closed|paced|mmc] [SEEDS]      20 seeds: minutes; exit 1 below 20, 20 and 17 of 20
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speechmeter.analysis.live.capacity import Capacity, capacities
from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options
from speechmeter.plan.live import slo_in
from speechmeter.plan.study import study_from_python

SLOTS, WORK_S = 4, 0.025
PACED_SLOTS, PACED_WORK_S, CHUNK_S = 2, 0.05, 0.1
LIMIT_S = 0.125
"""Of the latency of 95 % of requests to M/M/4."""


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A system with its true edge: the highest level that is within the SLO. `least` of 20 brackets have to hold it."""

    name: str
    edge: float
    least: int
    plan: Callable[[int], Mapping[str, Any]]

    def holds(self, found: Capacity) -> bool:
        """Whether the edge lies in the bracket: what passes is not above it, what fails is."""
        low, high = found.passes, found.fails
        return low is not None and high is not None and low.level <= self.edge < high.level


def closed(seed: int) -> Mapping[str, Any]:
    """Requests one after another in each stream. Up to c of them take D, up to 2 c take 2 D."""
    return {
        **_known(service_s=WORK_S, slots=SLOTS), "pace": "fast", "seconds": 0.2, "chunk": "200ms", "silence": 0,
        "duration": "2s", "seed": seed, "find": "max-streams", "rounds": 3,
        "slo": {"request_latency_p95_s": 1.5 * WORK_S, "live_completeness": "95%"},
    }  # fmt: skip


def paced(seed: int) -> Mapping[str, Any]:
    """Streams of 64 s. Above the edge the delay grows."""
    return {
        **_known(service_s=PACED_WORK_S, slots=PACED_SLOTS, segment_words=1), "pace": "realtime", "seconds": 64,
        "chunk": f"{CHUNK_S}s", "turns": 1, "answer_timeout": "300s", "seed": seed, "find": "max-streams",
        "rounds": 3, "slo": {"keep_up": 0.01},
    }  # fmt: skip


def mmc(seed: int) -> Mapping[str, Any]:
    """Requests at random moments with random work."""
    return {
        **_known(service_s=WORK_S, slots=SLOTS, service="exponential"), "pace": "fast", "seconds": 0.2,
        "chunk": "200ms", "silence": 0, "duration": "10s", "ramp": "1s", "seed": seed, "rate": 40, "find": "max-rate",
        "find_within": "10%", "slo": {"request_latency_p95_s": LIMIT_S},
    }  # fmt: skip


def _known(**options: Any) -> Mapping[str, Any]:
    entry = {"name": "known", "load": "known:live", "clock": "virtual", "partials": False, **options}
    return {"models": [entry], "audio": "sample", "meters": []}


def beyond(rate: float, limit_s: float = LIMIT_S) -> float:
    """The share of requests to M/M/c that take longer than a limit, waiting and work together (Erlang C)."""
    mu, load = 1 / WORK_S, rate * WORK_S
    terms = [load**k / math.factorial(k) for k in range(SLOTS)]
    last = load**SLOTS / math.factorial(SLOTS) * SLOTS / (SLOTS - load)
    waits = last / (sum(terms) + last)
    theta = SLOTS * mu - rate
    alone = math.exp(-mu * limit_s)
    if abs(theta - mu) < 1e-9:
        both = (1 + mu * limit_s) * alone
    else:
        both = (theta * alone - mu * math.exp(-theta * limit_s)) / (theta - mu)
    return (1 - waits) * alone + waits * both


def mmc_edge() -> float:
    """The rate at which 5 % of requests take longer than the limit."""
    low, high = 0.0, SLOTS / WORK_S
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) <= 0.05 else (low, middle)
    return low


QUEUES = (
    Queue(name="closed", edge=SLOTS, least=20, plan=closed),
    Queue(name="paced", edge=PACED_SLOTS * CHUNK_S / PACED_WORK_S, least=20, plan=paced),
    Queue(name="mmc", edge=mmc_edge(), least=17, plan=mmc),
)


def searched(queue: Queue, seed: int, folder: Path) -> Capacity:
    """The capacity that a search finds."""
    study = study_from_python(queue.plan(seed))
    made = run_study(study, Options(output=folder, launcher="inline"))
    slo = slo_in(study.plan)
    assert slo is not None
    (found,) = capacities(made.records, slo)
    return found


def main() -> int:
    """All queues, or the one that is named, over so many seeds."""
    names, seeds = [name for name in sys.argv[1:] if not name.isdigit()], [int(n) for n in sys.argv[1:] if n.isdigit()]
    count = seeds[0] if seeds else 20
    missed = False
    for queue in QUEUES:
        if names and queue.name not in names:
            continue
        held = 0
        for seed in range(count):
            with tempfile.TemporaryDirectory() as folder:
                found = searched(queue, seed, Path(folder) / "run")
            held += queue.holds(found)
            low, high = (None if one is None else one.level for one in (found.passes, found.fails))
            rounds = sum(len(level.records) for level in found.levels)
            print(f"{queue.name} {seed}: edge {queue.edge:.3f}, bracket {low} … {high}, {rounds} rounds", flush=True)
        print(f"{queue.name}: the bracket holds the edge in {held} of {count}", flush=True)
        missed = missed or held < queue.least * count // 20
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
