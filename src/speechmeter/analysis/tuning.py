"""The steps of tuning, from what was measured alone: a screen, a race, fresh rounds of the default and the chosen one.

Nothing is remembered between two steps, so a run that was stopped continues where it was. The stage of a record
follows from its round: a screen has the rounds from 0 on, a race those from `RACE` on, and fresh rounds begin at
`FRESH`. The gain that is reported comes from fresh rounds alone: of many candidates the one that came out best was also
lucky (the winner's curse), and the rounds of the race would flatter it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

from speechmeter.analysis import screening
from speechmeter.analysis.compare import is_same
from speechmeter.analysis.difference import Difference, Variance, paired
from speechmeter.analysis.intervals import t_quantile
from speechmeter.analysis.racing import Logs, Standing, behind_best, race
from speechmeter.analysis.screening import Cell, Screened

Stage = Literal["screen", "race", "fresh", "done"]
Refusal = Literal["failed", "guard", "limit"]
Word = Literal["BETTER", "SAME", "WORSE", "CANNOT TELL"]

RACE, FRESH = 100, 1000
"""The first round of the race, and the first fresh round."""
DEFAULT = 0
"""The index of the default among the cells."""
FRESH_ROUNDS = (5, 20)
"""The least and the most fresh rounds; once as many again where the first do not decide."""
LIMIT_ROUNDS = 5
"""Rounds from which it is said whether a limit holds."""
_WIDTH = 0.4
"""Half the interval of the gain, as a share of the smallest effect, that the number of fresh rounds aims at."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Seconds that tuning may take, and what each cell took in each round."""

    within_s: float = math.inf
    walls: Logs = field(default_factory=dict)

    def spent(self, before: int) -> float:
        """Seconds of all rounds below this one."""
        return math.fsum(wall for rounds in self.walls.values() for at, wall in rounds.items() if at < before)

    def cost(self, cells: Sequence[int], before: int) -> float:
        """About how many seconds one round of these cells takes, from the rounds below this one alone."""
        own = {one: [wall for at, wall in rounds.items() if at < before] for one, rounds in self.walls.items()}
        every = [wall for walls in own.values() for wall in walls]
        usual = math.fsum(every) / len(every) if every else 0.0
        return math.fsum(fmean(own[one]) if own.get(one) else usual for one in cells)

    def allows(self, round_: int, cells: Sequence[int], reserve: Sequence[int] = ()) -> bool:
        """Whether a round of these cells fits, with the least number of fresh rounds of others after it."""
        if math.isinf(self.within_s):
            return True
        later = FRESH_ROUNDS[0] * self.cost(reserve, round_)
        return self.spent(round_) + self.cost(cells, round_) + later <= self.within_s


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is tuned, and what was measured of it.

    `levels` is the number of values of each axis; `cells` are the combinations that can be measured, the default first.
    `delta` is the smallest effect that matters, as a difference of logarithms. `logs` are of the goal, less is better,
    by cell and round. `refused` cells do not do the job, or break a limit; of `unproven` ones it is not yet known.
    """

    levels: tuple[int, ...]
    cells: tuple[Cell, ...]
    delta: float
    logs: Logs
    refused: Mapping[int, Refusal] = field(default_factory=dict)
    unproven: frozenset[int] = frozenset()
    budget: Budget = field(default_factory=Budget)
    order: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """The place in time of each cell and round, where it is known."""


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The fresh rounds of one cell against another: a difference of logarithms, below 0 where the goal is better."""

    word: Word
    difference: Difference | None


@dataclass(frozen=True, kw_only=True)
class Step:
    """How far tuning is: the cells and the round to measure next, or the answer where the stage is `done`.

    `chosen` is the cell that the race chose; `answer` the one to use, which is the default unless the chosen one is
    better in fresh rounds. `close` are those that the race could not tell from the chosen one when the budget ended.
    """

    stage: Stage
    wanted: tuple[int, ...] = ()
    round: int = 0
    screen: Screened | None = None
    standing: Standing | None = None
    raced: tuple[int, ...] = ()
    chosen: int | None = None
    close: tuple[int, ...] = ()
    gain: Gain | None = None
    fresh_from: int = FRESH
    """The first of the fresh rounds in which default and chosen were measured side by side."""

    @property
    def answer(self) -> int:
        """The cell to use."""
        better = self.gain is not None and self.gain.word == "BETTER"
        return self.chosen if self.chosen is not None and better else DEFAULT


