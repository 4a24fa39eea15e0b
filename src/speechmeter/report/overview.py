"""Tables that put everything side by side: summary, parameters, cold start, stages, cascades, correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.intervals import LEAST, rank_correlation
from speechmeter.analysis.readings import part_names
from speechmeter.analysis.selecting import by_case
from speechmeter.analysis.stated import stated_metrics
from speechmeter.core import metrics
from speechmeter.core.axes import NONE, QUANTIZE
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import DTYPE, PART, STAGE, TOTAL, Scope
from speechmeter.core.types import Record
from speechmeter.report.explaining import definition_line
from speechmeter.report.grids import STATISTIC_WORDS
from speechmeter.report.labels import cell_label, labelled
from speechmeter.report.tables import (
    NOT_MEASURED,
    UNAVAILABLE,
    Cell,
    Row,
    Table,
    case_table,
    cell_of,
    list_table,
    measured,
    some_interval,
)

_ENERGY = (metrics.ENERGY_GPU, metrics.ENERGY_CPU, metrics.ENERGY_SYSTEM)
_BETWEEN = "→"


def summary(records: Sequence[Record], statistic: str = "geomean") -> list[Table]:
    """One row a case: what every meter of the run found, in one figure each."""
    records = _tried(records)
    cases = labelled(records)
    groups = [group for _, group in cases]
    columns = {metric: [cell_of(group, metric) for group in groups] for metric in summary_metrics(records)}
    notes = _without_absent(columns)
    if statistic != "geomean":
        for metric in {metrics.LATENCY, metrics.RTF} & columns.keys():
            columns[metric] = [cell_of(group, metric, statistic=statistic) for group in groups]
    rows = [
        Row(labels=(label,), cells=tuple(column[index] for column in columns.values()))
        for index, (label, _) in enumerate(cases)
    ]
    words = STATISTIC_WORDS.get(statistic)
    notes += (
        [f"latency and real-time factor: {words}; the statistic does not affect the other columns."] if words else []
    )
    return [list_table("summary", ("case",), list(columns), rows, notes)]


def _tried(records: Sequence[Record]) -> list[Record]:
    """Without the cells that the plan left out: a list has no gap to show for them, as a grid has."""
    return [record for record in records if record.status != "skipped"]


def _without_absent(columns: dict[Metric, list[Cell]]) -> list[str]:
    """Take out figures that are unavailable in every case; returns a line for each reason."""
    absent: dict[str, list[str]] = {}
    for metric, cells in list(columns.items()):
        reason = cells[0].reason
        if {(cell.word, cell.reason) for cell in cells} == {(UNAVAILABLE, reason)}:
            absent.setdefault(reason, []).append(metric.title)
            del columns[metric]
    return [f"{', '.join(titles)}: {UNAVAILABLE}: {reason}" for reason, titles in absent.items()]


_LIVE = (
    metrics.FINAL_DELAY, metrics.WORD_LAG, metrics.PARTIAL_CHURN, metrics.VOICE_TO_VOICE, metrics.FIRST_SOUND,
    metrics.SPEECH_RTF, metrics.LIVE_COMPLETENESS, metrics.LIVE_WER, metrics.ROUND_TRIP_WER,
)  # fmt: skip
"""Of live cases: those of text for systems that listen, those of sound for systems that speak."""


def summary_metrics(records: Sequence[Record]) -> list[Metric]:
    """The figures that some record holds, in a fixed order."""
    held = {m.metric for record in records for m in record.measurements}
    wanted = {
        metrics.PARAMETERS: (metrics.PARAMETERS, metrics.PARAMETERS_TIED),
        metrics.LATENCY: (metrics.LATENCY, metrics.RTF),
        metrics.FLOPS: (metrics.FLOPS,),
        metrics.MEMORY_CPU_TOTAL: (metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_LOAD),
        metrics.MEMORY_CPU_PEAK: (metrics.MEMORY_CPU_PEAK, metrics.MEMORY_NEEDED),
        metrics.MEMORY_CUDA_GROWTH: (metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_NEEDED),
        metrics.TOKENS: (metrics.TOKENS, metrics.LATENCY_PER_TOKEN),
        metrics.REQUEST_LATENCY: (metrics.REQUEST_LATENCY,),
        metrics.LIVE_ANSWERED: tuple(metric for metric in _LIVE if metric.id in held),
        **{energy: (energy, metrics.ENERGY_PER_AUDIO_HOUR[energy]) for energy in _ENERGY},
    }
    found = dict.fromkeys(one for metric, those in wanted.items() if metric.id in held for one in those)
    waste = (estimate(group, metrics.PADDING_WASTE) for group in by_case(records).values())
    padded = any(one.value > 0 for one in waste if one is not None)  # items of unlike lengths in one batch
    return [*found, *stated_metrics(records), *((metrics.RTFX, metrics.PADDING_WASTE) if padded else ())]


def parameters(records: Sequence[Record]) -> list[Table]:
    """One row a model and way to hold its weights: parameters do not depend on what it is fed."""
    models: dict[str, list[Record]] = {}
    for group in by_case(records).values():
        axes = group[0].case.axes
        quantised = axes.get(QUANTIZE.name, NONE)
        weights = f"{axes.get('dtype', '')}{'' if quantised == NONE else f', {quantised}'}"
        name = f"{group[0].case.subject.name} ({weights})"
        if name not in models or (models[name][0].status != "ok" and group[0].status == "ok"):
            models[name] = group
    shown = [metrics.PARAMETERS, metrics.PARAMETERS_TIED, metrics.PARAMETER_BYTES]
    shown += [m for m in (metrics.PARAMETERS_TRAINABLE, metrics.BUFFER_BYTES) if measured(records, m)]
    rows, notes = [], []
    for name, group in models.items():
        rows.append(Row(labels=(name,), cells=tuple(cell_of(group, metric) for metric in shown)))
        own = [m.scope for m in group[0].measurements if m.metric == metrics.PARAMETER_BYTES.id]
        dtypes = dict.fromkeys(scope for text in own if (scope := Scope.parse(text)).kind == DTYPE)
        sizes = [f"{scope.path} {cell_of(group, metrics.PARAMETER_BYTES, scope).text()}" for scope in dtypes]
        notes += [f"{name}: {', '.join(sizes)}."] if len(sizes) > 1 else []
    return [list_table("parameters", ("model",), shown, rows, notes)]


_COLD = (metrics.LATENCY_LOAD, metrics.LATENCY_FIRST)
_ONCE = (
    "load and first call are measured in new processes only. Cases that were measured in forked ones are not listed."
)


def cold_start(records: Sequence[Record]) -> list[Table]:
    """One row a case: load, first call, steady call. Cases that were never started anew are left out."""
    forked = {
        group[0].case.id
        for group in by_case(records).values()
        if not any(estimate(group, metric) for metric in _COLD)
        and any((m := record.find(metrics.LATENCY_LOAD.id)) and m.unavailable for record in group)
    }
    kept = [record for record in records if record.case.id not in forked]
    table = case_table("cold start", kept or records, (*_COLD, metrics.LATENCY))
    return [replace(table, notes=(*table.notes, _ONCE)) if kept and forked else table]


def stages(records: Sequence[Record]) -> list[Table]:
    """One row a case and stage: its latency, memory and FLOPs, and whether it is inside the clock."""
    others = (metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_WEIGHTS, metrics.FLOPS)
    shown = (metrics.LATENCY, *(metric for metric in others if measured(records, metric)))
    ids = {metric.id for metric in shown}
    rows = []
    for label, group in labelled(records):
        clocked: dict[Scope, bool] = {}
        for m in (m for record in group for m in record.measurements if m.metric in ids):
            if (scope := Scope.parse(m.scope)) == TOTAL or scope.kind == STAGE:
                clocked.setdefault(scope, bool(m.notes.get("clocked", True)))
        for scope in sorted(clocked, key=lambda scope: scope == TOTAL):
            name = scope.without(STAGE) + ("" if clocked[scope] else " (outside the clock)")
            rows.append(Row(labels=(label, name), cells=tuple(cell_of(group, metric, scope) for metric in shown)))
    return [list_table("stages", ("case", "stage"), shown, rows)]


def cascades(records: Sequence[Record]) -> list[Table]:
    """One row a case, and below a cascade one for each of its models and each piece of glue."""
    records = _tried(records)
    shown = [metrics.LATENCY, metrics.RTF, metrics.FLOPS, metrics.MEMORY_NEEDED]
    if measured(records, metrics.TOKENS):
        shown += [metrics.TOKENS, metrics.LATENCY_PER_TOKEN]
    rows = [
        Row(labels=(label, name), cells=tuple(_part_cell(group, metric, scope) for metric in shown))
        for label, group in labelled(records)
        for name, scope in [("total", TOTAL), *_parts(group)]
    ]
    notes = (
        "the times and FLOPs of the parts add up to the total. The total memory is that of the model that needs most: "
        "weights and growth.",
        f"a{_BETWEEN}b: code between model a and model b, not timed.",
    )
    return [list_table("cascades", ("case", "part"), shown, rows, notes)]


def _part_cell(group: Sequence[Record], metric: Metric, scope: str) -> Cell:
    """The figure of a part; glue holds no weights and makes no tokens, whatever became of the case."""
    if _BETWEEN in scope and metric not in (metrics.LATENCY, metrics.RTF, metrics.FLOPS):
        return Cell(word=NOT_MEASURED, reason=f"{metric.name} is not measured for this part of a call")
    return cell_of(group, metric, scope)


def _parts(group: Sequence[Record]) -> list[tuple[str, str]]:
    """(name, scope) of the models of a cascade and of the glue between them, in the order of the chain."""
    roles = part_names(group)
    found: dict[str, str] = {}
    for scope in (Scope.parse(m.scope) for r in group for m in r.measurements if m.metric == metrics.LATENCY.id):
        name = scope.without(STAGE)
        role = name.rpartition(".")[0]
        if role in roles:
            found[role] = Scope.of(PART, role)
        elif roles and _BETWEEN in name:
            found[name] = scope
    return list(found.items())


def relations(records: Sequence[Record]) -> list[Table]:
    """One row a pair of figures, one column a cell: do models rank alike by both?"""
    records = _tried(records)
    cells: dict[str, list[list[Record]]] = {}
    for group in by_case(records).values():
        cells.setdefault(cell_label(group[0].case, records), []).append(group)
    costs = [metrics.PARAMETERS, metrics.FLOPS, metrics.LATENCY, metrics.MEMORY_NEEDED, *_ENERGY]
    held = [metric for metric in costs if any(estimate(group, metric) for own in cells.values() for group in own)]
    rows = tuple(
        Row(
            labels=(f"{first.title} ~ {second.title}",),
            cells=tuple(_correlation(own, first, second) for own in cells.values()),
        )
        for first, second in combinations(held, 2)
    )
    notes = [definition_line(metrics.RANK_CORRELATION)]
    if some_interval(rows):
        notes.append(
            "[95 % interval] (n models). If the interval contains 0, it is unknown whether the metrics are correlated."
        )
    return [
        Table(
            title="relations",
            metric=metrics.RANK_CORRELATION,
            labels=("figures",),
            columns=tuple(cells),
            rows=rows,
            notes=tuple(notes),
        )
    ]


def _correlation(groups: Sequence[Sequence[Record]], first: Metric, second: Metric) -> Cell:
    both = [(estimate(group, first), estimate(group, second)) for group in groups]
    pairs = [(a.value, b.value) for a, b in both if a is not None and b is not None]
    found = rank_correlation([a for a, _ in pairs], [b for _, b in pairs])
    if found is not None:
        return Cell(estimate=found)
    if len(pairs) < LEAST:
        return Cell(word=f"too few (n={len(pairs)})", reason=f"a rank correlation needs {LEAST} models")
    return Cell(word=NOT_MEASURED, reason="all models have the same value in one of the two metrics")
