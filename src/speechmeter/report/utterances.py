"""A dataset with one utterance a call: what an utterance costs on average, typically, and at most, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from speechmeter.analysis.estimate import samples_needed
from speechmeter.analysis.readings import part_names
from speechmeter.analysis.utterances import by_utterance, over_utterances
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import PART, STAGE, Scope
from speechmeter.core.types import Record
from speechmeter.report.explaining import definition_line
from speechmeter.report.labels import labelled
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, list_table, some_interval

_SHOWN = (
    metrics.LATENCY, metrics.RTF, metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_GROWTH,
    metrics.FLOPS,
)  # fmt: skip
_NEEDED = "this table needs several utterances, one per call: measure a dataset (`data`) with batch: 1"


def utterances(records: Sequence[Record]) -> list[Table]:
    """One table a metric, of the cases that have a call for each utterance; the others are named below it."""
    cases = labelled(records)
    found = [table for metric in _SHOWN if (table := _table(cases, metric)) is not None]
    others = [label for label, group in cases if group[0].status == "ok" and not by_utterance(group, metrics.ITEMS)]
    if found and others:
        line = f"{', '.join(others)}: {_NEEDED}."
        return [replace(table, notes=(*table.notes, line)) for table in found]
    if others:
        rows = [Row(labels=(name,), cells=(Cell(word="unavailable", reason=_NEEDED),)) for name in others]
        return [list_table("figures by utterance", ("case",), (), rows, columns=("utterances",))]
    return found


def _table(cases: Sequence[tuple[str, list[Record]]], metric: Metric) -> Table | None:
    rows = tuple(
        Row(labels=(label, name), cells=_cells(group, metric, scope))
        for label, group in cases
        for name, scope in (_scopes(group) if metric != metrics.RTF else [("total", "total")])
        if by_utterance(group, metric, scope)
    )
    if not rows:
        return None
    return Table(
        title=f"{metric.title} by utterance",
        metric=metric,
        labels=("case", "part"),
        columns=("mean", "median", "p95", "maximum", "utterances"),
        rows=rows,
        notes=(
            definition_line(metric),
            f"mean over the dataset{', ± over rounds' if some_interval(rows) else ''}; "
            "the value of an utterance is the median of its samples.",
            *dict.fromkeys(f"–: {cell.reason}." for row in rows for cell in row.cells if cell.reason),
        ),
    )


def _cells(group: Sequence[Record], metric: Metric, scope: str) -> tuple[Cell, ...]:
    count = len(by_utterance(group, metric, scope))
    cells = []
    for statistic, found in over_utterances(group, metric, scope).items():
        need = samples_needed(statistic)
        reason = f"{statistic} needs {need} utterances, but there are {count}"
        cells.append(Cell(estimate=found) if found else Cell(word=NOT_MEASURED, reason=reason))
    return (*cells, Cell(word=f"{count:,}"))


def _scopes(group: Sequence[Record]) -> list[tuple[str, str]]:
    """(name, scope) of the whole and of its models; of a plain model, of its stages."""
    models = part_names(group)
    if models:
        return [("total", "total"), *((name, Scope.of(PART, name)) for name in models)]
    latencies = [m for record in group for m in record.measurements if m.metric == metrics.LATENCY.id]
    clocked = dict.fromkeys(Scope.parse(m.scope) for m in latencies if m.notes.get("clocked", True))
    return [("total", "total"), *((scope.path, scope) for scope in clocked if scope.kind == STAGE)]
