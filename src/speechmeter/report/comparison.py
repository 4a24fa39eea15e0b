"""Verdicts as tables and as data: the figures are those that `show` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from speechmeter.analysis.compare import Verdict
from speechmeter.report.numbers import figure
from speechmeter.report.tables import Cell, Row, Table
from speechmeter.report.text import folded

_HEADINGS = ("metric", "BASE", "NEW", "NEW / BASE", "95 % interval", "verdict", "how")


def comparison_table(verdicts: Sequence[Verdict], notes: Sequence[str], min_effect: str) -> Table:
    """One row a cell and metric."""
    return Table(
        title=f"NEW against BASE, smallest effect that counts {min_effect}",
        metric=None,
        labels=("case",),
        columns=_HEADINGS,
        rows=tuple(Row(labels=(_label(v),), cells=tuple(Cell(word=text) for text in _texts(v))) for v in verdicts),
        notes=tuple(notes),
    )


def _label(v: Verdict) -> str:
    """The case; nothing for a module, which stands below the call it is part of."""
    return v.case.label if v.scope in ("total", "everything") else ""


def _texts(v: Verdict) -> list[str]:
    interval = f"{v.low:.3f} to {v.high:.3f}" if v.low is not None and v.high is not None else "–"
    return [
        _what(v),
        figure(v.base) if v.base else "–",
        figure(v.new) if v.new else "–",
        f"{v.ratio:.3f}" if v.ratio is not None else "–",
        interval,
        v.word,
        "; ".join(part for part in (_how(v), v.reason) if part),
    ]


def _what(v: Verdict) -> str:
    """The metric, or the part of the call that it was taken of."""
    return v.metric.name if v.scope == "total" else v.scope.removeprefix("within:").replace("everything", "call")


def _how(v: Verdict) -> str:
    if v.low is None or not v.rounds:
        return ""
    return f"{v.rounds} adjacent pairs" if v.paired else f"unpaired, {v.rounds} rounds"


def github(table: Table, verdicts: Sequence[Verdict]) -> str:
    """A comment for a pull request: the outcome in one line, the table folded below it."""
    worse = [v for v in verdicts if v.regression]
    open_ones = [v for v in verdicts if v.word == "CANNOT TELL"]
    if worse:
        head = "❌ **Regression:** " + ", ".join(f"{v.case.label} {_what(v)} {v.word}" for v in worse)
    elif open_ones:
        head = f"❔ **Cannot tell** for {len(open_ones)} of {len(verdicts)}"
    else:
        head = f"✅ **No regression** in {len(verdicts)} comparisons"
    return folded(head, table)


def comparison_json(verdicts: Sequence[Verdict], notes: Sequence[str]) -> str:
    """Everything as data."""
    return json.dumps({"verdicts": [_data(v) for v in verdicts], "notes": list(notes)}, ensure_ascii=False, indent=2)


def _data(v: Verdict) -> dict[str, Any]:
    return {
        "case": v.case.label,
        "id": v.case.id,
        "metric": v.metric.id,
        "scope": v.scope,
        "verdict": v.word,
        "regression": v.regression,
        "base": {"text": figure(v.base), "value": v.base.value} if v.base else None,
        "new": {"text": figure(v.new), "value": v.new.value} if v.new else None,
        "ratio": v.ratio,
        "low": v.low,
        "high": v.high,
        "paired": v.paired,
        "rounds": v.rounds,
        "rounds_to_settle": v.rounds_to_settle,
        "reason": v.reason,
    }