def next_step(problem: Problem) -> Step:
    """What to measure next, or the answer."""
    index = {cell: position for position, cell in enumerate(problem.cells)}
    found: Screened | None = None
    candidates = [one for one in range(len(problem.cells)) if one not in problem.refused]
    if screening.is_worth(problem.levels):
        own, step = _screen(problem, index)
        if step is not None:
            return step
        found = own
        if found is not None:
            kept = [index[cell] for cell in screening.raced(found) if cell in index]
            candidates = [one for one in kept if one not in problem.refused] or [DEFAULT]
    standing = race(_between(problem.logs, RACE, FRESH), candidates, problem.delta, begin=RACE)
    raced = tuple(candidates)
    ended = False
    if standing.missing:
        ended = not problem.budget.allows(standing.wanted, standing.left, (DEFAULT, standing.left[0]))
        if not ended:
            return Step(
                stage="race", wanted=standing.missing, round=standing.wanted, screen=found, standing=standing,
                raced=raced,
            )  # fmt: skip
    chosen, close = _choice(problem, standing, candidates, ended=ended)
    if chosen in problem.unproven and chosen != DEFAULT:
        held = problem.logs.get(chosen, {})
        lacking = next((at for at in range(RACE, RACE + LIMIT_ROUNDS) if at not in held), None)
        if lacking is not None:
            return Step(
                stage="race", wanted=(chosen,), round=lacking, screen=found, standing=standing, raced=raced,
                chosen=chosen,
            )  # fmt: skip
    step = Step(stage="done", screen=found, standing=standing, raced=raced, chosen=chosen, close=close)
    return _fresh(problem, step)


def _between(logs: Logs, first: int, end: int) -> dict[int, dict[int, float]]:
    return {one: {at: value for at, value in rounds.items() if first <= at < end} for one, rounds in logs.items()}


def _screen(problem: Problem, index: Mapping[Cell, int]) -> tuple[Screened | None, Step | None]:
    """What the screen found; or the step that it still needs. Neither where it was cut short by the budget."""
    logs = _between(problem.logs, 0, RACE)
    first = [index[cell] for cell in screening.singles(problem.levels) if cell in index]
    usable = [one for one in first if one not in problem.refused]
    lacking = tuple(one for one in usable if 0 not in logs.get(one, {}))
    if lacking:
        return None, Step(stage="screen", wanted=lacking, round=0)
    of_first = {problem.cells[one]: logs[one][0] for one in usable}
    joined = [index[cell] for cell in screening.pairs(problem.levels, of_first) if cell in index]
    cells = [*usable, *(one for one in joined if one not in problem.refused)]
    for at in range(screening.ROUNDS):
        lacking = tuple(one for one in cells if at not in logs.get(one, {}))
        if lacking and at and not problem.budget.allows(at, lacking):
            return None, None
        if lacking:
            return None, Step(stage="screen", wanted=lacking, round=at)
    refused = {
        next((axis, value) for axis, value in enumerate(problem.cells[one]) if value)
        for one in first
        if problem.refused.get(one) in ("failed", "guard")
    }
    missing = {  # values whose single change cannot be measured here
        (axis, value)
        for axis, count in enumerate(problem.levels)
        for value in range(1, count)
        if tuple(value if at == axis else 0 for at in range(len(problem.levels))) not in index
    }
    own = {position: logs[one] for position, one in enumerate(cells)}
    names = [problem.cells[one] for one in cells]
    return screening.screened(problem.levels, names, own, problem.delta, refused | missing), None


def _choice(
    problem: Problem, standing: Standing, candidates: Sequence[int], *, ended: bool
) -> tuple[int, tuple[int, ...]]:
    """The cell that is chosen, and those that could not be told from it when the budget ended: the simplest of them."""

    def simplicity(one: int) -> tuple[int, float, int]:
        return sum(map(bool, problem.cells[one])), standing.means.get(one, math.inf), one

    left = standing.left
    if ended:
        others = [one for one in left if one != DEFAULT]
        if not others or not standing.means:
            return DEFAULT, tuple(others)
        chosen = min(others, key=simplicity) if DEFAULT not in left else standing.best
        return chosen, tuple(one for one in left if one != chosen)
    if standing.variance is None or not standing.rounds:
        return standing.best, ()
    rounds = range(RACE, RACE + standing.rounds)
    behind = behind_best(problem.logs, candidates, rounds, standing.variance)
    close = [one for one in candidates if one in left or behind.get(one, math.inf) <= problem.delta]
    return min(close, key=simplicity), ()


