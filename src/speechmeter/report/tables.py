"""The one model of a table that every format draws: a title, columns, rows of cells, notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from speechmeter.analysis.derived import lacking, sample_values, why_absent
from speechmeter.analysis.estimate import estimate, real_time, samples_needed
from speechmeter.analysis.intervals import Quantity
from speechmeter.analysis.stated import is_stated
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.protocol import RepeatsProtocol, SteadyProtocol
from speechmeter.core.scope import LOADING, TOTAL
from speechmeter.core.types import Record
from speechmeter.report.explaining import definition_line
from speechmeter.report.labels import labelled
from speechmeter.report.numbers import BYTES, bytes_unit, figure

NOT_MEASURED = "–"
UNAVAILABLE = "unavailable"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One figure, or a word instead of it, and the reason."""

    estimate: Quantity | None = None
    word: str = ""
    reason: str = ""
    asked_samples: int | None = None
    verdict: str = ""
    scale: str = ""
    plus: Cell | None = None

    def text(self, *, sci: bool = False) -> str:
        """What is printed, with the number of samples where they are few; `plus` follows behind a plus sign.

        With a `scale`, such as `MiB`, the figure is in that unit whatever its size.
        """
        if self.plus is not None:
            return f"{replace(self, plus=None).text(sci=sci)} + {self.plus.text(sci=sci)}"
        if self.estimate is None:
            return self.word
        text = figure(self.estimate, sci=sci, scale=self.scale)
        few = self.asked_samples is not None and self.estimate.samples_per_round < self.asked_samples
        return f"{text} (n={self.estimate.samples_per_round})" if few else text

    @property
    def figures(self) -> tuple[Cell, ...]:
        """The cell without what is behind a plus sign, and that."""
        return (self,) if self.plus is None else (replace(self, plus=None), *self.plus.figures)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Its labels and its cells, in the table's order of columns."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A grid of cells. `labels` head the label columns, `columns` the figures; caveats and notes come below.

    `caveats` are what a reader must know before a figure is quoted; every format shows them beside the figures.
    """

    title: str
    metric: Metric | None
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())
    caveats: tuple[str, ...] = field(default=())


def some_interval(rows: Iterable[Row], *statistics: str) -> bool:
    """Whether some figure has an interval; of these statistics, where any are named."""
    found = (cell.estimate for row in rows for cell in row.cells if cell.estimate is not None)
    return any(one.low is not None for one in found if not statistics or one.statistic in statistics)


def with_notes(tables: Sequence[Table], notes: Iterable[str]) -> list[Table]:
    """The tables with notes below the last of them, which are about all."""
    if not tables:
        return []
    *before, last = tables
    return [*before, replace(last, notes=(*last.notes, *notes))]


def cell_of(records: Sequence[Record], metric: Metric, scope: str = TOTAL, statistic: str = "geomean") -> Cell:
    """The cell of one case's records: its figure, or what became of it."""
    if not records:
        return Cell(word=NOT_MEASURED, reason="not measured")
    found = estimate(records, metric, scope, statistic)
    if found is not None:
        return Cell(
            estimate=found,
            asked_samples=_asked(records[0], metric) if scope != LOADING else None,
            verdict=real_time(found) if metric.id == metrics.RTF.id else "",
        )
    reason = next((r for record in records if (r := why_absent(record, metric, scope))), None)
    if reason is not None:
        return Cell(word=UNAVAILABLE, reason=reason)
    last = records[-1]
    if is_stated(metric):
        what = (
            f"the file does not state {statistic}" if measured(records, metric) else f"{metric.name} is not in this run"
        )
        return Cell(word=NOT_MEASURED, reason=what)
    if statistic != "geomean" and (have := sum(len(sample_values(r, metric, scope)) for r in records)):
        need = samples_needed(statistic)
        return Cell(
            word=f"too few (n={have})",
            reason=f"{statistic} needs {need} samples, but there are {have}; measure more rounds",
        )
    if last.status == "ok" or not lacking([last], metric):  # other parts of the failed case have the figure
        return Cell(word=NOT_MEASURED, reason=_why_not_measured(records, metric, scope))
    return Cell(word=last.status, reason=last.reason)


def _why_not_measured(records: Sequence[Record], metric: Metric, scope: str) -> str:
    needed = lacking(records, metric)
    if not needed and scope == TOTAL:
        return f"{metric.name} was not measured for whole calls"
    if not needed:
        return f"{metric.name} is not measured for this part of a call"
    if needed == [metric]:
        return f"{metric.name} is not in this run"
    return f"{metric.name} needs {', '.join(need.name for need in needed)}, which this run does not have"


def measured(records: Sequence[Record], metric: Metric) -> bool:
    """Whether any record holds the metric or a reason for its absence."""
    return any(m.metric == metric.id for record in records for m in record.measurements)


def list_table(
    title: str,
    labels: tuple[str, ...],
    shown: Sequence[Metric],
    rows: Sequence[Row],
    notes: Sequence[str] = (),
    *,
    columns: Sequence[str] = (),
) -> Table:
    """A table with one column a metric; below it the definitions, notes, and why figures are missing."""
    missing: dict[str, dict[str, None]] = {}
    for row in rows:
        for cell in row.cells:
            if cell.reason and cell.word != NOT_MEASURED:
                missing.setdefault(f"{cell.word}: {cell.reason}", {})[row.labels[0]] = None
    return Table(
        title=title,
        metric=None,
        labels=labels,
        columns=tuple(columns) or tuple(metric.title for metric in shown),
        rows=tuple(rows),
        notes=(
            *map(definition_line, shown),
            *notes,
            *(f"{', '.join(names)}: {reason}" for reason, names in missing.items()),
        ),
    )


def case_table(title: str, records: Sequence[Record], shown: Sequence[Metric], notes: Sequence[str] = ()) -> Table:
    """A table with one row a case and one column a metric."""
    rows = [
        Row(labels=(name,), cells=tuple(cell_of(group, metric) for metric in shown))
        for name, group in labelled(records)
    ]
    return list_table(title, ("case",), shown, rows, notes)


def _asked(record: Record, metric: Metric) -> int | None:
    protocol = record.case.protocol
    return protocol.samples if metric.id in _TIMED and isinstance(protocol, SteadyProtocol | RepeatsProtocol) else None


_TIMED = {metric.id for metric in (metrics.LATENCY, metrics.RTF, metrics.RTFX, metrics.THROUGHPUT)}


def in_one_unit(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with all sizes in the unit of the largest, so that a reader compares them without converting."""
    sizes = [cell.estimate.value for cell in cells if cell.estimate is not None and cell.estimate.metric.unit == BYTES]
    if not sizes:
        return list(cells)
    scale = bytes_unit(max(sizes, key=abs))
    return [replace(cell, scale=scale) for cell in cells]
