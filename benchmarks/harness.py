"""What measuring itself costs, beside its peers: per sample in the timing loop, and per record around it.

A sample: our loop (`StageClock.sample` driven by `engine.schedule.collect`) against the least that timing can be (two
reads of `perf_counter_ns` and an append), `torch.utils.benchmark` and `pyperf`, all on one empty function in one
process, interleaved. What a sample costs sets how many of them a budget buys; "reads" is what a contender reports for
the empty call, that is, what it adds to every reading.

A record: the wall time that a record states minus the phases it accounts for, that is, what launcher, guard and
interpreter cost beside the measurement; and what the parent does between two records (store, fsync, preflight).

    python benchmarks/harness.py        exit 1 when a verdict is no
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns
from typing import Any

import pyperf
import torch.utils.benchmark

import speechmeter
from speechmeter.core import metrics
from speechmeter.core.axes import Axes
from speechmeter.core.batches import MadeBatches
from speechmeter.core.protocol import RepeatsProtocol
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Record, Spec, Stage
from speechmeter.engine.schedule import collect
from speechmeter.engine.session import LoadedSession
from speechmeter.meters.latency import StageClock

SAMPLES = 20_000
REPETITIONS = 9
SAMPLE_LIMIT_NS = 2_000.0
RECORD_LIMIT_S = 1.0

BATCH = Batch(data=None, items=1)
PLAN = {
    "models": ["log-mel"],
    "seconds": [1],
    "batch": [1, 2],
    "meters": ["latency", "memory", "parameters"],
    "rounds": 2,
}


@dataclass(frozen=True, kw_only=True)
class Collection:
    """The wall time of collecting some samples, and the samples."""

    wall_ns: float
    readings_ns: Sequence[float]


Contender = Callable[[int], Collection]


def empty(state: Any) -> None:
    """Do nothing: all the time that passes is the contender's."""


def no_sync() -> None:
    """Stand in for the sync of a device that has none."""


def bare_pair(samples: int) -> Collection:
    """Take the least there is: two reads of the clock and an append, in a plain loop."""
    function, batch, now, readings = empty, BATCH, perf_counter_ns, []
    start = perf_counter_ns()
    for _ in range(samples):
        before = now()
        function(batch)
        readings.append(now() - before)
    return Collection(wall_ns=perf_counter_ns() - start, readings_ns=readings)


def our_loop(samples: int) -> Collection:
    """Drive the clock as the engine does, with a sync that does nothing."""
    clock = StageClock([Stage(name="empty", fn=empty)], no_sync)
    protocol = RepeatsProtocol(discard=0, samples=samples)
    start = perf_counter_ns()
    collect(clock.sample, [BATCH], protocol, 0)
    wall_ns = perf_counter_ns() - start
    return Collection(wall_ns=wall_ns, readings_ns=[s * 1e9 for s in clock.totals_s()])


def our_session(samples: int) -> Collection:
    """Drive the clock as `LatencyMeter` does: through a session, whose sync asks the subject's."""
    session = _session(samples)
    clock = StageClock(session.stages, session.sync)
    start = perf_counter_ns()
    session.collect(clock.sample)
    wall_ns = perf_counter_ns() - start
    return Collection(wall_ns=wall_ns, readings_ns=[s * 1e9 for s in clock.totals_s()])


_BATCHES = MadeBatches([BATCH], lambda: [BATCH])


def _session(samples: int) -> LoadedSession:
    stages = (Stage(name="empty", fn=empty),)
    spec = Spec(plugin="none", name="empty")
    protocol = RepeatsProtocol(discard=0, samples=samples)
    return LoadedSession(
        case=Case(subject=spec, workload=spec, axes=Axes(), meters=("latency",), protocol=protocol),
        prepared=Prepared(stages=stages, sync=no_sync),
        stages=stages,
        batches=_BATCHES,
        all_batches=_BATCHES,
        load_ns=0,
        data_ns=0,
        reload_ns=0,
        first_ns=0,
        first=None,
        resident_loaded_bytes=None,
        report=lambda phase: None,
    )


def torch_timer(samples: int) -> Collection:
    """Call `Timer.timeit(1)` for each sample; it warms up with two calls of its own every time."""
    timer = torch.utils.benchmark.Timer("function(batch)", globals={"function": empty, "batch": BATCH})
    start = perf_counter_ns()
    measurements = [timer.timeit(1) for _ in range(samples)]
    wall_ns = perf_counter_ns() - start
    return Collection(wall_ns=wall_ns, readings_ns=[m.raw_times[0] * 1e9 for m in measurements])


