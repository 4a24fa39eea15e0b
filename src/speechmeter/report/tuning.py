"""The answer of a tuning in words, tables and as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.tuned import state_of
from speechmeter.analysis.tuning import RACE
from speechmeter.analysis.tuning_answer import Answer, Candidate, Change, Contribution, answer_of
from speechmeter.core.metrics import RTFX
from speechmeter.core.tuning import GOALS, Tuning
from speechmeter.core.types import Record
from speechmeter.report.escaping import json_of
from speechmeter.report.numbers import counted
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table

_MOST = 15
"""Candidates that a table lists; `json` has all."""
_MOST_REFUSED = 3
_NOT_ASKED = "this run was not made by `speechmeter tune`"
_WORDS = {
    "rtfx": "RTFx", "latency": "latency", "memory": "memory", "energy": "energy per audio hour",
    "cost": "cost per 1,000 audio hours",
}  # fmt: skip


def tuning_tables(records: Sequence[Record], tuning: Tuning | None = None) -> list[Table]:
    """The view `tune`: the answer, what each change adds, and what became of the candidates."""
    if tuning is None:
        return [Table(title="tuning", metric=None, labels=("candidate",), columns=(), rows=(), notes=(_NOT_ASKED,))]
    return answer_tables(answer_of(state_of(records, tuning)))


def answer_tables(answer: Answer) -> list[Table]:
    """The tables of an answer."""
    tables = [_answer(answer)]
    if answer.contributions:
        tables.append(_contributions(answer))
    return [*tables, _candidates(answer)]


def words_of(candidate: Candidate) -> str:
    """`threads 1, batch 4`: in what a candidate differs from the default."""
    return ", ".join(f"{name} {_value(value)}" for name, value in candidate.changes.items()) or "default"


def headline(answer: Answer) -> list[str]:
    """What to do, in one line or a few."""
    goal, effect = _WORDS[answer.goal], f"{answer.min_effect * 100:.3g} %"
    if answer.outcome == "failed":
        return [f"nothing was tuned: {answer.reason}"]
    if answer.outcome == "unfinished":
        return ["this tuning is unfinished: --resume continues it"]
    close = [
        f"cannot tell between {words_of(answer.chosen)} and {words_of(one)}: the time ended before they were told "
        "apart; the simpler one is recommended"
        for one in answer.close[:1]
        if answer.chosen is not None and answer.answer is answer.chosen
    ]
    if answer.outcome == "same":
        if answer.gain is None:
            return [f"keep the default: no other configuration is better in {goal} by {effect} or more", *close]
        return [
            f"keep the default: the best that was found ({words_of(_known(answer.chosen))}) is not better in {goal} by "
            f"{effect} or more: {change_words(answer.gain)}",
            *close,
        ]
    if answer.outcome == "cannot tell" and answer.gain is None:
        return ["keep the default: the time ended before others were told apart; --within gives it more"]
    if answer.outcome == "cannot tell":
        gain = f": {goal} {change_words(answer.gain)}" if answer.gain is not None else ""
        return [f"cannot tell between the default and {words_of(_known(answer.chosen))}{gain}; the default is simpler",
                *close]  # fmt: skip
    assert answer.gain is not None
    return [f"use {words_of(answer.answer)}: {goal} {change_words(answer.gain)} against the default", *close]


def answer_lines(answer: Answer) -> list[str]:
    """The answer in a line, then what it rests on, in a line each: what a page shows of it."""
    parts = [
        f"{_change(one)}: alone {_cell(one.alone).word}, removed from the chosen {_cell(one.removed).word}"
        for one in answer.contributions
    ]
    return [*headline(answer), *parts, *_idle(answer), _cost(answer)]


def _idle(answer: Answer) -> list[str]:
    """A line on the changes that may be left out, because nothing is lost without them."""
    idle = [
        f"{one.axis} {_value(one.value)}"
        for one in answer.contributions
        if one.removed is not None and one.removed.low is not None and one.removed.high is not None
        and max(abs(math.log(one.removed.low)), abs(math.log(one.removed.high))) <= math.log1p(answer.min_effect)
    ]  # fmt: skip
    if not idle:
        return []
    return [f"less than {answer.min_effect * 100:.3g} % is lost without {' or without '.join(idle)}"]


def _known(candidate: Candidate | None) -> Candidate:
    assert candidate is not None
    return candidate


def change_words(change: Change) -> str:
    """`+32 % [+27 %, +38 %]`."""
    if change.low is None or change.high is None:
        return _percent(change.ratio)
    return f"{_percent(change.ratio)} [{_percent(change.low)}, {_percent(change.high)}]"


def _percent(ratio: float) -> str:
    value = 100 * (ratio - 1)
    return f"{value:+,.0f} %" if abs(value) >= 99.5 else f"{value:+.2g} %"


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(change: Change | None) -> Cell:
    return Cell(word=NOT_MEASURED if change is None else change_words(change))


def _answer(answer: Answer) -> Table:
    default, chosen = answer.figures
    rows = [Row(labels=("default", _settings(answer.default)), cells=(_figure(default), Cell(word="")))]
    if answer.chosen is not None and answer.chosen.fate != "default":
        label = "chosen" if answer.answer is answer.chosen else "best found"
        rows.append(Row(labels=(label, _settings(answer.chosen)), cells=(_figure(chosen), _cell(answer.gain))))
    gain = answer.gain
    notes = [
        *headline(answer),
        *([f"default and chosen: {counted(gain.rounds, 'fresh round')}, measured after the choice; 95 % interval over "
           "paired rounds"] if gain is not None else []),
        _cost(answer),
    ]  # fmt: skip
    goal = GOALS[answer.goal]
    column = (goal.shown or goal.metrics[0]).title if goal.shown != RTFX else "RTFx"
    return Table(
        title=f"Tuned for {_WORDS[answer.goal]}", metric=None, labels=("configuration", "values"),
        columns=(column, "change"), rows=tuple(rows), notes=tuple(notes),
    )  # fmt: skip


def _figure(found: Estimate | None) -> Cell:
    return Cell(word=NOT_MEASURED) if found is None else Cell(estimate=found)


def _settings(candidate: Candidate) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in candidate.values.items())


def _cost(answer: Answer) -> str:
    stages = ", ".join(f"{name} {count}" for name, count in answer.by_stage.items() if count)
    every = len(answer.candidates)
    return (
        f"{counted(answer.trials, 'trial')} of {answer.tried} of {counted(every, 'configuration')} in "
        f"{answer.seconds / 60:.1f} min ({stages})"
    )


def _contributions(answer: Answer) -> Table:
    rows = [Row(labels=(_change(one),), cells=(_cell(one.alone), _cell(one.removed))) for one in answer.contributions]
    if answer.interaction is not None:
        rows.append(Row(labels=("together, beyond the sum (interaction)",),
                        cells=(_cell(answer.interaction), Cell(word=""))))  # fmt: skip
    return Table(
        title="What each change adds", metric=None, labels=("change",),
        columns=("alone, to the default", "removed from the chosen"), rows=tuple(rows),
        notes=("95 % intervals over paired fresh rounds", *_idle(answer)),
    )  # fmt: skip


def _change(one: Contribution) -> str:
    return f"{one.axis}: {_value(one.default)} → {_value(one.value)}"


_ORDER = ("chosen", "close", "default", "refused", "slower", "screened", "unavailable", "not measured")


def _candidates(answer: Answer) -> Table:
    listed = [one for one in answer.candidates if one.fate not in ("not measured", "unavailable")]
    sign = 1 if answer.goal != "rtfx" else -1

    def place(one: Candidate) -> tuple[int, float]:
        return _ORDER.index(one.fate), sign * one.change.ratio if one.change is not None else 0.0

    listed.sort(key=place)
    refused = [one for one in listed if one.fate == "refused"]
    cut = refused[_MOST_REFUSED:]
    listed = [one for one in listed if one not in cut]
    rows = [
        Row(labels=(words_of(one),), cells=(Cell(word=one.fate), _cell(one.change), Cell(word=str(one.rounds)),
                                            Cell(word=_why(one))))
        for one in listed[:_MOST]
    ]  # fmt: skip
    notes = []
    if more := len(listed[_MOST:]) + len(cut):
        words = f", {len(cut)} of them refused" if cut else ""
        notes.append(f"{counted(more, 'more candidate')}{words}: --format json lists all")
    counts = {fate: sum(one.fate == fate for one in answer.candidates) for fate in ("not measured", "unavailable")}
    if counts["not measured"]:
        notes.append(f"not measured: {counted(counts['not measured'], 'configuration')}, because single changes and "
                     "pairs showed that they cannot be the best")  # fmt: skip
    reasons = {one.reason for one in answer.candidates if one.fate == "unavailable"}
    notes += [f"unavailable: {reason}" for reason in sorted(reasons)]
    notes += [f"{axis} {_value(value)} was dropped in the screen: alone {change_words(change)} against the best value"
              for axis, value, change in answer.dropped_values]  # fmt: skip
    if answer.together:
        pairs = ", ".join(f"{one} and {other}" for one, other in answer.together)
        notes.append(f"these axes do not act alone: {pairs}")
    return Table(
        title="Candidates, against the default", metric=None, labels=("candidate",),
        columns=("result", "change before the fresh rounds", "rounds", "reason"), rows=tuple(rows), notes=tuple(notes),
    )  # fmt: skip


def _why(one: Candidate) -> str:
    if one.reason:
        faster = "better, but " if one.fate == "refused" and one.change is not None and one.change.is_better else ""
        return f"{faster}{one.reason}"
    if one.behind is not None:
        return f"dropped after {counted(one.behind.rounds, 'round')}, {change_words(one.behind)} against the first"
    return ""


def chosen_plan(plan: Mapping[str, Any], answer: Answer) -> str:
    """The plan of the configuration to use, as YAML."""
    import yaml

    kept = {key: value for key, value in plan.items() if key != "tune"}
    kept |= {name: [value] for name, value in answer.answer.values.items()}
    kept["meters"] = [name for name in kept["meters"] if name != "outputs"]
    comments = "".join(f"# {line}\n" for line in headline(answer))
    return comments + yaml.safe_dump(kept, sort_keys=False, allow_unicode=True)


def answer_json(answer: Answer, plan: str = "", command: str = "", notes: Sequence[str] = ()) -> str:
    """Everything as data."""
    return json_of(answer_data(answer, plan, command, notes))


def answer_data(answer: Answer, plan: str = "", command: str = "", notes: Sequence[str] = ()) -> dict[str, Any]:
    """An answer as plain data."""
    return {
        "outcome": answer.outcome,
        "words": headline(answer),
        "goal": answer.goal,
        "min_effect": answer.min_effect,
        "answer": dict(answer.answer.values),
        "changes": dict(answer.answer.changes),
        "gain": _data(answer.gain),
        "contributions": [
            {"axis": one.axis, "value": one.value, "default": one.default, "alone": _data(one.alone),
             "removed": _data(one.removed)} for one in answer.contributions
        ],
        "interaction": _data(answer.interaction),
        "candidates": [_candidate_data(one) for one in answer.candidates],
        "close": [dict(one.values) for one in answer.close],
        "axes_that_interact": [list(pair) for pair in answer.together],
        "trials": answer.trials,
        "trials_by_stage": dict(answer.by_stage),
        "first_race_round": RACE,
        "seconds": answer.seconds,
        "plan": plan,
        "command": command,
        "notes": list(notes),
    }  # fmt: skip


def _candidate_data(one: Candidate) -> Mapping[str, Any]:
    return {
        "values": dict(one.values), "result": one.fate, "rounds": one.rounds, "change": _data(one.change),
        "dropped": _data(one.behind), "reason": one.reason,
    }  # fmt: skip


def _data(change: Change | None) -> Mapping[str, Any] | None:
    if change is None:
        return None
    return {
        "ratio": change.ratio, "low": change.low, "high": change.high, "rounds": change.rounds,
        "is_better": change.is_better,
    }  # fmt: skip
