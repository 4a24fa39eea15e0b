"""What a click on a figure tells: protocol, environment, raw samples, and the command that measures it again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from speechmeter.analysis.derived import lacking
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.warnings import case_warnings
from speechmeter.core.metrics import LATENCY, Metric
from speechmeter.core.types import Measurement, Record
from speechmeter.report.again import command
from speechmeter.report.caveats import record_notes
from speechmeter.report.charts.figure import six
from speechmeter.report.sources import Source

_NANO = 1e9


class Shared:
    """Values that many cases have, each stored once and named by its place."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        """Where the value stands in the list."""
        key = json.dumps(value, sort_keys=True, default=str)
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


def raw_metrics(shown: Sequence[Metric]) -> list[Metric]:
    """What the shown figures are made from: themselves, or what was measured for them."""
    return list(dict.fromkeys(source for metric in shown for source in lacking([], metric)))


def case_data(source: Source, key: str, raw: Sequence[Metric], shared: Shared) -> dict[str, Any]:
    """One case as the page holds it."""
    group = source.cases[key]
    case = group[0].case
    return {
        "id": key,
        "run": source.name,
        "label": source.labels[key],
        "command": command(case, len([record for record in group if record.status != "skipped"])),
        "axes": shared.place(dict(case.axes)),
        "protocol": shared.place(case.protocol.to_json()),
        "subject": shared.place(case.subject.to_json()),
        "workload": shared.place(case.workload.to_json()),
        "rounds": [_round(source, record, shared) for record in group],
        "warnings": [shared.place(text) for text in warnings_of(group)],
        "notes": [shared.place(text) for text in notes_of(group)],
        "steady": _steady(group),
        "samples": {metric.id: found for metric in raw if any(found := _samples(group, metric))},
    }


def _steady(group: Sequence[Record]) -> list[float] | None:
    """Latency and its bounds, to stand behind the samples; the figure itself where there is no interval."""
    found = estimate(group, LATENCY)
    if found is None:
        return None
    return [six(found.value if bound is None else bound) for bound in (found.value, found.low, found.high)]


def warnings_of(group: Sequence[Record]) -> list[str]:
    """Warnings of the records and of their samples, each once."""
    return list(dict.fromkeys([*(text for record in group for text in record.warnings), *case_warnings(group)]))


def notes_of(group: Sequence[Record]) -> list[str]:
    """What model and input of a case say of its figures, each once."""
    return list(dict.fromkeys(note for record in group for note in record_notes(record)))


def _round(source: Source, record: Record, shared: Shared) -> list[Any]:
    """Round, order in the run, start, seconds it took, outcome, environment."""
    outcome = record.status if not record.reason else f"{record.status}: {record.reason}"
    facts = source.facts(record)
    return [
        record.round,
        record.sequence,
        record.started[:19],
        round(record.wall_s, 1),
        shared.place(outcome),
        shared.place(_named(facts, record)) if facts else -1,
    ]


def _named(facts: Mapping[str, Any], record: Record) -> dict[str, Any]:
    return {"fingerprint": record.environment, **facts}


def _samples(group: Sequence[Record], metric: Metric) -> list[list[float]]:
    """Raw values round by round: times as whole nanoseconds, which is what the clock resolves."""
    return [_compact(found) if (found := record.find(metric.id)) is not None else [] for record in group]


def _compact(measurement: Measurement) -> list[float]:
    if measurement.unit == "s":
        return [round(value * _NANO) for value in measurement.values]
    return [int(value) if float(value).is_integer() else six(value) for value in measurement.values]
