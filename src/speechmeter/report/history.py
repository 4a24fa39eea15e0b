"""Levels over many runs as a table, as data, and as a comment for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from speechmeter.analysis.history import FEWEST, Entry, Level, Series
from speechmeter.report.escaping import json_of, markdown_text
from speechmeter.report.numbers import counted, figure
from speechmeter.report.tables import Cell, Row, Table
from speechmeter.report.text import folded

_HEADINGS = ("metric", "since", "commit", "runs", "level", "against the previous level", "verdict")
_NO_COMMIT = "–"
_FAILED = "FAILED"


def history_table(series: Sequence[Series], runs: int, notes: Sequence[str], min_effect: str) -> Table:
    """One row a level, the oldest of a case first; below it where each shift began and what changed with it.

    Runs that failed since the last level are a row of their own.
    """
    several = len({one.machine for one in series}) > 1
    short = sum(not one.judged for one in series)
    few = (
        [f"too few runs to see a shift: {short} of {len(series)} series; at least {FEWEST} are needed"] if short else []
    )
    return Table(
        title=f"Level of each metric over {counted(runs, 'run')}; smallest change that counts: {min_effect}",
        metric=None,
        labels=("case", "machine") if several else ("case",),
        columns=_HEADINGS,
        rows=tuple(row for one in series for row in _rows(one, several)),
        notes=(*(line for one in series for line in _shift_notes(one)), *few, *notes),
    )


def _rows(one: Series, several: bool) -> Iterator[Row]:
    lines = [_texts(one, level) for level in one.levels]
    if one.failing:
        lines.append([one.metric.name, *_since(one.failing[0]), str(len(one.failing)), "–", "–", _FAILED])
    for number, texts in enumerate(lines):
        labels = (one.case.label, one.machine) if number == 0 else ("", "")
        yield Row(labels=labels if several else labels[:1], cells=tuple(Cell(word=text) for text in texts))


def _texts(one: Series, level: Level) -> list[str]:
    runs = f"{len(level.points)}" + (f" ({level.wild} outliers)" if level.wild else "")
    ratio = "–"
    if level.shift is not None:
        bounds = "" if level.shift.low is None else f" ({level.shift.low:.3f} to {level.shift.high:.3f})"
        ratio = f"{level.shift.ratio:.3f}{bounds}"
    return [one.metric.name, *_since(level.points[0]), runs, figure(level.figure), ratio, _verdict(one, level)]


def _since(first: Entry) -> tuple[str, str]:
    return first.started[:16].replace("T", " "), first.commit or _NO_COMMIT


def _verdict(one: Series, level: Level) -> str:
    if level.shift is not None:
        return level.shift.word
    if not one.judged:
        return "too few runs"
    return "no shift" if len(one.levels) == 1 else "–"


def _shift_notes(one: Series) -> Iterator[str]:
    for level in one.levels:
        if level.shift is not None:
            changed = f"; what else changed: {', '.join(level.shift.changed)}" if level.shift.changed else ""
            yield (
                f"{one.case.label} {one.metric.name} {level.shift.word} from {_run_words(level.points[0])}; "
                f"the run before the change is {_run_words(level.shift.before)}{changed}"
            )
    if one.failing:
        first, before = _run_words(one.failing[0]), _run_words(one.points[-1])
        what = f"{one.case.label} {one.metric.name} {_FAILED} from {first} on"
        yield f"{what}; the last run that did not fail is {before}"


def _run_words(entry: Entry) -> str:
    return f"{entry.commit} ({entry.run})" if entry.commit else entry.run


def history_github(table: Table, series: Sequence[Series]) -> str:
    """A comment for a pull request or an issue: the outcome in one line, the table folded below it."""
    worse = [one for one in series if one.regressed]
    if worse:
        head = "❌ **Regression:** " + ", ".join(
            markdown_text(f"{one.case.label} {one.metric.name} {word} since {first.commit or first.run}")
            for one in worse
            for word, first in [_end(one)]
        )
    elif not any(one.judged for one in series):
        head = "❔ **Cannot tell:** too few runs"
    else:
        head = f"✅ **No regression** at the end of {len(series)} series"
    return folded(head, table)


def _end(one: Series) -> tuple[str, Entry]:
    """The last verdict of a series, and the run from which on it holds."""
    if one.failing:
        return _FAILED, one.failing[0]
    return _verdict(one, one.levels[-1]), one.levels[-1].points[0]


def history_json(series: Sequence[Series], notes: Sequence[str]) -> str:
    """Everything as data, a point for each run."""
    return json_of({"series": [_data(one) for one in series], "notes": list(notes)})


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
        "failed": [{"run": f.run, "started": f.started, "commit": f.commit, "reason": f.reason} for f in one.failed],
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
