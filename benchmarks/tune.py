"""Does `tune` choose the best configuration? Simulated landscapes whose best is known, with the noise of real rounds.

Every landscape has 48 candidates: five axes with 3, 2, 2, 2 and 2 values. Their logarithms are known; a round adds the
state of the machine, common to all, and lognormal noise of each candidate, whose spread differs between candidates as
it does in `examples/runs`. The steps are those of `speechmeter tune` itself (`analysis.tuning`). Limits, with 50 seeds:

- the true best, or one within the smallest effect of it, is chosen in at least 95 % of the runs;
- where all are equal, the answer is the default in at least 95 %;
- where the best leads by more than twice the smallest effect, at most 30 % of the measurements are needed that all
  candidates take with the rounds of the winner.

    python benchmarks/tune.py [--seeds=50]        about 5 minutes; exit 1 when a limit does not hold
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from speechmeter.analysis.screening import Cell
from speechmeter.analysis.tuning import DEFAULT, Budget, Problem, Step, next_step

LEVELS = (3, 2, 2, 2, 2)
SIX = (3, 2, 4, 2, 2, 3)
CELLS: tuple[Cell, ...] = tuple(product(*map(range, LEVELS)))
DELTA = math.log1p(0.05)
SD = 0.04
"""Of one round of one case, without what all cases of the round share: the median over the cases of `cpu-grid` and
`accuracy-vs-cost` in `examples/runs` (0.047 and 0.038)."""
DEGREES = 10
"""How much that differs between candidates: as variances with so many degrees of freedom do."""
MACHINE = 0.05
"""What the rounds of all cases have in common."""

Truth = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Landscape:
    """The true logarithms of all cells."""

    name: str
    truth: Truth

    @property
    def lead(self) -> float:
        """How far the best is ahead of the second."""
        first, second = np.sort(self.truth)[:2]
        return float(second - first)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One simulated run: the steps' answer, how far it is from the best, and what it took."""

    step: Step
    answer: int
    behind: float
    measurements: int
    winner_rounds: int
    cells: int
    by_stage: dict[str, int] = field(default_factory=dict)


def additive(seed: int, scale: float, least: float = 0.0, levels: Sequence[int] = LEVELS) -> Truth:
    """Every value of every axis has an effect of its own, of `least` or more either way; nothing else."""
    draw = np.random.default_rng(seed)
    effects = []
    for count in levels:
        own = draw.normal(0, scale, count - 1)
        effects.append(np.concatenate([[0.0], own + least * np.sign(own) * np.arange(1, count)]))
    return np.array(
        [sum(effects[axis][value] for axis, value in enumerate(cell)) for cell in product(*map(range, levels))]
    )


def interacting(seed: int, scale: float, share: float, least: float = 0.0) -> Truth:
    """Additive, and two pairs of axes whose values together do something else."""
    draw = np.random.default_rng(seed + 1000)
    found = additive(seed, scale, least)
    for first, second in ((0, 1), (2, 3)):
        both = np.array([bool(cell[first]) and bool(cell[second]) for cell in CELLS])
        found = found + both * draw.normal(0, share)
    return found


def landscapes() -> list[Landscape]:
    """Twenty: eight additive, four of them with strong effects; six with interactions; two without any structure; two
    whose best is one pair; two of equals."""
    found = [Landscape(name=f"additive {scale:g}", truth=additive(index, scale))
             for index, scale in enumerate((0.05, 0.1, 0.2, 0.4))]  # fmt: skip
    found += [Landscape(name=f"strong {scale:g}", truth=additive(5 + index, scale, 0.12))
              for index, scale in enumerate((0.05, 0.1, 0.2, 0.3))]  # fmt: skip
    found += [Landscape(name=f"interactions {share:g}", truth=interacting(10 + index, 0.2, share))
              for index, share in enumerate((0.05, 0.1, 0.3))]  # fmt: skip
    found += [Landscape(name=f"strong, interactions {share:g}", truth=interacting(20 + index, 0.1, share, 0.15))
              for index, share in enumerate((0.1, 0.2, 0.4))]  # fmt: skip
    for index, scale in enumerate((0.1, 0.3)):
        draw = np.random.default_rng(30 + index)
        found.append(Landscape(name=f"no structure {scale:g}", truth=draw.normal(0, scale, len(CELLS))))
    for index, depth in enumerate((0.12, 0.3)):  # the best is one pair of values, which change nothing alone
        truth = np.zeros(len(CELLS))
        truth[[cell[1] == 1 and cell[3] == 1 for cell in CELLS]] -= depth
        truth += additive(40 + index, 0.02)
        found.append(Landscape(name=f"a pair alone {depth:g}", truth=truth))
    found += [Landscape(name=f"all equal ({which})", truth=np.zeros(len(CELLS))) for which in "ab"]
    return found


