"""The answer of a tuning: the configuration to use, what it gains, what each change adds, what became of the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from speechmeter.analysis.difference import Difference, paired
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.racing import Logs
from speechmeter.analysis.tuned import State, goal_metric
from speechmeter.analysis.tuning import DEFAULT, FRESH, RACE, contributions
from speechmeter.core import metrics
from speechmeter.core.types import Case, Record

Outcome = Literal["better", "same", "cannot tell", "unfinished", "failed"]
Fate = Literal["default", "chosen", "close", "slower", "refused", "unavailable", "not measured", "screened"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """A ratio of the goal's metric, new by old, with its 95 % interval; without bounds where there is a single round.

    `is_better` says that it is a change for the better.
    """

    ratio: float
    low: float | None
    high: float | None
    rounds: int
    is_better: bool


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What one change adds: alone, made to the default; and removed, what is lost without it. None: not measured."""

    axis: str
    value: Any
    default: Any
    alone: Change | None
    removed: Change | None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One combination, and what became of it. `change` is against the default in the rounds that both have.

    `behind` is what it was dropped for, after `rounds` of the race.
    """

    values: Mapping[str, Any]
    changes: Mapping[str, Any]
    fate: Fate
    rounds: int = 0
    change: Change | None = None
    behind: Change | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The outcome in a word, and what it rests on. `figures` are those of default and chosen in fresh rounds.

    `answer` is the combination to use. `interaction` is what the changes do together beyond the sum of each alone.
    """

    outcome: Outcome
    reason: str
    goal: str
    min_effect: float
    default: Candidate
    chosen: Candidate | None
    answer: Candidate
    case: Case | None
    gain: Change | None
    figures: tuple[Estimate | None, Estimate | None]
    contributions: tuple[Contribution, ...]
    interaction: Change | None
    candidates: tuple[Candidate, ...]
    close: tuple[Candidate, ...]
    together: tuple[tuple[str, str], ...]
    dropped_values: tuple[tuple[str, Any, Change], ...]
    trials: int
    tried: int
    seconds: float
    by_stage: Mapping[str, int]
    stages_done: str


def answer_of(state: State) -> Answer:
    """The answer as far as the records give one."""
    step, tuning = state.step, state.tuning
    every = [record for own in state.records.values() for record in own]
    logs = {one: _above(rounds, step.fresh_from) for one, rounds in state.problem.logs.items()}
    gain = step.gain.difference if step.gain is not None else None
    chosen = step.chosen
    fates = [_candidate(state, index) for index in range(len(state.cells))]
    absent = [_unavailable(state, cell, reason) for cell, reason in state.absent.items()]
    outcome, reason = _outcome(state)
    parts = _contributions(state, logs)
    own = state.records.get(step.answer, ())
    return Answer(
        outcome=outcome, reason=reason, goal=tuning.goal.name, min_effect=tuning.min_effect,
        default=fates[DEFAULT], chosen=fates[chosen] if chosen is not None else None, answer=fates[step.answer],
        case=own[0].case if own else None,
        gain=change_of(gain, state), figures=(_figure(state, DEFAULT), _figure(state, chosen)),
        contributions=parts, interaction=_interaction(state, logs), candidates=(*fates, *absent),
        close=tuple(fates[one] for one in step.close),
        together=_together(state), dropped_values=_dropped(state),
        trials=len(every), tried=len(state.records), seconds=math.fsum(record.wall_s for record in every),
        by_stage=_by_stage(every), stages_done=step.stage,
    )  # fmt: skip


def change_of(found: Difference | None, state: State) -> Change | None:
    """A difference of logarithms of the goal as a ratio of the metric that is shown."""
    if found is None:
        return None
    low, high = found.bounds
    if state.tuning.goal.shown == metrics.RTFX:
        ends = math.exp(-high), math.exp(-low)
        return Change(ratio=math.exp(-found.mean), low=ends[0], high=ends[1], rounds=found.rounds,
                      is_better=found.mean < 0)  # fmt: skip
    return Change(
        ratio=math.exp(found.mean), low=math.exp(low), high=math.exp(high), rounds=found.rounds,
        is_better=found.mean < 0,
    )  # fmt: skip


def _point(mean: float, rounds: int, state: State) -> Change:
    sign = -1 if state.tuning.goal.shown == metrics.RTFX else 1
    return Change(ratio=math.exp(sign * mean), low=None, high=None, rounds=rounds, is_better=mean < 0)


def _above(rounds: Mapping[int, float], first: int) -> dict[int, float]:
    return {at: value for at, value in rounds.items() if at >= first}


def _outcome(state: State) -> tuple[Outcome, str]:
    step = state.step
    if state.default_failure:
        return "failed", f"the default failed: {state.default_failure}"
    if (0,) * len(state.tuning.axes) in state.absent:
        return "failed", f"the default is unavailable: {state.absent[(0,) * len(state.tuning.axes)]}"
    if step.stage != "done":
        return "unfinished", ""
    if step.gain is None and step.close:
        return "cannot tell", ""
    if step.gain is None or step.gain.word in ("SAME", "WORSE"):
        return "same", ""
    if step.gain.word == "BETTER":
        return "better", ""
    return "cannot tell", ""


