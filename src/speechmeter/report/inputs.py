"""Noise against real audio: the same cases on both, and whether their figures differ."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.compare import Verdict
from speechmeter.analysis.conditions import MIN_EFFECT, NOISE, RATIO, Pair, pairs
from speechmeter.analysis.metric_names import memory_metric
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.explaining import definition_line
from speechmeter.report.labels import case_labels
from speechmeter.report.numbers import counted
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, cell_of, measured, some_interval

_FIGURES = (metrics.LATENCY, metrics.FLOPS, metrics.TOKENS, metrics.ENERGY_GPU, metrics.ENERGY_CPU,
            metrics.ENERGY_SYSTEM)  # fmt: skip
_ONE_ROUND = "one round"
_NEEDED = (
    "no case of this run was measured on noise and on real audio; measure both in one run: audio: [noise, sample], or "
    "[noise, FILE] with your own recording"
)


def inputs(records: Sequence[Record]) -> list[Table]:
    """One row a case, real input and figure; none, and what is needed, where nothing was measured on both inputs."""
    tried = [record for record in records if record.status != "skipped"]
    found = list(pairs(by_case(tried).values()))
    labels = case_labels([record for record in tried if record.case.id in {pair.noise[0].case.id for pair in found}])
    rows = tuple(row for pair in found for row in _rows(pair, labels[pair.noise[0].case.id]))
    titles = {row.labels[2] for row in rows}
    shown = [metric for metric in (*_FIGURES, *_memories(tried)) if metric.title in titles]
    notes = [] if rows else [_NEEDED]
    notes.append(definition_line(metrics.REAL_OVER_NOISE))
    if some_interval(rows, RATIO):
        notes.append(f"[95 % interval over rounds]. SAME: the interval of the ratio is within {MIN_EFFECT:.0%} of 1.")
    if any(row.cells[-1].word == _ONE_ROUND for row in rows):
        notes.append(f"{_ONE_ROUND}: the ratio has no interval; measure more rounds.")
    return [
        Table(
            title="real audio against noise",
            metric=metrics.REAL_OVER_NOISE,
            labels=("case", "real audio", "figure"),
            columns=(NOISE, "real", "real / noise", "differ?"),
            rows=rows,
            notes=(*notes, *map(definition_line, shown)),
        )
    ]


def _memories(records: Sequence[Record]) -> list[Metric]:
    return list(dict.fromkeys(memory_metric(group) for group in by_case(records).values()))


def _rows(pair: Pair, label: str) -> list[Row]:
    made = []
    for metric in (*_FIGURES, *_memories(pair.noise)):
        if not measured([*pair.noise, *pair.real], metric):
            continue
        verdict, ratio = pair.compared(metric)
        cells = (
            cell_of(pair.noise, metric),
            cell_of(pair.real, metric),
            Cell(word=NOT_MEASURED, reason=verdict.reason) if ratio is None else Cell(estimate=ratio),
            Cell(word=_answer(verdict)),
        )
        made.append(Row(labels=(label, pair.name, metric.title), cells=cells))
    return made


def _answer(verdict: Verdict) -> str:
    """`SAME (5 pairs)`, `MORE (counted)`, `one round`, or why there is none."""
    if verdict.metric.exact and verdict.ratio is not None:
        return f"{verdict.word} (counted)"
    if verdict.low is None:
        return _ONE_ROUND if verdict.ratio is not None else verdict.word
    how = counted(verdict.rounds, "pair" if verdict.paired else "round")
    return f"{verdict.text} ({how})"
