"""How often does `compare` call identical code different, and does it find a slowdown that is there?

Real runs on this machine: pairs of subjects of known relative cost (`subjects/work.py`), each process fresh and the two
of a pair side by side, as `speechmeter run` always measures the subjects of a cell. Sets of rounds are drawn and judged

- by `analysis.compare` (adjacent pairs, and the same rounds unpaired),
- by Mann-Whitney and by Welch's t on the pooled raw samples, as most scripts do,

first for the two identical subjects (A/A: every verdict is false), then for true differences of 5 % and 10 %.

On a shared host the power depends on the hour. So the spread of adjacent pairs is printed, and below the measured power
that of the same verdict on simulated pairs: with the spread found here, and with 0.07, that of a calmer machine.

    python benchmarks/aa.py [--rounds 26] [--run DIR]     about 7 minutes; exit 1 when a verdict is no
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, stdev

from scipy import stats

import speechmeter
from speechmeter.analysis.compare import verdict
from speechmeter.core import metrics
from speechmeter.core.axes import Axes
from speechmeter.core.protocol import OtherProtocol
from speechmeter.core.types import Case, Measurement, Record, Spec

WORK = Path(__file__).parent / "subjects" / "work.py"
BASE, OTHERS = "first", ("second", "plus10", "plus5")
RESAMPLED = 500
MIN_EFFECT = 0.02
FALSE_LIMIT = 0.08
POWER_LIMIT = 0.80
CALM = 0.07

Pair = tuple[list[Record], list[Record]]
Judge = Callable[[Sequence[Record], Sequence[Record]], bool]


def measured(other: str, rounds: int, output: Path) -> Pair:
    """Records of `first` and of another subject by round, from a run that is made or gone on with."""
    plan = {
        "models": [{"name": name, "load": f"python:{WORK}:{name}"} for name in (BASE, other)],
        "seconds": 1,
        "threads": 1,
        "meters": ["latency"],
        "rounds": rounds,
        "warmup": 2,
        "samples": 10,
    }
    run = speechmeter.run(plan, output=output / other, resume=True)
    found: dict[str, list[Record]] = {BASE: [], other: []}
    for record in sorted(run.records, key=lambda record: record.round):
        if record.status != "ok":
            raise RuntimeError(f"{record.case.label}: {record.reason}")
        found[record.case.subject.name].append(record)
    return found[BASE], found[other]


def differs(base: Sequence[Record], new: Sequence[Record], *, together: bool) -> bool:
    """Whether our verdict is SLOWER or FASTER."""
    return verdict(base, new, metrics.LATENCY, MIN_EFFECT, together=together).word in ("SLOWER", "FASTER")


def pooled(records: Sequence[Record]) -> list[float]:
    """All raw samples, as if they were independent."""
    return [value for record in records for value in record.find(metrics.LATENCY.id).values]


def mann_whitney(base: Sequence[Record], new: Sequence[Record]) -> bool:
    """Significant at 5 % on pooled samples."""
    return bool(stats.mannwhitneyu(pooled(base), pooled(new)).pvalue < 0.05)


def pooled_t(base: Sequence[Record], new: Sequence[Record]) -> bool:
    """Significant at 5 % on pooled samples."""
    return bool(stats.ttest_ind(pooled(base), pooled(new), equal_var=False).pvalue < 0.05)


JUDGES: dict[str, Judge] = {
    "compare, adjacent pairs": lambda base, new: differs(base, new, together=True),
    "compare, unpaired": lambda base, new: differs(base, new, together=False),
    "pooled Mann-Whitney": mann_whitney,
    "pooled Welch t": pooled_t,
}


def share(judge: Judge, base: Sequence[Record], new: Sequence[Record], size: int) -> tuple[float, float, float]:
    """(share of verdicts, lower and upper 95 % bound) over random sets of `size` rounds, sides swapped at random."""
    choose = random.Random(size)
    hits = 0
    for _ in range(RESAMPLED):
        rounds = sorted(choose.sample(range(len(base)), size))
        sides = [[records[r] for r in rounds] for records in (base, new)]
        if choose.random() < 0.5:
            sides.reverse()
        hits += judge(*sides)
    bounds = stats.binomtest(hits, RESAMPLED).proportion_ci(0.90)
    return hits / RESAMPLED, bounds.low, bounds.high


def print_rows(title: str, base: Sequence[Record], new: Sequence[Record], size: int) -> tuple[float, float, float]:
    """A line for each judge; what ours reached."""
    print(f"\n{title}, {size} rounds, {RESAMPLED} resampled pairs")
    found = {name: share(judge, base, new, size) for name, judge in JUDGES.items()}
    for name, (value, low, high) in found.items():
        print(f"  {name:26}{value:7.1%}   one-sided 95 % bounds {low:.1%} and {high:.1%}")
    return found["compare, adjacent pairs"]


def simulated(effect: float, spread: float, size: int) -> float:
    """Share of true effects found by our verdict when the log ratios of adjacent pairs spread by `spread`."""
    generator = random.Random(1)
    hits = 0
    for _ in range(RESAMPLED):
        logs = [generator.gauss(math.log1p(effect), spread) for _ in range(size)]
        sides = [[_record(name, n, value) for n, value in enumerate(values)] for name, values in _sides(logs)]
        hits += differs(*sides, together=True)
    return hits / RESAMPLED


def _sides(logs: Sequence[float]) -> list[tuple[str, list[float]]]:
    return [("base", [1.0] * len(logs)), ("new", [math.exp(log) for log in logs])]


def _record(name: str, round_: int, value: float) -> Record:
    spec = Spec(plugin="simulated", name=name)
    case = Case(subject=spec, workload=spec, axes=Axes(), meters=("latency",), protocol=OtherProtocol())
    measured = (Measurement.of(metrics.LATENCY, [value]),)
    return Record(case=case, round=round_, sequence=2 * round_, status="ok", measurements=measured)


def print_simulated(effect: float, pair: Pair, size: int) -> None:
    """What the verdict would find with this machine's spread, and with a calmer one's."""
    here = spread_of(pair)
    for spread in (here, CALM):
        print(f"  simulated, log sd {spread:.3f}     {simulated(effect, spread, size):6.1%}")


def spread_of(pair: Pair) -> float:
    """Standard deviation of the log ratios of adjacent pairs."""
    return stdev(math.log(median(pooled([new])) / median(pooled([base]))) for base, new in zip(*pair, strict=True))


def say(claim: str, holds: bool) -> bool:
    """Print a claim and whether it holds."""
    print(f"{claim}: {'yes' if holds else 'no'}")
    return holds


def print_pair(name: str, pair: Pair) -> None:
    """The ratio over all rounds, and how far adjacent pairs spread."""
    found = verdict(*pair, metrics.LATENCY, MIN_EFFECT, together=True)
    interval = f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})"
    print(f"{name:7} / {BASE}: {interval}, {found.rounds} pairs, log sd of adjacent pairs {spread_of(pair):.3f}")


def judge_all(pairs: dict[str, Pair]) -> bool:
    """Print all tables; whether every claim holds."""
    for name, pair in pairs.items():
        print_pair(name, pair)
    false = print_rows("A/A: share of false verdicts", *pairs["second"], 8)
    ten = print_rows("A true 10 %: share found", *pairs["plus10"], 8)
    print_simulated(0.10, pairs["plus10"], 8)
    five = print_rows("A true 5 %: share found", *pairs["plus5"], 20)
    print_simulated(0.05, pairs["plus5"], 20)
    print()
    return all(
        [
            say(f"false verdicts, upper bound ≤ {FALSE_LIMIT:.0%}", false[2] <= FALSE_LIMIT),
            say(f"10 % found with 8 rounds in ≥ {POWER_LIMIT:.0%}", ten[0] >= POWER_LIMIT),
            say(f"5 % found with 20 rounds in ≥ {POWER_LIMIT:.0%}", five[0] >= POWER_LIMIT),
        ]
    )


def main() -> int:
    """Measure, or go on with a run, and judge; 0 when every claim holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=26)
    parser.add_argument("--run", type=Path, help="keep the runs here, and use what they already hold")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = options.run or Path(folder)
        pairs = {name: measured(name, options.rounds, output) for name in OTHERS}
    processes = sum(len(side) for pair in pairs.values() for side in pair)
    print(f"{processes} fresh processes, smallest effect that counts {MIN_EFFECT:.0%}")
    return 0 if judge_all(pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