def _figure(state: State, cell: int | None) -> Estimate | None:
    own = state.fresh(cell) if cell is not None else []
    own = own or list(state.records.get(cell, ())) if cell is not None else []
    if not own:
        return None
    shown, metric = state.tuning.goal.shown, goal_metric(own, state.tuning)
    if shown == metrics.MACHINE_COST:
        found = estimate(own, metric)
        return None if found is None else found.scaled(shown, 1000 * (state.tuning.price or 0.0))
    return estimate(own, shown or metric)


def _shared(logs: Logs, base: int, new: int) -> Difference | None:
    old, fresh = logs.get(base, {}), logs.get(new, {})
    rounds = [at for at in fresh if at in old]
    return paired({at: old[at] for at in rounds}, {at: fresh[at] for at in rounds}) if len(rounds) > 1 else None


def _contributions(state: State, logs: Logs) -> tuple[Contribution, ...]:
    chosen = state.step.chosen
    if chosen is None or chosen == DEFAULT:
        return ()
    found = []
    names = list(state.tuning.axes)
    for axis, (alone, removed) in contributions(state.problem, chosen).items():
        values = state.tuning.axes[names[axis]]
        found.append(Contribution(
            axis=names[axis], value=values[state.cells[chosen][axis]], default=values[0],
            alone=change_of(_shared(logs, DEFAULT, alone), state) if alone is not None else None,
            removed=change_of(_shared(logs, chosen, removed), state) if removed is not None else None,
        ))  # fmt: skip
    return tuple(found)


def _interaction(state: State, logs: Logs) -> Change | None:
    """What is left of the gain when the change of each axis alone is taken off, in the rounds that all of them have."""
    chosen = state.step.chosen
    parts = contributions(state.problem, chosen) if chosen is not None else {}
    alone = [cells[0] for cells in parts.values() if cells[0] is not None]
    if chosen is None or len(alone) < 2 or len(alone) < len(parts):
        return None
    held = [logs.get(one, {}) for one in (DEFAULT, chosen, *alone)]
    rounds = sorted(set.intersection(*map(set, held)))
    default = {at: logs[DEFAULT][at] for at in rounds}
    sums = {at: default[at] + math.fsum(logs[one][at] - default[at] for one in alone) for at in rounds}
    return change_of(paired(sums, {at: logs[chosen][at] for at in rounds}) if len(rounds) > 1 else None, state)


def _candidate(state: State, index: int) -> Candidate:
    step, problem = state.step, state.problem
    own = problem.logs.get(index, {})
    early = {one: {at: v for at, v in problem.logs.get(one, {}).items() if at < FRESH} for one in (DEFAULT, index)}
    change = change_of(_shared(early, DEFAULT, index), state) if index != DEFAULT else None
    if change is None and index != DEFAULT and (common := early[DEFAULT].keys() & early[index].keys()):
        mean = math.fsum(early[index][at] - early[DEFAULT][at] for at in common) / len(common)
        change = _point(mean, len(common), state)
    drop = step.standing.dropped.get(index) if step.standing is not None else None
    fate: Fate = "not measured"
    if index in problem.refused:
        fate = "refused"
    elif index == DEFAULT:
        fate = "default"
    elif index == step.chosen:
        fate = "chosen"
    elif index in step.close:
        fate = "close"
    elif drop is not None:
        fate = "slower"
    elif own:
        fate = "screened"
    return Candidate(
        values=state.values(index), changes=state.changes(index), fate=fate, rounds=len(own), change=change,
        behind=_point(drop.behind, drop.rounds, state) if drop is not None else None,
        reason=state.reasons.get(index, ""),
    )  # fmt: skip


def _unavailable(state: State, cell: tuple[int, ...], reason: str) -> Candidate:
    named = [(name, values[at], at) for (name, values), at in zip(state.tuning.axes.items(), cell, strict=True)]
    return Candidate(
        values={name: value for name, value, _ in named}, changes={name: value for name, value, at in named if at},
        fate="unavailable", reason=reason,
    )  # fmt: skip


def _together(state: State) -> tuple[tuple[str, str], ...]:
    names = list(state.tuning.axes)
    screen = state.step.screen
    return tuple((names[one], names[other]) for one, other in screen.together) if screen is not None else ()


def _dropped(state: State) -> tuple[tuple[str, Any, Change], ...]:
    screen, axes = state.step.screen, list(state.tuning.axes.items())
    found = screen.dropped if screen is not None else {}
    return tuple((axes[axis][0], axes[axis][1][value], _point(behind, 3, state))
                 for (axis, value), behind in (found or {}).items())  # fmt: skip


def _by_stage(records: Sequence[Record]) -> dict[str, int]:
    found = {"screen": 0, "race": 0, "fresh": 0}
    for record in records:
        found["fresh" if record.round >= FRESH else "race" if record.round >= RACE else "screen"] += 1
    return found