def simulate(truth: Truth, seed: int, levels: Sequence[int] = LEVELS, cells: Sequence[Cell] = CELLS) -> Run:
    """One run of tuning, with everything that it asks for measured at once."""
    draw = np.random.default_rng(seed)
    sd = SD * np.sqrt(DEGREES / draw.chisquare(DEGREES, len(cells)))
    logs: dict[int, dict[int, float]] = {}
    state: dict[int, float] = {}
    taken = {"screen": 0, "race": 0, "fresh": 0}
    while True:
        step = next_step(Problem(levels=tuple(levels), cells=tuple(cells), delta=DELTA, logs=logs, budget=Budget()))
        if step.stage == "done":
            break
        common = state.setdefault(step.round, float(draw.normal(0, MACHINE)))
        taken[step.stage] += len(step.wanted)
        for one in step.wanted:
            logs.setdefault(one, {})[step.round] = float(truth[one] + common + draw.normal(0, sd[one]))
    winner = DEFAULT if step.chosen is None else step.chosen
    return Run(
        step=step, answer=step.answer, behind=float(truth[step.answer] - truth.min()),
        measurements=sum(taken.values()), winner_rounds=len(logs[winner]), cells=len(logs), by_stage=taken,
    )  # fmt: skip


def six_axes(seeds: int) -> None:
    """Print what axes that act alone spare where there are six of them: 288 candidates."""
    cells = tuple(product(*map(range, SIX)))
    for index, least in enumerate((0.0, 0.12)):
        truth = additive(60 + index, 0.15, least, SIX)
        runs = [simulate(truth, 100_000 + 1000 * index + seed, SIX, cells) for seed in range(seeds)]
        within = np.mean([run.behind <= DELTA for run in runs])
        share = np.mean([run.measurements / (len(cells) * run.winner_rounds) for run in runs])
        tried = np.mean([run.cells for run in runs])
        print(f"{len(cells)} candidates, effects of {least:g} or more: within 5 % of the best {within:.1%}, "
              f"{tried:.0f} candidates measured, {share:.1%} of the grid")  # fmt: skip


def main(seeds: int) -> int:
    """Print a line for each landscape; 0 when all limits hold."""
    print(f"{'landscape':25}{'lead':>8}{'within 5 %':>12}{'default':>9}{'measured':>10}{'of the grid':>12}{'race':>7}"
          f"{'unsure':>8}")  # fmt: skip
    right, equal, leading, others = [], [], [], []
    for number, landscape in enumerate(landscapes()):
        runs = [simulate(landscape.truth, 1000 * number + seed) for seed in range(seeds)]
        within = [run.behind <= DELTA for run in runs]
        share = [run.measurements / (len(CELLS) * run.winner_rounds) for run in runs]
        to_default = [run.answer == DEFAULT for run in runs]
        unsure = [run.step.gain is not None and run.step.gain.word == "CANNOT TELL" for run in runs]
        if np.ptp(landscape.truth) == 0:
            equal += [one and not other for one, other in zip(to_default, unsure, strict=True)]
        else:
            (leading if landscape.lead > 2 * DELTA else others).extend(share)
        right += within
        race = np.mean([run.by_stage["race"] for run in runs])
        print(f"{landscape.name:25}{landscape.lead:8.3f}{np.mean(within):12.1%}{np.mean(to_default):9.0%}"
              f"{np.mean([run.measurements for run in runs]):10.0f}{np.mean(share):12.1%}{race:7.0f}"
              f"{np.mean(unsure):8.0%}", flush=True)  # fmt: skip
    print()
    six_axes(max(1, seeds // 5))
    print(f"\nwithin 5 % of the best: {np.mean(right):.1%} of {len(right)} runs (limit 95 %)")
    print(f"all equal, and the answer says so: {np.mean(equal):.1%} of {len(equal)} (limit 95 %)")
    mean = float(np.mean(leading)) if leading else math.nan
    print(
        f"share of the grid where the best leads by more than 2 δ: {mean:.1%} (limit 30 %); else {np.mean(others):.1%}"
    )
    return 0 if np.mean(right) >= 0.95 and np.mean(equal) >= 0.95 and mean <= 0.3 else 1


if __name__ == "__main__":
    given = dict(argument.lstrip("-").split("=") for argument in sys.argv[1:])
    sys.exit(main(int(given.get("seeds", 50))))