class PyperfWorker:
    """pyperf as its own worker processes run it, in this one: `--worker`, one loop a value, no warm-up.

    What is taken is the duration that pyperf states for collecting a run. It holds a fixed part (reading metadata of
    the machine), so a run of one value is taken away. Spawning workers, statistics and printing are not in it.
    """

    def __init__(self) -> None:
        self._runner = pyperf.Runner()
        self._args = self._runner.parse_args(["--worker", "--loops=1", "--warmups=0", "--values=1", "--quiet"])
        self._names = (f"run {number}" for number in count())

    def __call__(self, samples: int) -> Collection:
        fixed_s = self._collect(1).get_total_duration()
        run = self._collect(samples + 1)
        wall_s = run.get_total_duration() - fixed_s
        return Collection(wall_ns=wall_s * 1e9, readings_ns=[value * 1e9 for value in run.get_values()])

    def _collect(self, values: int) -> pyperf.Benchmark:
        self._args.values = values
        with redirect_stdout(io.StringIO()):
            return self._runner.bench_func(next(self._names), empty, BATCH)


def call_ns(samples: int) -> float:
    """Nanoseconds of one call of the empty function: a loop with it minus a loop without."""
    function, batch = empty, BATCH
    start = perf_counter_ns()
    for _ in range(samples):
        pass
    between = perf_counter_ns()
    for _ in range(samples):
        function(batch)
    return (perf_counter_ns() - between - (between - start)) / samples


def sample_costs(contenders: dict[str, Contender]) -> dict[str, tuple[float, float]]:
    """(nanoseconds a sample beside the call, nanoseconds read) of each: medians over interleaved repetitions."""
    costs: dict[str, list[float]] = {name: [] for name in contenders}
    readings: dict[str, list[float]] = {name: [] for name in contenders}
    for repetition in range(-1, REPETITIONS):  # the first is warm-up; every other one runs backwards
        for name in list(contenders)[:: -1 if repetition % 2 else 1]:
            own_ns = call_ns(SAMPLES)
            found = contenders[name](SAMPLES)
            if repetition >= 0:
                costs[name].append(found.wall_ns / SAMPLES - own_ns)
                readings[name].append(median(found.readings_ns))
    return {name: (median(costs[name]), median(readings[name])) for name in contenders}


def compare_samples() -> bool:
    """Print the table of sample costs; whether both of our rows stay within the limit."""
    contenders: dict[str, Contender] = {
        "bare pair of perf_counter_ns": bare_pair,
        "speechmeter, clock and schedule": our_loop,
        "speechmeter, through a session": our_session,
        "pyperf worker, loops=1": PyperfWorker(),
        "torch Timer.timeit(1)": torch_timer,
    }
    found = sample_costs(contenders)
    bare_ns = found["bare pair of perf_counter_ns"][0]
    print(f"A sample: {SAMPLES:,} samples of an empty call, median of {REPETITIONS} interleaved repetitions")
    print(f"{'':34}{'µs a sample':>12}{'over bare':>11}{'reads, ns':>11}")
    for name, (cost_ns, reading_ns) in found.items():
        print(f"{name:34}{cost_ns / 1e3:12.3f}{(cost_ns - bare_ns) / 1e3:+11.3f}{reading_ns:11.0f}")
    ours_ns = max(cost_ns for name, (cost_ns, _) in found.items() if name.startswith("speechmeter"))
    return verdict("within 2 µs of the bare pair", ours_ns - bare_ns <= SAMPLE_LIMIT_NS)


def phases_s(record: Record) -> float:
    """Seconds that a record accounts for, over all of its processes."""
    return sum(sum(m.values) for m in record.measurements if m.metric == metrics.PHASE.id)


def compare_records() -> bool:
    """Print what each record does not account for; whether that stays under the limit with the parent's share."""
    run = speechmeter.run  # imported now, not inside the clock
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        records = run(PLAN, output=Path(folder) / "run").records
        total_s = perf_counter() - start
    parent_s = (total_s - sum(record.wall_s for record in records)) / len(records)
    print(f"\nA record: {len(records)} records of a small study, each of two fresh processes")
    print(f"{'':34}{'wall_s':>9}{'phases':>9}{'beside':>9}")
    for record in records:
        place = f"{record.case.label}, round {record.round}"
        accounted_s = phases_s(record)
        print(f"{place:34}{record.wall_s:9.3f}{accounted_s:9.3f}{record.wall_s - accounted_s:9.3f}")
    print(f"{'parent between records, a record':34}{'':18}{parent_s:9.3f}")
    failed = [record.status for record in records if record.status != "ok"]
    worst_s = max(record.wall_s - phases_s(record) for record in records) + parent_s
    return verdict("under 1 s a case", not failed and worst_s < RECORD_LIMIT_S)


def verdict(claim: str, holds: bool) -> bool:
    """Print a claim and whether it holds, and pass that on."""
    print(f"{claim}: {'yes' if holds else 'no'}")
    return holds


def main() -> int:
    """Run both comparisons; 0 when every verdict is yes."""
    verdicts = [compare_samples(), compare_records()]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
