"""The figures of a run by case, as exports take them: a name, a value, and the ends of its interval."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.analysis.metric_names import Figures, metric_named
from speechmeter.analysis.selecting import by_case
from speechmeter.api.frames import figure_row
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import TOTAL
from speechmeter.core.types import Record
from speechmeter.report.labels import case_labels


@dataclass(frozen=True, kw_only=True)
class ExportedFigure:
    """One figure: its metric, its scope, its value, and its interval where there is one."""

    metric: Metric
    scope: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def key(self) -> str:
        """A name that trackers take: `latency`, `latency/stage:encoder`. Other characters are underscores."""
        name = self.metric.name if self.scope == TOTAL else f"{self.metric.name}/{self.scope}"
        return re.sub(r"[^\w.:/ -]", "_", name, flags=re.ASCII)

    @property
    def values(self) -> dict[str, float]:
        """The value and the ends of the interval, by the names under which trackers hold them."""
        found = {self.key: self.value, f"{self.key}_low": self.low, f"{self.key}_high": self.high}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ExportedCase:
    """A case with its figures: `name` is what tables call it, `settings` are its model, input and axes.

    `records` are those that the figures are of.
    """

    id: str
    name: str
    started: str
    settings: Mapping[str, Any]
    figures: tuple[ExportedFigure, ...]
    records: Sequence[Record] = ()


def exported_cases(
    records: Sequence[Record], metrics: Sequence[str] = (), *, every_scope: bool = False
) -> list[ExportedCase]:
    """The cases that have figures, in the order of the run: of these metrics, or of all.

    Figures of stages, modules and other parts only with `every_scope`. Raises InputError for a name that no metric has.
    """
    for name in metrics:
        metric_named(name, records, key="metric")
    labels, figures = case_labels(records), Figures()
    found = []
    for case_id, group in by_case(records).items():
        asked = {metric_named(name, group, among=records) for name in metrics}
        own = tuple(
            ExportedFigure(metric=one.metric, scope=scope, value=row["value"], low=row["low"], high=row["high"])
            for scope, one in figures.of(group)
            if (every_scope or scope == TOTAL) and (not asked or one.metric in asked)
            for row in [figure_row(scope, one)]
            if row["value"] is not None
        )
        if own:
            found.append(_case(case_id, labels[case_id], group, own))
    return found


def _case(case_id: str, label: str, group: Sequence[Record], figures: tuple[ExportedFigure, ...]) -> ExportedCase:
    case = group[0].case
    settings = {"model": case.subject.name, "input": case.workload.name, **case.axes.to_json()}
    settings = {name: value for name, value in settings.items() if value is not None}
    return ExportedCase(
        id=case_id, name=label, started=group[0].started, settings={**settings, "host": group[0].host},
        figures=figures, records=group,
    )  # fmt: skip
