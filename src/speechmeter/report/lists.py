"""Tables with one row a model or a case: parameters, cold start, stages."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.core import metrics
from speechmeter.core.axes import NONE, QUANTIZE
from speechmeter.core.scope import DTYPE, STAGE, TOTAL, Scope
from speechmeter.core.types import Record
from speechmeter.report.explaining import definition_line
from speechmeter.report.grids import case_labels
from speechmeter.report.tables import NOT_MEASURED, Row, Table, by_case, cell_of


def parameters(records: Sequence[Record]) -> list[Table]:
    """One row a model and way to hold its weights: parameters do not depend on what it is fed."""
    firsts: dict[str, list[Record]] = {}
    for group in by_case(records).values():
        axes = group[0].case.axes
        quantised = axes.get(QUANTIZE.name, NONE)
        weights = f"{axes.get('dtype', '')}{'' if quantised == NONE else f', {quantised}'}"
        name = f"{group[0].case.subject.name} ({weights})"
        best = firsts.get(name)
        if best is None or (best[0].status != "ok" and group[0].status == "ok"):
            firsts[name] = group
    shown = [metrics.PARAMETERS, metrics.PARAMETERS_TIED, metrics.PARAMETER_BYTES]
    shown += [m for m in (metrics.PARAMETERS_TRAINABLE, metrics.BUFFER_BYTES) if measured(records, m)]
    rows = tuple(
        Row(labels=(name,), cells=tuple(cell_of(group, metric) for metric in shown)) for name, group in firsts.items()
    )
    notes = [line for name, group in firsts.items() for line in _dtypes(name, group)]
    return [list_table("parameters", ("model",), shown, rows, notes)]


def _dtypes(name: str, group: Sequence[Record]) -> list[str]:
    """The bytes by dtype, where there is more than one."""
    found = {
        Scope.parse(m.scope).path: cell_of(group, metrics.PARAMETER_BYTES, m.scope).text()
        for m in group[0].measurements
        if m.metric == metrics.PARAMETER_BYTES.id and Scope.parse(m.scope).kind == DTYPE
    }
    return [f"{name}: " + ", ".join(f"{dtype} {size}" for dtype, size in found.items()) + "."] if len(found) > 1 else []


def measured(records: Sequence[Record], metric: metrics.Metric) -> bool:
    """Whether any record holds the metric or a reason for its absence."""
    return any(m.metric == metric.id for record in records for m in record.measurements)


def cold_start(records: Sequence[Record]) -> list[Table]:
    """One row a case: load, first call, steady call."""
    shown = (metrics.LATENCY_LOAD, metrics.LATENCY_FIRST, metrics.LATENCY)
    labels = case_labels(records)
    rows = tuple(
        Row(labels=(labels[group[0].case.id],), cells=tuple(cell_of(group, metric) for metric in shown))
        for group in by_case(records).values()
    )
    return [list_table("cold start", ("case",), shown, rows)]


def stages(records: Sequence[Record]) -> list[Table]:
    """One row a case and stage: its latency, memory and FLOPs, and whether it stands inside the clock."""
    others = (metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_WEIGHTS, metrics.FLOPS)
    shown = (metrics.LATENCY, *(metric for metric in others if measured(records, metric)))
    ids = {metric.id for metric in shown}
    rows = []
    labels = case_labels(records)
    for group in by_case(records).values():
        scopes: dict[str, bool] = {}
        for m in (m for record in group for m in record.measurements if m.metric in ids and _is_stage(m.scope)):
            scopes.setdefault(m.scope, bool(m.notes.get("clocked", True)))
        for scope, clocked in sorted(scopes.items(), key=lambda item: item[0] == "total"):
            name = Scope.parse(scope).without(STAGE) + ("" if clocked else " (outside the clock)")
            cells = tuple(cell_of(group, metric, scope) for metric in shown)
            rows.append(Row(labels=(labels[group[0].case.id], name), cells=cells))
    return [list_table("stages", ("case", "stage"), shown, tuple(rows))]


def _is_stage(scope: str) -> bool:
    return scope == TOTAL or Scope.parse(scope).kind == STAGE


def list_table(
    title: str,
    labels: tuple[str, ...],
    shown: Sequence[metrics.Metric],
    rows: tuple[Row, ...],
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
        rows=rows,
        notes=(
            *map(definition_line, shown),
            *notes,
            *(f"{', '.join(names)}: {what}" for what, names in missing.items()),
        ),
    )
