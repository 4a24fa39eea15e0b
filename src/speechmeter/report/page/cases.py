"""The cases on the page: a row of the summary table each, and what a click on a figure shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from speechmeter.analysis.derived import lacking
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.intervals import Quantity
from speechmeter.analysis.warnings import case_warnings
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import IMPORTED
from speechmeter.core.types import Measurement, Record
from speechmeter.report.again import command
from speechmeter.report.caveats import record_notes
from speechmeter.report.charts.figure import six
from speechmeter.report.labels import batching, varying_axes
from speechmeter.report.numbers import number
from speechmeter.report.overview import summary_metrics
from speechmeter.report.quality import scores_in
from speechmeter.report.sources import Source
from speechmeter.report.tables import Cell, cell_of

_OUTCOME = "outcome"
_ONE_ROUND = "one round: no interval"
_NANO = 1e9


def shown_metrics(records: Sequence[Record]) -> list[Metric]:
    """The columns of figures: times first, scores where there are any, then what else the summary shows."""
    costs = summary_metrics(records)
    scored = [[record] for record in records if record.find(metrics.ANSWERED.id)]
    times = [metric for metric in costs if metric in (metrics.LATENCY, metrics.RTF)]
    return list(dict.fromkeys([*times, *(scores_in(scored) if scored else ()), *costs]))


def raw_metrics(shown: Sequence[Metric]) -> list[Metric]:
    """What the shown figures are made from: themselves, or what was measured for them."""
    return list(dict.fromkeys(source for metric in shown for source in lacking([], metric)))


class Labels:
    """The columns before the figures: run, model, device, and whatever varies."""

    def __init__(self, sources: Sequence[Source]) -> None:
        by_source = [[group[0].case for group in source.cases.values()] for source in sources]
        cases = [case for own in by_source for case in own]
        axes = dict.fromkeys(name for own in by_source for name in varying_axes(own))
        self._several = len(sources) > 1
        self._axes = [name for name in axes if any(name in case.axes for case in cases)]
        self._seconds = any("seconds" in case.axes for case in cases)
        self._fed = len({case.workload.name for case in cases}) > 1

    @property
    def headings(self) -> list[str]:
        """In order."""
        first = [*(["run"] if self._several else []), "model", "device", *(["seconds"] if self._seconds else [])]
        return [*first, "batch", *(["input"] if self._fed else []), *self._axes, _OUTCOME]

    def of(self, source: Source, group: Sequence[Record]) -> list[Any]:
        """The values of one case; numbers stay numbers, so that they sort as such."""
        case = group[0].case
        rule = batching(case)
        found: list[Any] = [source.name] if self._several else []
        found += [case.subject.name, case.axes.device]
        found += [case.axes.get("seconds", "")] if self._seconds else []
        found += [case.axes.batch if rule == f"batch {case.axes.batch}" else rule]
        found += [case.workload.name] if self._fed else []
        outcome = ", ".join(dict.fromkeys(record.status for record in group))
        return [*found, *(_plain(case.axes.get(name)) for name in self._axes), outcome]


def _plain(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return "" if value is None else str(value)


def row_data(group: Sequence[Record], shown: Sequence[Metric]) -> list[list[Any]]:
    """The cells of one case: [text, value, interval or why there is none, rounds, samples a round, whether it is one],
    or [word, null, reason]."""
    return [_cell(cell_of(group, metric)) for metric in shown]


def _cell(cell: Cell) -> list[Any]:
    found = cell.estimate
    if found is None:
        return [cell.word, None, cell.reason]
    bounds = [number(bound, found.metric.unit) for bound in (found.low, found.high) if bound is not None]
    interval = f"95 % interval {' to '.join(bounds)}" if bounds else _why_no_interval(found)
    return [cell.text(), six(found.value), interval, found.rounds, found.samples_per_round, bool(bounds)]


def _why_no_interval(found: Quantity) -> str:
    if found.statistic == IMPORTED:
        return "no interval: the imported file has none"
    if found.statistic != "geomean":
        return f"no interval; computed over {found.samples_per_round} utterances"
    if found.metric.exact:
        return "no interval: an exact count"
    return _ONE_ROUND


def table_words(cells: Sequence[Sequence[Any]]) -> str:
    """The sentence above the table: intervals are promised only where there are some."""
    figures = [cell for cell in cells if cell[1] is not None]
    some = any(cell[5] for cell in figures)
    single = any(cell[2] == _ONE_ROUND for cell in figures)
    words = "Figures with their 95 % intervals" if some else "Figures without intervals"
    words += (
        ", which need more than one round" if some and single else ", because there was one round" if single else ""
    )
    return f"{words}. Select a row for its protocol, environment, raw samples and the command to measure it again."


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


def case_data(source: Source, key: str, raw: Sequence[Metric], shared: Shared) -> dict[str, Any]:
    """One case as the page holds it."""
    group = source.cases[key]
    case = group[0].case
    warnings = dict.fromkeys([*(text for record in group for text in record.warnings), *case_warnings(group)])
    notes = dict.fromkeys(note for record in group for note in record_notes(record))
    latency = estimate(group, metrics.LATENCY)
    steady = None  # latency and its bounds, drawn behind the samples; the figure itself where there is no interval
    if latency is not None:
        steady = [six(latency.value if one is None else one) for one in (latency.value, latency.low, latency.high)]
    return {
        "id": key,
        "run": source.name,
        "label": source.labels[key],
        "command": command(case, len([record for record in group if record.status != "skipped"])),
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
