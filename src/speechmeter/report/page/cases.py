"""The cases on the page: what a click on a figure shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Measurement, Record
from speechmeter.report.again import command
from speechmeter.report.caveats import record_notes
from speechmeter.report.charts.figure import six
from speechmeter.report.sources import Source

_NANO = 1e9


class Shared:
    """Values that many cases have, each stored once and named by its index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._indices: dict[str, int] = {}

    def index(self, value: Any) -> int:
        """The index of the value in the list."""
        key = json.dumps(value, sort_keys=True, default=str)
        if key not in self._indices:
            self._indices[key] = len(self.values)
            self.values.append(value)
        return self._indices[key]


def case_data(
    source: Source, key: str, raw: Sequence[Metric], shared: Shared, warnings: Sequence[str]
) -> dict[str, Any]:
    """One case as the page holds it."""
    group = source.cases[key]
    case = group[0].case
    notes = dict.fromkeys(note for record in group for note in record_notes(record))
    interpreter = next(filter(None, (source.facts(record).get("interpreter") for record in group)), None)
    latency = estimate(group, metrics.LATENCY)
    steady = None  # latency and its bounds, drawn behind the samples; the figure itself where there is no interval
    if latency is not None:
        steady = [six(latency.value if one is None else one) for one in (latency.value, latency.low, latency.high)]
    return {
        "id": key,
        "run": source.name,
        "label": source.labels[key],
        "command": command(case, len([record for record in group if record.status != "skipped"]), interpreter),
        "axes": shared.index(dict(case.axes)),
        "protocol": shared.index(case.protocol.to_json()),
        "subject": shared.index(case.subject.to_json()),
        "workload": shared.index(case.workload.to_json()),
        "rounds": [_round(source, record, shared) for record in group],
        "warnings": [shared.index(text) for text in warnings],
        "notes": [shared.index(text) for text in notes],
        "steady": steady,
        "samples": {metric.id: found for metric in raw if any(found := _samples(group, metric))},
    }


def _round(source: Source, record: Record, shared: Shared) -> list[Any]:
    """Round, order in the run, start, seconds it took, outcome, environment."""
    outcome = record.status if not record.reason else f"{record.status}: {record.reason}"
    facts: Mapping[str, Any] = source.facts(record)
    environment = shared.index({"fingerprint": record.environment, **facts}) if facts else -1
    times = record.started[:19], round(record.wall_s, 1)
    return [record.round, record.sequence, *times, shared.index(outcome), environment]


def _samples(group: Sequence[Record], metric: Metric) -> list[list[float]]:
    """Raw values round by round: times as whole nanoseconds, which is what the clock resolves."""
    return [_compact(found) if (found := record.find(metric.id)) is not None else [] for record in group]


def _compact(measurement: Measurement) -> list[float]:
    if measurement.unit == "s":
        return [round(value * _NANO) for value in measurement.values]
    return [int(value) if float(value).is_integer() else six(value) for value in measurement.values]
