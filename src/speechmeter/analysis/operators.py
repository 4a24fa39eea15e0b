"""Times of operators with the module they work for: `op:aten::addmm@encoder.layers.0`.

The row of an operator holds in its notes what it did for each module, without what is too little. Earlier records have
the 50 costliest of these as rows of their own, and leave out operators below a 10,000th of the time. So one that a
round does not have is not known to be 0: it has no figure, or its figure would be of other rounds than the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import OPERATOR, Scope
from speechmeter.core.types import Measurement, Record

_INSIDE = "inside"

Apart = Mapping[str, Sequence[float]]
"""Values of each direction, one a call."""


def find(record: Record, metric: Metric, scope: str) -> Measurement | None:
    """The measurement of an operator in one module, one value a call; None where it did nothing for it."""
    stored = record.find(metric.id, scope)
    if stored is not None:
        return stored
    operator, module = Scope.parse(scope).operator_and_module()
    row = record.find(metric.id, operator)
    apart: Apart = {} if row is None else row.notes.get(_INSIDE, {}).get(module, {})
    if row is None or not apart:
        return None
    notes = {"kind": row.notes.get("kind", ""), "module": module}
    return Measurement.of(metric, _summed(apart), scope=scope, notes=notes)


def calls(record: Record, scope: str) -> float | None:
    """How often an operator runs in one call; None where earlier versions did not count that."""
    row = record.find(metrics.TIME_OPERATOR.id, scope) if Scope.parse(scope).kind == OPERATOR else None
    return None if row is None or "calls" not in row.notes else float(row.notes["calls"])


def placed_scopes(records: Sequence[Record], most: int) -> list[Scope]:
    """The costliest operators in one module that every round has, the costliest first."""
    rounds = [found for record in records if (found := dict(_placed(record)))]
    shared = set.intersection(*map(set, rounds)) if rounds else set()
    return sorted(shared, key=lambda scope: (-sum(found[scope] for found in rounds), scope))[:most]


def _placed(record: Record) -> Iterator[tuple[Scope, float]]:
    for m in record.measurements:
        if m.metric != metrics.TIME_OPERATOR.id or not m.values or (scope := Scope.parse(m.scope)).kind != OPERATOR:
            continue
        if scope.is_in_module:
            yield scope, sum(m.values) / len(m.values)
        for module, apart in m.notes.get(_INSIDE, {}).items():
            yield scope.in_module(module), sum(map(sum, apart.values())) / len(m.values)


def may_be_left_out(record: Record, metric: Metric, scope: str) -> bool:
    """Whether a record without this row may have left it out as too small, so that it is not known to be 0."""
    asked = Scope.parse(scope)
    if metric.id != metrics.TIME_OPERATOR.id or asked.kind != OPERATOR:
        return False
    total = record.find(metric.id)
    return asked.is_in_module or (total is not None and "calls" not in total.notes)


def _summed(apart: Apart) -> list[float]:
    return [sum(values) for values in zip(*apart.values(), strict=True)]
