"""Verdicts as tables and as data: the figures are those that `show` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.analysis.compare import Verdict
from speechmeter.analysis.family import Family, Mean
from speechmeter.core.scope import EVERYTHING, TOTAL, WITHIN, Scope
from speechmeter.report.escaping import json_of, markdown_text
from speechmeter.report.numbers import counted, figure
from speechmeter.report.tables import Cell, Row, Table
from speechmeter.report.text import folded

_HEADINGS = ("metric", "BASE", "NEW", "NEW / BASE", "95 % interval", "verdict", "how")


def comparison_table(family: Family, notes: Sequence[str], min_effect: str) -> Table:
    """One row a cell and metric, and one for the mean of each metric."""
    # a module has no label: it is listed below the call that it is part of
    rows = [(v.case.label if v.scope in (TOTAL, EVERYTHING) else "", _texts(v)) for v in family.verdicts]
    rows += [(_mean_label(mean), _mean_texts(mean)) for mean in family.means]
    return Table(
        title=f"NEW against BASE, smallest effect that counts {min_effect}",
        metric=None,
        labels=("case",),
        columns=_HEADINGS,
        rows=tuple(Row(labels=(label,), cells=tuple(Cell(word=text) for text in texts)) for label, texts in rows),
        notes=(*_outcome(family), *notes),
    )


def _mean_label(mean: Mean) -> str:
    return f"geometric mean of {mean.cells} cells"


def _mean_texts(mean: Mean) -> list[str]:
    ratio, interval = f"{mean.ratio:.3f}", f"{mean.low:.3f} to {mean.high:.3f}"
    return [mean.metric.name, "–", "–", ratio, interval, mean.word, mean.reason]


def _outcome(family: Family) -> list[str]:
    """What the cells say together, in a line each."""
    found = []
    corrected = sum(v.corrected for v in family.verdicts)
    if corrected:
        found.append(
            f"not after correction: {counted(corrected, 'cell')} would be a change if compared alone, but not among "
            f"{len(family.verdicts)} comparisons at once"
        )
    gone = sum(v.word == "MISSING" for v in family.verdicts)
    if gone:
        found.append(f"{counted(gone, 'comparison')} of BASE missing from NEW; use --allow-missing to accept that")
    return found


def _texts(v: Verdict) -> list[str]:
    interval, how = "–", ""
    if v.low is not None and v.high is not None:
        interval = f"{v.low:.3f} to {v.high:.3f}"
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
        f"{v.ratio:.3f}" if v.ratio is not None else "–",
        interval,
        v.text,
        "; ".join(filter(None, (how, v.reason, noticed))),
    ]


def _what(v: Verdict) -> str:
    """The metric, or the part of the call that it was measured of."""
    if v.scope == TOTAL:
        return v.metric.name
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
        head = f"❔ **Cannot tell** for {len(unsettled)} of {len(verdicts)}"
    else:
        some = (
            f"; {len(unsettled)} of them could not be decided alone, but the mean of all shows none"
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
        "reason": v.reason,
    }
