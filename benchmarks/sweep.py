"""What a sweep costs with processes that are forked from a template, beside processes that are all started anew.

    tour   wall time of the built-in tour, both ways by turns
    grid   the same of a grid of small models, and how long it takes for each second that it measures
    same   three subjects, both ways by turns, a pair a round: are latency, its spread and the memory the same?
    peer   pyperf on the log-mel cells of such a grid: its wall time beside ours

Measured time is what a user asked for: passes, first calls and building the model, without starting processes and
importing. Runs alternate, so that drift of the machine meets both alike. On a busy machine only ratios mean anything.

    python benchmarks/sweep.py [--parts tour,grid,same,peer] [--repeats 2] [--rounds 5] [--sizes 5] [--pairs 30]

Exit 1 when a limit that is printed is broken. With the defaults it takes about half an hour.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from math import log, sqrt
from pathlib import Path
from statistics import median, variance
from time import monotonic

import yaml
from scipy.stats import f as f_distribution

import speechmeter
from speechmeter.analysis.compare import verdict
from speechmeter.analysis.derived import round_value
from speechmeter.core import metrics
from speechmeter.core.outputs import Keep
from speechmeter.core.types import Case, Limits, Record
from speechmeter.launch.executors import Processes, SubprocessExecutor
from speechmeter.plan.study import study_from_python

SUBJECTS = Path(__file__).parent / "subjects"
TOUR_LIMIT, GRID_LIMIT, MEMORY_LIMIT_BYTES, SPREAD_LIMIT = 0.65, 1.4, 2**20, 0.7
EFFECT = 0.05
WITH_MEMORY = 5
"""So many pairs also read memory; it hardly varies."""
TINY = {
    "name": "wav2vec2-tiny", "load": "transformers:wav2vec2", "head": "ctc",
    "config": {
        "hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 768,
        "conv_dim": [128] * 7,
    },
}  # fmt: skip
_NOT_ASKED_FOR = frozenset({"start", "data", "outputs"})


def wall_s(arguments: Sequence[str], output: Path) -> float:
    """Seconds that a whole run takes."""
    start = monotonic()
    command = [sys.executable, "-m", "speechmeter", "run", *arguments, "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    return monotonic() - start


def by_turns(arguments: Sequence[str], repeats: int, folder: Path) -> dict[str, list[float]]:
    """Seconds of runs whose processes are all started anew, of usual ones, and of those with forked processes alone."""
    walls: dict[str, list[float]] = {"exec": [], "auto": [], "fork": []}
    for turn in range(repeats):
        for how in tuple(walls)[:: -1 if turn % 2 else 1]:
            walls[how].append(wall_s([*arguments, "--processes", how], folder / f"{how}{turn}"))
            print(f"  {how:5}{walls[how][-1]:8.1f} s", flush=True)
    return walls


def tour(asked: argparse.Namespace, folder: Path) -> bool:
    """The built-in tour."""
    print("tour")
    walls = by_turns([], asked.repeats, folder)
    forked = median(walls["fork"]) / median(walls["exec"])
    print(f"  {forked:.2f} × of the wall time with new processes, with forked ones alone")
    ratio = median(walls["auto"]) / median(walls["exec"])
    return holds(f"tour: {ratio:.2f} × of the wall time with new processes, at most {TOUR_LIMIT}", ratio <= TOUR_LIMIT)


def measured_s(records: Iterable[Record]) -> float:
    """Seconds of passes, first calls and building models. What a new process imports is in no building of a model."""
    building: dict[str, list[float]] = defaultdict(list)
    total_s, new = 0.0, []
    for record in records:
        for m in (m for m in record.measurements if m.metric == metrics.PHASE.id):
            phases = dict(zip(m.notes["phases"], m.values, strict=True))
            load_s = phases.pop("load", 0.0)
            total_s += sum(seconds for name, seconds in phases.items() if name not in _NOT_ASKED_FOR)
            if m.notes["start"] == "forked":
                total_s += load_s
                building[record.case.subject.name].append(load_s)
            else:
                new.append(record.case.subject.name)
    return total_s + sum(median(building[name]) for name in new if name in building)


def grid(asked: argparse.Namespace, folder: Path) -> bool:
    """Two small models, some lengths, two batches."""
    plan = {
        "name": "grid", "models": ["log-mel", TINY], "seconds": list(range(1, asked.sizes + 1)), "batch": [1, 2],
        "meters": ["latency", "memory"], "rounds": asked.rounds,
    }  # fmt: skip
    (folder / "grid.yaml").write_text(yaml.safe_dump(plan))
    print(f"grid of {4 * asked.sizes} cases, {asked.rounds} rounds")
    walls = by_turns([str(folder / "grid.yaml")], 1, folder)
    found = {how: measured_s(speechmeter.load(folder / f"{how}0").records) for how in walls}
    for how, (wall,) in walls.items():
        records = speechmeter.load(folder / f"{how}0").records
        print(f"  {how:5} wall {wall:.1f} s, {len(records)} records; forked processes say {found[how]:.1f} s measured")
    share = walls["auto"][0] / found["auto"]
    for how in ("auto", "fork"):
        print(f"  {how:5} wall time {walls[how][0] / walls['exec'][0]:.2f} × of that with new processes")
    return holds(f"grid: {share:.2f} s a measured second, at most {GRID_LIMIT}", share <= GRID_LIMIT)


def cases() -> list[Case]:
    """NumPy alone, a small model of torch, a small one of transformers."""
    found = []
    for model in ("numpy-work", "cpc", TINY):
        keys = {"models": [model], "seconds": 1, "meters": ["latency", "memory"], "samples": 10}
        found += study_from_python(keys).cells.cases
    return found


def pairs_of(case: Case, pairs: int, folder: Path) -> dict[str, list[Record]]:
    """Rounds with a new process and with a forked one, by turns."""
    ways: tuple[Processes, Processes] = ("exec", "fork")
    records: dict[str, list[Record]] = {way: [] for way in ways}
    executors = {way: SubprocessExecutor(Limits(), Keep(folder=folder), None, way) for way in ways}
    with closing(executors["exec"]), closing(executors["fork"]):
        for round_ in range(pairs):
            for way in ways[:: -1 if round_ % 2 else 1]:
                extent = "all" if round_ < WITH_MEMORY else "timing"
                outcome = executors[way].measure(case, lambda phase: None, extent, round_)
                if outcome.status != "ok":
                    raise RuntimeError(f"{case.label}: {outcome.reason}")
                record = Record(
                    case=case, round=round_, sequence=sum(map(len, records.values())), status="ok",
                    measurements=outcome.measurements,
                )  # fmt: skip
                records[way].append(record)
    return records


def same(asked: argparse.Namespace, folder: Path) -> bool:
    """Whether a fork changes figures."""
    verdicts, spreads = [], []
    for case in cases():
        records = pairs_of(case, asked.pairs, folder)
        found = verdict(records["exec"], records["fork"], metrics.LATENCY, EFFECT, together=True)
        reached = "" if found.low is None or found.high is None else f" [{found.low:.3f}, {found.high:.3f}]"
        print(f"{case.subject.name}, {asked.pairs} pairs: forked / new {found.ratio or 0:.3f}{reached}, {found.word}")
        verdicts.append(holds("  SAME within 5 %", found.word == "SAME"))
        spreads.append({way: _variance(own) for way, own in records.items()})
        for metric in (metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CPU_LOAD):
            new, forked = (median(_values(records[way], metric)) for way in ("exec", "fork"))
            apart = f"  {metric.title}: {new / 2**20:.2f} and {forked / 2**20:.2f} MiB, at most 1 MiB apart"
            verdicts.append(holds(apart, abs(new - forked) <= MEMORY_LIMIT_BYTES))
    degrees = len(spreads) * (asked.pairs - 1)
    ratio = sqrt(sum(one["fork"] for one in spreads) / sum(one["exec"] for one in spreads))
    low, high = (ratio / sqrt(f_distribution.ppf(q, degrees, degrees)) for q in (0.975, 0.025))
    print(f"spread between rounds, forked / new, pooled: {ratio:.2f} [{low:.2f}, {high:.2f}]")
    for case, one in zip(cases(), spreads, strict=True):
        print(f"  {case.subject.name}: {100 * sqrt(one['exec']):.1f} % new, {100 * sqrt(one['fork']):.1f} % forked")
    return all([*verdicts, holds(f"lower bound at least {SPREAD_LIMIT}", low >= SPREAD_LIMIT)])


def _values(records: Sequence[Record], metric: metrics.Metric) -> list[float]:
    found = (round_value(record, metric, "total", records) for record in records)
    return [value for value, _ in filter(None, found)]


def _variance(records: Sequence[Record]) -> float:
    return variance(map(log, _values(records, metrics.LATENCY)))


def peer(asked: argparse.Namespace, folder: Path) -> bool:
    """pyperf measures the same sizes, as many processes and values each. Nothing is judged."""
    sizes = range(1, asked.sizes + 1)
    command = [sys.executable, str(SUBJECTS / "pyperf_work.py")]
    start = monotonic()
    for seconds in sizes:
        output = str(folder / f"pyperf{seconds}.json")
        options = [f"--processes={asked.rounds}", "--values=10", "--loops=1", "--warmups=5", "--quiet", "-o", output]
        subprocess.run([*command, str(seconds), *options], check=True, capture_output=True)
    theirs_s = monotonic() - start
    arguments = ["--model", "log-mel", "--seconds", ",".join(map(str, sizes)), "--meters", "latency"]
    ours = by_turns([*arguments, "--rounds", str(asked.rounds)], 1, folder)
    print(f"peer: {asked.sizes} cases of log-mel, {asked.rounds} processes each, latency alone")
    print(f"  pyperf {theirs_s:.1f} s, all new {ours['exec'][0]:.1f} s, forked {ours['fork'][0]:.1f} s")
    return True


def holds(claim: str, true: bool) -> bool:
    """Print a claim and whether it holds, and pass that on."""
    print(f"{claim}: {'yes' if true else 'no'}", flush=True)
    return true


PARTS = {"tour": tour, "grid": grid, "same": same, "peer": peer}


def main() -> int:
    """Run the parts; 0 when every verdict is yes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    for name, default in (("repeats", 2), ("rounds", 5), ("sizes", 5), ("pairs", 30)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    fine = []
    for part in asked.parts.split(","):
        with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
            fine.append(PARTS[part](asked, Path(folder)))
    return 0 if all(fine) else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sweep-path-") as path:
        sys.path[:0] = [path, str(SUBJECTS)]
        from forkable import plant

        plant(Path(path))
        os.environ["PYTHONPATH"] = path
        sys.exit(main())
