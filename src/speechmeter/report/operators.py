"""The costliest operators: sorted as asked for, and with the modules they work for."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.readings import costliest_operators
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import OPERATOR, Scope
from speechmeter.core.types import Record
from speechmeter.report.grids import case_labels
from speechmeter.report.lists import list_table
from speechmeter.report.numbers import counted
from speechmeter.report.recorded import recorded_notes
from speechmeter.report.tables import Cell, Row, Table, by_case, cell_of

_MOST = 20
_NAME = "name"
SORT_KEYS: dict[str, Metric] = {
    "own-time": metrics.TIME_OPERATOR,
    "total-time": metrics.TIME_OPERATOR_TOTAL,
    "calls": metrics.OPERATOR_CALLS,
    "own-memory": metrics.MEMORY_OPERATOR_OWN,
    "memory": metrics.MEMORY_OPERATOR,
    "flops": metrics.FLOPS,
}
"""Figures that operators may be sorted by, beside their name."""
_SHOWN = (
    metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE, metrics.TIME_OPERATOR_TOTAL, metrics.OPERATOR_CALLS,
    metrics.MEMORY_OPERATOR_OWN, metrics.MEMORY_OPERATOR, metrics.FLOPS,
)  # fmt: skip
_INSIDE_EACH_OTHER = "operators inside each other share time and memory: only `time in operator` and its share add up."


def sorted_operators(records: Sequence[Record], sort: str | None, limit: int | None) -> list[Table]:
    """One row a case and operator with all its figures, the largest first or names from A to Z, `limit` of each case.

    By own time, or by FLOPs where no time was measured, and 20 of each case, unless asked otherwise. Raises InputError
    for a key that is not known or that no record has a figure for, and for a limit below 1.
    """
    if sort is not None and sort not in (*SORT_KEYS, _NAME):
        known = ", ".join((*SORT_KEYS, _NAME))
        raise InputError(f"operators cannot be sorted by {sort!r}", where="--sort", fix=f"choose from: {known}")
    if limit is not None and limit < 1:
        raise InputError(f"a table cannot have {limit} rows", where="--limit", fix="give a number from 1 on")
    cells = {case_id: _cells(group) for case_id, group in by_case(records).items()}
    held = {metric for own in cells.values() for row in own.values() for metric, cell in row.items() if cell.estimate}
    key = _key(sort, held) if held else _NAME
    labels = case_labels(records)
    shown = [metric for metric in _SHOWN if metric in held] or list(_SHOWN[:1])
    rows, notes = [], [_INSIDE_EACH_OTHER, *recorded_notes(records, metrics.TIME_OPERATOR)]
    for case_id, own in cells.items():
        ordered = sorted(own, key=lambda scope: _rank(scope, own, key))
        listed = ordered[: limit or _MOST]
        rows += [
            Row(labels=(labels[case_id], one.path), cells=tuple(own[one][metric] for metric in shown)) for one in listed
        ]
        if left := len(ordered) - len(listed):
            more = f"{counted(left, 'operator')} of {labels[case_id]}; --limit {len(ordered)} lists all."
            notes.append(f"not listed: {more}")
    return [list_table(f"operators by {key}", ("case", "operator"), shown, tuple(rows), notes)]


def _cells(group: Sequence[Record]) -> dict[Scope, dict[Metric, Cell]]:
    """Every figure of every operator, by its scope."""
    scopes = dict.fromkeys(Scope.parse(m.scope) for record in group for m in record.measurements if m.values)
    names = [scope for scope in scopes if scope.kind == OPERATOR and not scope.is_in_module]
    return {scope: {metric: cell_of(group, metric, scope) for metric in _SHOWN} for scope in names}


def _key(sort: str | None, held: set[Metric]) -> str:
    known = [word for word, metric in SORT_KEYS.items() if metric in held]
    if sort is None:
        return next(iter(known), _NAME)
    if sort != _NAME and sort not in known:
        raise InputError(
            f"this run has no {sort} of operators",
            where="--sort",
            fix=f"choose from: {', '.join((*known, _NAME))}; or measure again with the meters operators and flops",
        )
    return sort


def _rank(scope: Scope, own: dict[Scope, dict[Metric, Cell]], key: str) -> tuple[float, str]:
    found = None if key == _NAME else own[scope][SORT_KEYS[key]].estimate
    return (-found.value if found is not None else 0.0), scope


def operators_by_module(records: Sequence[Record]) -> list[Table]:
    """One row a case, module and operator, the costliest first; forward and backward together."""
    labels = case_labels(records)
    shown = (metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE)
    rows = []
    for case_id, group in by_case(records).items():
        for scope in costliest_operators(group, _MOST):
            operator, module = scope.operator_and_module()
            cells = tuple(cell_of(group, metric, scope) for metric in shown)
            rows.append(Row(labels=(labels[case_id], module, operator.path), cells=cells))
    notes = ("operators of the backward pass stand with the module whose forward made them.",)
    return [list_table("operators by module", ("case", "module", "operator"), shown, tuple(rows), notes)]
