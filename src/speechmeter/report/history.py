"""Levels over many runs as a table, as data, and as a comment for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from speechmeter.analysis.history import Level, Point, Series
from speechmeter.analysis.shifts import FEWEST
from speechmeter.report.numbers import counted, figure
from speechmeter.report.tables import Cell, Row, Table
from speechmeter.report.text import folded

_HEADINGS = ("metric", "since", "commit", "runs", "level", "against the level before", "verdict")
_NO_COMMIT = "–"


def history_table(series: Sequence[Series], runs: int, notes: Sequence[str], min_effect: str) -> Table:
    """One row a level, the oldest of a case first; below it where each shift began and what changed with it."""
    several = len({one.machine for one in series}) > 1
    return Table(
        title=f"Levels over {counted(runs, 'run')}, smallest shift that counts {min_effect}",
        metric=None,
        labels=("case", "machine") if several else ("case",),
        columns=_HEADINGS,
        rows=tuple(row for one in series for row in _rows(one, several)),
        notes=(*(line for one in series for line in _shift_notes(one)), *_few(series), *notes),
    )


def _rows(one: Series, several: bool) -> Iterator[Row]:
    for number, level in enumerate(one.levels):
        labels = (one.case.label, one.machine) if number == 0 else ("", "")
        yield Row(labels=labels if several else labels[:1], cells=tuple(Cell(word=text) for text in _texts(one, level)))


def _texts(one: Series, level: Level) -> list[str]:
    first = level.points[0]
    runs = f"{len(level.points)}" + (f" ({level.wild} wild)" if level.wild else "")
    return [
        one.metric.name,
        first.started[:16].replace("T", " "),
        first.commit or _NO_COMMIT,
        runs,
        figure(level.figure),
        _ratio(level),
        _verdict(one, level),
    ]


def _ratio(level: Level) -> str:
    if level.shift is None:
        return "–"
    bounds = "" if level.shift.low is None else f" ({level.shift.low:.3f} to {level.shift.high:.3f})"
    return f"{level.shift.ratio:.3f}{bounds}"


def _verdict(one: Series, level: Level) -> str:
    if level.shift is not None:
        return level.shift.word
    if not one.judged:
        return "too few runs"
    return "no shift" if len(one.levels) == 1 else "–"


def _shift_notes(one: Series) -> Iterator[str]:
    for level in one.levels:
        if level.shift is not None:
            changed = f"; changed with it: {', '.join(level.shift.changed)}" if level.shift.changed else ""
            yield (
                f"{one.case.label} {one.metric.name} {level.shift.word} from {_place(level.points[0])}; "
                f"the run before is {_place(level.shift.before)}{changed}"
            )


def _place(point: Point) -> str:
    return f"{point.commit} ({point.run})" if point.commit else point.run


def _few(series: Sequence[Series]) -> list[str]:
    short = sum(not one.judged for one in series)
    if not short:
        return []
    return [f"too few runs for a shift to be seen: {short} of {len(series)} series; {FEWEST} are the least"]


def history_github(table: Table, series: Sequence[Series]) -> str:
    """A comment for a pull request or an issue: the outcome in one line, the table folded below it."""
    worse = [one for one in series if one.regressed]
    if worse:
        head = "❌ **Regression:** " + ", ".join(
            f"{one.case.label} {one.metric.name} {_verdict(one, one.levels[-1])} "
            f"since {one.levels[-1].points[0].commit or one.levels[-1].points[0].run}"
            for one in worse
        )
    elif not any(one.judged for one in series):
        head = "❔ **Cannot tell:** too few runs"
    else:
        head = f"✅ **No regression** at the end of {len(series)} series"
    return folded(head, table)


def history_json(series: Sequence[Series], notes: Sequence[str]) -> str:
    """Everything as data, a point for each run."""
    return json.dumps({"series": [_data(one) for one in series], "notes": list(notes)}, ensure_ascii=False, indent=2)


def _data(one: Series) -> dict[str, Any]:
    return {
        "case": one.case.label,
        "id": one.case.id,
        "metric": one.metric.id,
        "unit": one.metric.unit,
        "machine": one.machine,
        "noise": one.noise,
        "judged": one.judged,
        "regressed": one.regressed,
        "levels": [_level(level) for level in one.levels],
    }


def _level(level: Level) -> dict[str, Any]:
    shift = level.shift
    return {
        "text": figure(level.figure),
        "value": level.figure.value,
        "low": level.figure.low,
        "high": level.figure.high,
        "wild": level.wild,
        "points": [
            {"run": p.run, "started": p.started, "commit": p.commit, "value": p.figure.value} for p in level.points
        ],
        "shift": shift
        and {
            "verdict": shift.word,
            "regression": shift.regression,
            "ratio": shift.ratio,
            "low": shift.low,
            "high": shift.high,
            "commit": level.points[0].commit,
            "commit_before": shift.before.commit,
            "changed": shift.changed,
        },
    }
