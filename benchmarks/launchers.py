"""Does the launcher change the figure? The same case inline, in subprocesses and on a Ray cluster of this machine.

Each round of each launcher is a run of its own with a driver of its own, so that inline is fresh too. The launchers
take turns and every other round goes backwards, so that drift of the machine meets all of them alike. Then each two
of them are compared by adjacent pairs, as `compare` does within one run.

Printed: the figure of each launcher with its interval over rounds; what the launcher costs a case beside measuring
(wall time of the record less the phases that the measuring process told of) and a whole run (the driver's start, and
Ray's); and the verdicts. CANNOT TELL is said, and is no difference found.

    python benchmarks/launchers.py [--rounds 8] [--run DIR]     about 5 minutes; exit 1 when a difference is found
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import monotonic

import speechmeter
from speechmeter.analysis.compare import Verdict, verdict
from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.types import Record

WORK = Path(__file__).parent / "subjects" / "work.py"
ENVIRON = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
LAUNCHERS = ("inline", "subprocess", "ray")
MIN_EFFECT = 0.15
PLAN = {
    "models": [{"name": "first", "load": f"python:{WORK}:first"}],
    "seconds": 1,
    "threads": 1,
    "meters": ["latency"],
    "rounds": 1,
    "warmup": 2,
    "samples": 10,
}


def measured(launcher: str, round_: int, output: Path) -> tuple[Record, float]:
    """(the record of one round, seconds that the whole run took).

    Variables are set for the driver as they are for a fresh process, since inline measures in it.
    """
    folder = output / f"{round_}-{launcher}"
    if not folder.exists():
        start = monotonic()
        command = [sys.executable, __file__, "--one", launcher, "--run", str(folder)]
        subprocess.run(command, check=True, env={**os.environ, **ENVIRON})
        (folder / "wall_s.txt").write_text(str(monotonic() - start))
    (record,) = speechmeter.load(folder).records
    if record.status != "ok":
        raise RuntimeError(f"{launcher}: {record.status}: {record.reason}")
    number = round_ * len(LAUNCHERS) + LAUNCHERS.index(launcher)
    return replace(record, round=round_, sequence=number), float((folder / "wall_s.txt").read_text())


def phases_s(record: Record) -> float:
    """Seconds that the measuring process told of: data, load, first call, warm-up and passes."""
    found = [m for m in record.measurements if m.metric == metrics.PHASE.id]
    return sum(sum(m.values) for m in found)


def interval(records: list[Record]) -> str:
    """The figure with half its interval."""
    figure = estimate(records, metrics.LATENCY)
    if figure is None:
        return "no figure"
    return f"{figure.value * 1e3:8.2f} ms ±{(figure.half_width or 0) * 100:.1f} %"


def judged(records: dict[str, list[Record]]) -> list[tuple[str, str, Verdict]]:
    """Each launcher against each other."""
    pairs = [(a, b) for i, a in enumerate(LAUNCHERS) for b in LAUNCHERS[i + 1 :]]
    return [(a, b, verdict(records[a], records[b], metrics.LATENCY, MIN_EFFECT, together=True)) for a, b in pairs]


def main() -> None:
    """Measure, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--run", type=Path, default=None, help="directory to keep or to go on with")
    parser.add_argument("--one", choices=LAUNCHERS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        speechmeter.run(PLAN, output=asked.run, launcher=asked.one)
        return
    output = asked.run or Path(tempfile.mkdtemp(prefix="launchers-"))
    records: dict[str, list[Record]] = {launcher: [] for launcher in LAUNCHERS}
    walls: dict[str, list[float]] = {launcher: [] for launcher in LAUNCHERS}
    for round_ in range(asked.rounds):
        for launcher in LAUNCHERS if round_ % 2 == 0 else reversed(LAUNCHERS):
            record, wall_s = measured(launcher, round_, output)
            records[launcher].append(record)
            walls[launcher].append(wall_s)
        print(f"round {round_ + 1} of {asked.rounds}", file=sys.stderr)
    _print(records, walls)
    found = judged(records)
    for a, b, one in found:
        print(f"{b} against {a}: {one.word}, ratio {one.ratio or 0:.3f}  {one.reason}")
    print(f"kept in {output}")
    sys.exit(int(any(one.word in ("SLOWER", "FASTER") for *_, one in found)))


def _print(records: dict[str, list[Record]], walls: dict[str, list[float]]) -> None:
    print(f"{'launcher':12}{'latency':>24}{'launcher, a case':>20}{'a whole run':>16}")
    for launcher in LAUNCHERS:
        cost_s = median(record.wall_s - phases_s(record) for record in records[launcher])
        run_s = median(walls[launcher])
        print(f"{launcher:12}{interval(records[launcher]):>24}{cost_s:18.2f} s{run_s:14.2f} s")


if __name__ == "__main__":
    main()
