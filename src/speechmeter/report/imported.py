"""Figures of other tools side by side: a table for each question, a row for each tool's own answer."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics, stated
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.explaining import definition_line
from speechmeter.report.labels import labelled
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, cell_of, measured

_SHARES = ("p50", "p90", "p95", "p99", "max")
_MIXED = "these figures have different definitions; their differences are not differences of the systems alone."


def imported(records: Sequence[Record]) -> list[Table]:
    """One table a question, such as the time to first token, with every tool's figure of it and its definition."""
    asked = dict.fromkeys(one.about for one in stated.EVERY if measured(records, metrics.STATED[one.name]))
    return [_table(records, about) for about in asked]


def _table(records: Sequence[Record], about: str) -> Table:
    own = [metrics.STATED[one.name] for one in stated.EVERY if one.about == about]
    held = [metric for metric in own if measured(records, metric)]
    found = [(label, group, metric) for label, group in labelled(records) for metric in held if measured(group, metric)]
    shares = [one for one in _SHARES if any(estimate(group, metric, statistic=one) for _, group, metric in found)]
    rows = tuple(
        Row(labels=(metric.title, label), cells=(cell_of(group, metric), *(_share(group, metric, s) for s in shares)))
        for label, group, metric in found
    )
    reasons = dict.fromkeys(c.reason for row in rows for c in row.cells[:1] if c.estimate is None and c.reason)
    notes = [*map(definition_line, held), *reasons, *([_MIXED] if len({one.formula for one in held}) > 1 else [])]
    return Table(
        title=about, metric=None, labels=("figure", "case"), columns=("mean, or total" if shares else "value", *shares),
        rows=rows, notes=tuple(notes),
    )  # fmt: skip


def _share(group: Sequence[Record], metric: Metric, statistic: str) -> Cell:
    found = estimate(group, metric, statistic=statistic)
    return Cell(estimate=found) if found is not None else Cell(word=NOT_MEASURED, reason="the file does not state it")
