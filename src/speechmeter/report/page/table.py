"""The summary table: a row a case, every figure with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.analysis.intervals import Quantity
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import IMPORTED
from speechmeter.core.types import Case, Record
from speechmeter.report.charts.figure import six
from speechmeter.report.grids import batching, varying_axes
from speechmeter.report.numbers import number
from speechmeter.report.overview import summary_metrics
from speechmeter.report.quality import scores_in
from speechmeter.report.sources import Source
from speechmeter.report.tables import Cell, cell_of

_OUTCOME = "outcome"
ONE = "one round: no interval"


def shown_metrics(records: Sequence[Record]) -> list[Metric]:
    """The columns of figures: times first, scores where there are any, then what else the summary shows."""
    costs = summary_metrics(records)
    scored = [[record] for record in records if record.find(metrics.ANSWERED.id)]
    times = [metric for metric in costs if metric in (metrics.LATENCY, metrics.RTF)]
    return list(dict.fromkeys([*times, *(scores_in(scored) if scored else ()), *costs]))


class Labels:
    """The columns before the figures: run, model, device, and whatever varies."""

    def __init__(self, sources: Sequence[Source]) -> None:
        cases = [group[0].case for source in sources for group in source.cases.values()]
        axes = dict.fromkeys(name for source in sources for name in _varying(source))
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
        found: list[Any] = [source.name] if self._several else []
        found += [case.subject.name, case.axes.device]
        found += [case.axes.get("seconds", "")] if self._seconds else []
        found += [_batch(case)]
        found += [case.workload.name] if self._fed else []
        return [*found, *(_plain(case.axes.get(name)) for name in self._axes), _outcome(group)]


def _varying(source: Source) -> list[str]:
    return varying_axes([group[0].case for group in source.cases.values()])


def _batch(case: Case) -> Any:
    found = batching(case)
    return case.axes.batch if found == f"batch {case.axes.batch}" else found


def _plain(value: Any) -> Any:
    return (
        value if isinstance(value, int | float) and not isinstance(value, bool) else "" if value is None else str(value)
    )


def _outcome(group: Sequence[Record]) -> str:
    """`ok`, or how the rounds ended, each once."""
    return ", ".join(dict.fromkeys(record.status for record in group))


def row_data(source: Source, group: Sequence[Record], shown: Sequence[Metric]) -> list[list[Any]]:
    """The cells of one case: [text, value, interval or why there is none, rounds, samples a round, whether it is one],
    or [word, null, reason]."""
    return [_cell(cell_of(group, metric)) for metric in shown]


def table_words(cells: Sequence[Sequence[Any]]) -> str:
    """The sentence above the table: intervals are promised only where there are some."""
    figures = [cell for cell in cells if cell[1] is not None]
    some = any(cell[5] for cell in figures)
    single = any(cell[2] == ONE for cell in figures)
    words = "Figures with their 95 % intervals" if some else "Figures without intervals"
    words += "; those of one round have none" if some and single else ": there was one round" if single else ""
    return f"{words}. Choose one for its protocol, environment, raw samples and the command that measures it again."


def _cell(cell: Cell) -> list[Any]:
    found = cell.estimate
    if found is None:
        return [cell.word, None, cell.reason]
    unit = found.metric.unit
    bounds = [number(bound, unit) for bound in (found.low, found.high) if bound is not None]
    interval = f"95 % interval {' to '.join(bounds)}" if bounds else _why_none(found)
    return [cell.text(), six(found.value), interval, found.rounds, found.samples_per_round, bool(bounds)]


def _why_none(found: Quantity) -> str:
    if found.statistic == IMPORTED:
        return "no interval: none was imported"
    if found.statistic != "geomean":
        return f"no interval: over {found.samples_per_round} utterances"
    if found.metric.exact:
        return "no interval: counted, not sampled"
    return ONE