def contributions(problem: Problem, chosen: int) -> dict[int, tuple[int | None, int | None]]:
    """By changed axis: the cell with this change alone, and the chosen cell without it. Empty for a single change."""
    index = {cell: position for position, cell in enumerate(problem.cells)}
    cell = problem.cells[chosen]
    changed = [axis for axis, value in enumerate(cell) if value]
    if len(changed) < 2:
        return {}
    return {
        axis: (
            index.get(tuple(value if at == axis else 0 for at, value in enumerate(cell))),
            index.get(tuple(0 if at == axis else value for at, value in enumerate(cell))),
        )
        for axis in changed
    }


def _fresh(problem: Problem, step: Step) -> Step:
    """The fresh rounds that are still to be measured, or the answer from them."""
    chosen = step.chosen
    if chosen is None or chosen == DEFAULT:
        return step
    pair = (DEFAULT, chosen)
    more = [
        one
        for cells in contributions(problem, chosen).values()
        for one in cells
        if one is not None and problem.refused.get(one) != "failed"
    ]
    beside = tuple(one for one in dict.fromkeys(more) if one not in pair)
    least = FRESH_ROUNDS[0]
    wanted = fresh_rounds(step.standing.variance if step.standing else None, problem.delta)
    beside = beside if problem.budget.allows(FRESH, [*pair, *beside] * least) else ()
    start = _fresh_from(problem, pair, 2 + len(beside))
    step = replace(step, fresh_from=start)
    logs = _between(problem.logs, start, 2 * FRESH)
    for at in range(start, start + 2 * wanted):
        if at == start + wanted:  # once more as many, where the first did not decide
            gain = gain_of(logs, DEFAULT, chosen, problem.delta)
            if gain.word != "CANNOT TELL":
                break
        if at - start >= least and not problem.budget.allows(at, pair):
            break
        cells = (*pair, *(beside if at - start < least else ()))
        lacking = tuple(one for one in cells if at not in logs.get(one, {}))
        if lacking:
            return replace(step, stage="fresh", wanted=lacking, round=at)
    return replace(step, gain=gain_of(logs, DEFAULT, chosen, problem.delta))


def _fresh_from(problem: Problem, pair: tuple[int, int], cells: int) -> int:
    """The round after the last one in which the default was not measured beside this chosen cell, but beside another.

    That happens where more time, or a refusal, changes what is chosen.
    """
    default, chosen = (problem.order.get(one, {}) for one in pair)
    latest = max((place for rounds in problem.order.values() for place in rounds.values()), default=-1)
    apart = [at for at, place in default.items() if at >= FRESH and abs(chosen.get(at, latest + 1) - place) > cells]
    return max(apart, default=FRESH - 1) + 1


def fresh_rounds(variance: Variance | None, delta: float) -> int:
    """How many fresh rounds give an interval of the gain that is narrow beside the smallest effect."""
    least, most = FRESH_ROUNDS
    if variance is None:
        return least
    needed = (t_quantile(variance.degrees) / (_WIDTH * delta)) ** 2 * 2 * variance.value
    return min(most, max(least, math.ceil(needed)))


def gain_of(logs: Logs, base: int, new: int, delta: float) -> Gain:
    """What the rounds that two cells share say about the second against the first."""
    old, fresh = logs.get(base, {}), logs.get(new, {})
    shared = [at for at in fresh if at in old]
    found = paired({at: old[at] for at in shared}, {at: fresh[at] for at in shared}) if shared else None
    if found is None:
        return Gain(word="CANNOT TELL", difference=None)
    low, high = found.bounds
    word: Word = "CANNOT TELL"
    if abs(found.mean) > delta and (low > 0 or high < 0):
        word = "BETTER" if found.mean < 0 else "WORSE"
    elif is_same(found, delta):
        word = "SAME"
    return Gain(word=word, difference=found)
