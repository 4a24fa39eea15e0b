"""Verdicts as tables and as data: the figures are those that `show` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.analysis.compare import Verdict
from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.family import Family, Mean
from speechmeter.core.errors import Spell, as_flag, spelt
from speechmeter.core.scope import EVERYTHING, TOTAL, WITHIN, Scope
from speechmeter.report.escaping import json_of, markdown_text
from speechmeter.report.numbers import counted, figure, signed
from speechmeter.report.tables import Cell, Row, Table
from speechmeter.report.text import folded

_RATIO, _CHANGE = "NEW / BASE", "NEW − BASE"
_HEADINGS = ("metric", "BASE", "NEW", _RATIO, "95 % interval", "verdict", "how")


def comparison_table(family: Family, notes: Sequence[str], min_effect: str, spell: Spell = as_flag) -> Table:
    """One row a cell and metric, and one for the mean of each metric. Notes spell options as flags, or as `spell`."""
    # a module has no label: it is listed below the call that it is part of
    rows = [(v.case.label if v.scope in (TOTAL, EVERYTHING) else "", _texts(v)) for v in family.verdicts]
    rows += [(_mean_label(mean), _mean_texts(mean)) for mean in family.means]
    return Table(
        title=f"NEW compared with BASE, smallest change that counts: {min_effect}",
        metric=None,
        labels=("case",),
        columns=_headings(family),
        rows=tuple(Row(labels=(label,), cells=tuple(Cell(word=text) for text in texts)) for label, texts in rows),
        notes=(*(spelt(line, spell) for line in _outcome(family)), *notes),
    )


def _headings(family: Family) -> tuple[str, ...]:
    """Those of ratios, of differences, or of both where a comparison has both."""
    kinds = {v.change is not None for v in family.verdicts}
    heading = f"{_RATIO}, or {_CHANGE}" if len(kinds) > 1 else _CHANGE if kinds == {True} else _RATIO
    return tuple(heading if one == _RATIO else one for one in _HEADINGS)


def _mean_label(mean: Mean) -> str:
    return f"geometric mean of {mean.cells} cells"


def _ratio(value: float) -> str:
    """Three decimals. Two rounds far apart have an interval of many digits, which say no more than "over 1000"."""
    return f"{value:.3f}" if value < 1000 else "over 1000"


def _mean_texts(mean: Mean) -> list[str]:
    ratio, interval = _ratio(mean.ratio), f"{_ratio(mean.low)} to {_ratio(mean.high)}"
    return [mean.metric.name, "–", "–", ratio, interval, mean.word, mean.reason]


def _outcome(family: Family) -> list[str]:
    """What the cells say together, in a line each."""
    found = []
    corrected = sum(v.corrected for v in family.verdicts)
    if corrected:
        found.append(
            f"not after correction: {counted(corrected, 'cell')} would count as changed in a single comparison, but "
            "among "
            f"{len(family.verdicts)} comparisons this may be chance"
        )
    gone = sum(v.word == "MISSING" for v in family.verdicts)
    if gone:
        found.append(
            f"{counted(gone, 'case')} of BASE {'has' if gone == 1 else 'have'} no value in NEW (see "
            "MISSING in the table); "
            "measure again, or use `allow_missing` to accept that"
        )
    return found


def _texts(v: Verdict) -> list[str]:
    interval, how = "–", ""
    if v.change is not None:
        return _changed_texts(v, v.change)
    if v.low is not None and v.high is not None:
        interval = f"{_ratio(v.low)} to {_ratio(v.high)}"
        if v.rounds:
            how = counted(v.rounds, "adjacent pair") if v.paired else f"unpaired, {counted(v.rounds, 'round')}"
    noticed = ""
    if v.shown is not None and v.word == "CANNOT TELL":
        least = f"{v.shown:.0%}" if v.shown < 10 else "over 999%"
        noticed = f"smallest detectable change: {least}"
    return [
        _what(v),
        figure(v.base) if v.base else "–",
        figure(v.new) if v.new else "–",
        _ratio(v.ratio) if v.ratio is not None else "–",
        interval,
        v.text,
        "; ".join(filter(None, (how, v.reason, noticed))),
    ]


def _changed_texts(v: Verdict, change: Estimate) -> list[str]:
    """The row of a live metric: its change in its own unit, in the column of ratios."""
    figures = [figure(side) if side is not None else "–" for side in (v.base, v.new)]
    interval = "–"
    if change.low is not None and change.high is not None:
        interval = " to ".join(signed(end, change.metric.unit) for end in (change.low, change.high))
    return [_what(v), *figures, signed(change.value, change.metric.unit), interval, v.text, v.reason]


def _what(v: Verdict) -> str:
    """The metric, or the part of the call that it was measured of."""
    if v.scope == TOTAL:
        return f"{v.metric.name} {v.statistic}".rstrip()
    return "call" if v.scope == EVERYTHING else Scope.parse(v.scope).without(WITHIN)


def github(table: Table, family: Family) -> str:
    """A comment for a pull request: the outcome in one line, the table folded below it."""
    code, verdicts = family.exit_code(), family.verdicts
    unsettled = [v for v in verdicts if v.word in ("CANNOT TELL", "MISSING") or v.corrected]
    if code == 1:
        worse = [f"{v.case.label} {_what(v)} {v.word}" for v in verdicts if v.regression]
        worse += [f"{_mean_label(m)} {m.metric.name} {m.word}" for m in family.means if m.regression]
        head = "❌ **Regression:** " + ", ".join(map(markdown_text, worse))
    elif code == 3:
        head = f"❔ **Cannot tell** for {len(unsettled)} of {counted(len(verdicts), 'comparison')}; the table says why"
    else:
        some = (
            f"; {len(unsettled)} of them could not be decided separately, but the mean of all shows no regression"
            if unsettled
            else ""
        )
        head = f"✅ **No regression** in {counted(len(verdicts), 'comparison')}{some}"
    return folded(head, table)


def comparison_json(family: Family, notes: Sequence[str]) -> str:
    """Everything as data."""
    return json_of(
        {
            "exit_code": family.exit_code(),
            "verdicts": [_data(v) for v in family.verdicts],
            "means": [_mean_data(m) for m in family.means],
            "notes": list(notes),
        }
    )


def _mean_data(mean: Mean) -> dict[str, Any]:
    return {
        "metric": mean.metric.id,
        "cells": mean.cells,
        "verdict": mean.word,
        "regression": mean.regression,
        "ratio": mean.ratio,
        "low": mean.low,
        "high": mean.high,
    }


def _data(v: Verdict) -> dict[str, Any]:
    return {
        "case": v.case.label,
        "id": v.case.id,
        "metric": v.metric.id,
        "scope": v.scope,
        "verdict": v.text,
        "regression": v.regression,
        "base": {"text": figure(v.base), "value": v.base.value} if v.base else None,
        "new": {"text": figure(v.new), "value": v.new.value} if v.new else None,
        "ratio": v.ratio,
        "low": v.low,
        "high": v.high,
        "paired": v.paired,
        "rounds": v.rounds,
        "rounds_to_settle": v.rounds_to_settle,
        "would_have_shown": v.shown,
        **({} if v.change is None else {"statistic": v.statistic, "change": _change_data(v.change)}),
        "reason": v.reason,
    }


def _change_data(change: Estimate) -> dict[str, Any]:
    return {"unit": change.metric.unit, "value": change.value, "low": change.low, "high": change.high}
