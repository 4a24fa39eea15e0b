"""The costliest operators with the modules they work for."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.core import metrics
from speechmeter.core.types import Record
from speechmeter.report.grids import case_labels
from speechmeter.report.lists import list_table
from speechmeter.report.tables import Row, Table, by_case, cell_of

_MOST = 20


def operators_by_module(records: Sequence[Record]) -> list[Table]:
    """One row a case, module and operator, the costliest first; forward and backward together."""
    labels = case_labels(records)
    shown = (metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE)
    rows = []
    for case_id, group in by_case(records).items():
        for scope in _placed(group)[:_MOST]:
            name, _, module = scope.removeprefix("op:").partition("@")
            cells = tuple(cell_of(group, metric, scope) for metric in shown)
            rows.append(Row(labels=(labels[case_id], module, name), cells=cells))
    notes = ("operators of the backward pass stand with the module whose forward made them.",)
    return [list_table("operators by module", ("case", "module", "operator"), shown, tuple(rows), notes)]


def _placed(group: Sequence[Record]) -> list[str]:
    """Scopes of operators in a module, as the first round has them: the costliest first."""
    return [
        m.scope
        for record in group[:1]
        for m in record.measurements
        if m.metric == metrics.TIME_OPERATOR.id and m.scope.startswith("op:") and "@" in m.scope
    ]
