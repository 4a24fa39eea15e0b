"""Every figure that the rounds of a case hold, measured or derived: the rows of a table that others query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speechmeter.analysis import operators, parts, scores
from speechmeter.analysis.derived import lacking
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import PART, STAGE, Scope
from speechmeter.core.types import Record

_NO_FIGURES = {metrics.PHASE.id} | {count.id for rule in scores.RULES.values() for count in rule.counts}
"""Readings that are the raw matter of figures, and none themselves."""

_MOST_PLACED = 50
"""So many operators in one module have a figure: the costliest."""


class Figures:
    """Figures of cases, one after another; what follows from what is worked out once for all that hold the same."""

    def __init__(self) -> None:
        self._derived: dict[frozenset[str], list[Metric]] = {}

    def of(self, records: Sequence[Record]) -> Iterator[tuple[str, Estimate]]:
        """(scope, figure) of everything that the rounds of one case hold, and of what follows from it."""
        scopes: dict[Metric, dict[str, None]] = {}
        for m in (m for record in records for m in record.measurements if m.values and m.metric not in _NO_FIGURES):
            scopes.setdefault(definition(m.metric, m.unit), {})[m.scope] = None
        if metrics.TIME_OPERATOR in scopes:
            scopes[metrics.TIME_OPERATOR] |= dict.fromkeys(operators.placed_scopes(records, _MOST_PLACED))
        wider = dict.fromkeys(
            ["total", *(s for found in scopes.values() for s in found if Scope.parse(s).kind == STAGE)]
            + [Scope.of(PART, name) for name in parts.part_names(records)]
        )
        for metric in self._follow(records):
            scopes.setdefault(metric, wider)
        for metric, places in scopes.items():
            for scope in places:
                found = estimate(records, metric, scope)
                if found is not None:
                    yield str(scope), found

    def _follow(self, records: Sequence[Record]) -> list[Metric]:
        held = frozenset(m.metric for record in records for m in record.measurements)
        if held not in self._derived:
            others = [metric for metric in metrics.known() if metric.id not in held]
            self._derived[held] = [metric for metric in others if not lacking(records, metric)]
        return self._derived[held]


def definition(metric_id: str, unit: str) -> Metric:
    """The registered definition; a plain one for a metric of a plug-in that is not here."""
    known = metrics.find(metric_id)
    if known is not None:
        return known
    name = metric_id.rpartition(".")[0] or metric_id
    return Metric(id=metric_id, unit=unit, direction="neither", title=name, formula="see its plug-in")
