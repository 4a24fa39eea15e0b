"""What held memory at the peak of a step: one row a case and module."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.core import metrics
from speechmeter.core.scope import MODULE, Scope
from speechmeter.core.types import Record
from speechmeter.report.grids import case_labels
from speechmeter.report.lists import list_table
from speechmeter.report.numbers import number
from speechmeter.report.tables import Row, Table, by_case, cell_of

_MOST = 15


def timeline(records: Sequence[Record]) -> list[Table]:
    """The peak of each case, then the modules that held most of it."""
    labels, rows, notes = case_labels(records), [], []
    for case_id, group in by_case(records).items():
        rows.append(Row(labels=(labels[case_id], "peak"), cells=(cell_of(group, metrics.MEMORY_TENSORS_PEAK),)))
        scopes = _scopes(group)
        for scope in scopes[:_MOST]:
            name = Scope.parse(scope).without(MODULE)
            rows.append(Row(labels=(labels[case_id], name), cells=(cell_of(group, metrics.MEMORY_AT_PEAK, scope),)))
        if len(scopes) > _MOST:
            notes.append(f"{labels[case_id]}: {len(scopes) - _MOST} modules with less are not shown.")
        notes += _operators(labels[case_id], group)
    shown = (metrics.MEMORY_TENSORS_PEAK, metrics.MEMORY_AT_PEAK)
    return [list_table("memory at the peak", ("case", "module"), shown, tuple(rows), notes, columns=("bytes",))]


def _scopes(group: Sequence[Record]) -> list[str]:
    """Modules in the order of the record: the largest first."""
    found = (m.scope for record in group for m in record.measurements if m.metric == metrics.MEMORY_AT_PEAK.id)
    return list(dict.fromkeys(found))


def _operators(label: str, group: Sequence[Record]) -> list[str]:
    """The largest allocations with the operator that made them."""
    found = next((m for record in group if (m := record.find(metrics.MEMORY_TENSORS_PEAK.id)) is not None), None)
    if found is None or not found.notes.get("operators"):
        return []
    said = [f"{number(size, 'bytes')} by {name} in {path}" for name, path, size in found.notes["operators"]]
    return [f"{label}: largest: {', '.join(said)}."]
