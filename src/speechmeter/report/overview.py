"""Tables that put everything side by side: a summary, cascades with their parts, and how figures go together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.intervals import LEAST, rank_correlation
from speechmeter.analysis.readings import part_names
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import PART, STAGE, Scope
from speechmeter.core.types import Record
from speechmeter.report.grids import STATISTIC_WORDS, case_labels, cell_label
from speechmeter.report.lists import list_table, measured
from speechmeter.report.tables import NOT_MEASURED, UNAVAILABLE, Cell, Row, Table, by_case, cell_of, some_interval

_ENERGY = (metrics.ENERGY_GPU, metrics.ENERGY_CPU, metrics.ENERGY_SYSTEM)
_BETWEEN = "→"


def summary(records: Sequence[Record], statistic: str = "geomean") -> list[Table]:
    """One row a case: what every meter of the run found, in one figure each."""
    records = _tried(records)
    groups = list(by_case(records).values())
    shown, notes = _available(groups, summary_metrics(records))
    labels = case_labels(records)
    rows = tuple(
        Row(labels=(labels[group[0].case.id],), cells=tuple(_figure(group, metric, statistic) for metric in shown))
        for group in groups
    )
    words = STATISTIC_WORDS.get(statistic)
    notes += [f"latency and real-time factor: {words}; other figures as usual."] if words else []
    return [list_table("summary", ("case",), shown, rows, notes)]


def cascades(records: Sequence[Record]) -> list[Table]:
    """One row a case, and below a cascade one for each of its models and each piece of glue."""
    records = _tried(records)
    shown = [metrics.LATENCY, metrics.RTF, metrics.FLOPS, metrics.MEMORY_NEEDED]
    if measured(records, metrics.TOKENS):
        shown += [metrics.TOKENS, metrics.LATENCY_PER_TOKEN]
    labels = case_labels(records)
    rows = []
    for case_id, group in by_case(records).items():
        for name, scope in [("total", "total"), *_parts(group)]:
            cells = tuple(_part_cell(group, metric, scope) for metric in shown)
            rows.append(Row(labels=(labels[case_id], name), cells=cells))
    notes = (
        "times and FLOPs of a cascade add; its memory is that of the model which needs most, weights and growth.",
        f"a{_BETWEEN}b: glue between two models, outside the clock.",
    )
    return [list_table("cascades", ("case", "part"), shown, tuple(rows), notes=notes)]


def _part_cell(group: Sequence[Record], metric: Metric, scope: str) -> Cell:
    """The figure of a part; glue holds no weights and makes no tokens, whatever became of the case."""
    if _BETWEEN in scope and metric not in (metrics.LATENCY, metrics.RTF, metrics.FLOPS):
        return Cell(word=NOT_MEASURED, reason=f"{metric.name} is not measured for this part")
    return cell_of(group, metric, scope)


def relations(records: Sequence[Record]) -> list[Table]:
    """One row a pair of figures, one column a cell: do models rank alike by both?"""
    records = _tried(records)
    cells: dict[str, list[list[Record]]] = {}
    for group in by_case(records).values():
        cells.setdefault(cell_label(group[0].case, records), []).append(group)
    costs = [metrics.PARAMETERS, metrics.FLOPS, metrics.LATENCY, metrics.MEMORY_NEEDED, *_ENERGY]
    costs = [
        metric for metric in costs if any(estimate(group, metric) for groups in cells.values() for group in groups)
    ]
    rows = tuple(
        Row(
            labels=(f"{first.title} ~ {second.title}",),
            cells=tuple(_correlation(groups, first, second) for groups in cells.values()),
        )
        for first, second in combinations(costs, 2)
    )
    return [
        Table(
            title="relations",
            metric=metrics.RANK_CORRELATION,
            labels=("figures",),
            columns=tuple(cells),
            rows=rows,
            notes=_relation_notes(rows),
        )
    ]


def _relation_notes(rows: Sequence[Row]) -> tuple[str, ...]:
    what = f"{metrics.RANK_CORRELATION.id}: {metrics.RANK_CORRELATION.definition}"
    if not some_interval(rows):
        return (f"{what}.",)
    return f"{what}; [95 % interval] (n models).", "an interval that holds 0 says nothing about the relation."


def _tried(records: Sequence[Record]) -> list[Record]:
    """Without the cells that the plan left out: a list has no gap to show for them, as a grid has."""
    return [record for record in records if record.status != "skipped"]


def summary_metrics(records: Sequence[Record]) -> list[Metric]:
    """The figures that some record holds, in a fixed order."""
    wanted = {
        metrics.PARAMETERS: (metrics.PARAMETERS, metrics.PARAMETERS_TIED),
        metrics.LATENCY: (metrics.LATENCY, metrics.RTF),
        metrics.FLOPS: (metrics.FLOPS,),
        metrics.MEMORY_CPU_TOTAL: (metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_LOAD),
        metrics.MEMORY_CPU_PEAK: (metrics.MEMORY_CPU_PEAK, metrics.MEMORY_NEEDED),
        metrics.MEMORY_CUDA_GROWTH: (metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_NEEDED),
        metrics.TOKENS: (metrics.TOKENS, metrics.LATENCY_PER_TOKEN),
        **{energy: (energy, metrics.ENERGY_PER_AUDIO_HOUR[energy]) for energy in _ENERGY},
    }
    found = dict.fromkeys(one for metric, those in wanted.items() if measured(records, metric) for one in those)
    return [*found, *((metrics.RTFX, metrics.PADDING_WASTE) if _padded(records) else ())]


def _available(groups: Sequence[Sequence[Record]], wanted: Sequence[Metric]) -> tuple[list[Metric], list[str]]:
    """The figures that some case has, and a line for each reason why others are unavailable in all of them."""
    shown: list[Metric] = []
    absent: dict[str, list[str]] = {}
    for metric in wanted:
        cells = [cell_of(group, metric) for group in groups]
        reason = cells[0].reason
        if {(cell.word, cell.reason) for cell in cells} == {(UNAVAILABLE, reason)}:
            absent.setdefault(reason, []).append(metric.title)
        else:
            shown.append(metric)
    return shown, [f"{', '.join(titles)}: {UNAVAILABLE}: {reason}" for reason, titles in absent.items()]


def _padded(records: Sequence[Record]) -> bool:
    """Whether items of unlike lengths stood side by side in some case."""
    waste = (estimate(group, metrics.PADDING_WASTE) for group in by_case(records).values())
    return any(found.value > 0 for found in waste if found is not None)


def _figure(group: Sequence[Record], metric: Metric, statistic: str) -> Cell:
    timed = metric in (metrics.LATENCY, metrics.RTF)
    return cell_of(group, metric, statistic=statistic if timed else "geomean")


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


def _correlation(groups: Sequence[Sequence[Record]], first: Metric, second: Metric) -> Cell:
    pairs = [
        (a, b)
        for group in groups
        if (a := _value(group, first)) is not None and (b := _value(group, second)) is not None
    ]
    found = rank_correlation([a for a, _ in pairs], [b for _, b in pairs])
    if found is not None:
        return Cell(estimate=found)
    if len(pairs) < LEAST:
        return Cell(word=f"too few (n={len(pairs)})", reason=f"a rank correlation needs {LEAST} models")
    return Cell(word=NOT_MEASURED, reason="all models are alike in one of the two")


def _value(group: Sequence[Record], metric: Metric) -> float | None:
    found = estimate(group, metric)
    return None if found is None else found.value
