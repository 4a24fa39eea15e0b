"""Grids over seconds × batch, one per model, device and whatever else varies; a plain list where there is no grid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.quality import score_notes
from speechmeter.analysis.scores import RULES
from speechmeter.analysis.stated import is_imported, tool_of
from speechmeter.analysis.warnings import case_warnings, in_words
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import Scope
from speechmeter.core.types import FAILED, Case, Record
from speechmeter.report.caveats import rounds_caveat, study_notes
from speechmeter.report.explaining import definition_line
from speechmeter.report.labels import (
    COLUMN_AXIS,
    ROW_AXIS,
    Group,
    cell_of_case,
    cell_words,
    grid_groups,
    label,
    position,
)
from speechmeter.report.numbers import counted, number
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, cell_of, in_one_unit

_TIMED = (metrics.RTF.id, metrics.RTFX.id, metrics.THROUGHPUT.id)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
_MOST_NAMED = 3
"""So many cells are named in front of a warning; of more, their number."""
STATISTIC_WORDS = {
    "mean-sd": "mean ± standard deviation of all samples",
    "mean+3sd": "mean + 3 standard deviations of all samples",
    "p50": "median of all samples",
    "p90": "90th percentile of all samples",
    "p95": "95th percentile of all samples",
    "p99": "99th percentile of all samples",
    "max": "largest of all samples",
}
"""What a figure is with `--stat`."""
_SAMPLING = {
    "steady": "up to {samples} samples (at least {min_samples}) in {budget_s} s",
    "repeats": "timed calls: {samples}, after {discard} discarded",
    "schedule": "schedule: wait {wait}, warmup {warmup}, active {active}, repeat {repeat}",
}
_SPEED = {
    "real-time": "faster than real time",
    "not real-time": "not faster than real time",
    "undecided": "not known whether faster than real time",
}
_NO_RULE = dict.fromkeys(("samples", "min_samples", "budget_s", "discard", "wait", "warmup", "active", "repeat"), "?")

_BESIDE = {"wall": (metrics.RTF,), "CPU + CUDA": (metrics.RTF_CPU, metrics.RTF_GPU)}
_BESIDE_ON_CPU = {"wall": (metrics.RTF,), "CPU": (metrics.RTF_CPU,)}
Beside = Mapping[str, tuple[Metric, ...]]
"""Figures that are side by side in every cell of a grid, by the word in their column's heading.

Several of one word are in one cell, with a plus sign between them.
"""
Cells = Mapping[tuple[Any, Any, str], Cell]
"""By row, column and the word of `Beside`."""


def grids(
    records: Sequence[Record],
    metric: Metric,
    *,
    scope: str = "total",
    statistic: str = "geomean",
    beside: Beside | None = None,
) -> list[Table]:
    """One table for each group of cases that differ in seconds and batch alone.

    With `beside` every cell of the grid has these figures side by side; the metric gives the title.
    """
    shown = beside or {"": (metric,)}
    heading = metric.title + (f", {Scope.parse(scope).path}" if scope != "total" else "")
    heading += "" if statistic == "geomean" else f" ({STATISTIC_WORDS[statistic]})"
    tables = []
    for title, group in grid_groups(records).items():
        cells = {
            (*position(rounds[0].case), word): _joined([cell_of(rounds, one, scope, statistic) for one in those])
            for rounds in group
            for word, those in shown.items()
        }
        cells = dict(zip(cells, in_one_unit(list(cells.values())), strict=True))
        columns = [(column, word) for column in ordered(key[1] for key in cells) for word in shown]
        rows = [
            Row(
                labels=(row_label(row),),
                cells=tuple(cells.get((row, *column), Cell(word=NOT_MEASURED)) for column in columns),
            )
            for row in ordered(key[0] for key in cells)
        ]
        definitions = (definition_line(one) for those in shown.values() for one in those)
        estimates = (cell.estimate for cell in cells.values() if cell.estimate is not None)
        table = Table(
            title=f"{title}: {heading}",
            metric=metric,
            labels=(f"{ROW_AXIS} \\ {COLUMN_AXIS}",),
            columns=tuple(f"{label(column)} {word}".strip() for column, word in columns),
            rows=tuple(rows),
            notes=(*definitions, *_notes(group, cells, metric)),
            caveats=(*rounds_caveat(estimates), *study_notes([record for rounds in group for record in rounds])),
        )
        tables.append(table)
    return tables


def split_rtf(records: Sequence[Record], statistic: str = "geomean") -> list[Table]:
    """Grids of the real-time factor: by wall time, and by the time that the CPU and the GPU were busy.

    The latter are in one cell as `CPU + CUDA`. They overlap, so their sum is not the time of a call.
    """
    tables = []
    for on_gpu, beside in ((False, _BESIDE_ON_CPU), (True, _BESIDE)):
        own = [record for record in records if record.case.device.is_cuda is on_gpu]
        tables += grids(own, metrics.RTF, statistic=statistic, beside=beside)
    return tables


def _joined(cells: Sequence[Cell]) -> Cell:
    """One cell of several figures."""
    first, *others = cells
    return replace(first, plus=_joined(others)) if others else first


def row_label(row: Any) -> str:
    """The seconds of a row, as its heading."""
    return label(row) + (" s" if isinstance(row, float | int) else "")


def ordered(values: Iterable[Any]) -> list[Any]:
    """Each value once: numbers ascending, others in the order of their first appearance."""
    unique = list(dict.fromkeys(values))
    return sorted(unique) if all(isinstance(value, int | float) for value in unique) else unique


def _notes(group: Group, cells: Cells, metric: Metric) -> list[str]:
    """How the figures were taken, then why cells have none, what meters say, and warnings."""
    notes = [protocol_note(group[0][0].case, group)]
    verdicts = [cell.verdict for cell in cells.values() if cell.verdict]
    counts = [f"{_SPEED[word]}: {verdicts.count(word)} of {len(verdicts)} cells" for word in dict.fromkeys(verdicts)]
    notes += [f"{'; '.join(counts)}."] if counts else []
    if metric == metrics.MEMORY_CPU_TOTAL:
        notes += _memory_after_load(group)
    reasons: dict[str, list[str]] = {}
    for (row, column, word), cell in cells.items():
        for one in cell.figures:
            if one.estimate is None and one.reason:
                reasons.setdefault(f"{one.word}: {one.reason}", []).append(f"{cell_words(row, column)} {word}".strip())
    notes += [f"{', '.join(named)}: {reason}" for reason, named in reasons.items()]
    for rounds in group:
        failed = [record for record in rounds if record.status in FAILED]
        if failed and len(failed) < len(rounds):  # the case has a figure, of the other rounds
            notes.append(f"{_cell(rounds)}: {in_words(rounds)}: {failed[-1].reason}".lstrip(": "))
    if metric.id not in (metrics.ITEMS.id, metrics.LATENCY_LOAD.id):  # what model and input say is a caveat
        own = [m for rounds in group for record in rounds if (m := record.find(metric.id)) is not None]
        notes += dict.fromkeys(str(note) for m in own for note in m.notes.get("notes", ()))
    if metric.id in RULES:
        notes += dict.fromkeys(note for rounds in group for note in score_notes(rounds))
    return notes + warning_notes(group, metric)


def _cell(rounds: Sequence[Record]) -> str:
    return " ".join(cell_of_case(rounds[0].case))


def _memory_after_load(group: Group) -> list[str]:
    """What a process held before any call, beside its peak during one."""
    found = [made for rounds in group if (made := estimate(rounds, metrics.MEMORY_CPU_LOAD)) is not None]
    if not found:
        return []
    low, high = (number(pick(one.value for one in found), found[0].metric.unit) for pick in (min, max))
    size = low if low == high else f"{low} to {high}"
    return [f"after loading, before the first call: {size}. `--metric memory` shows the growth during a call."]


def warning_notes(group: Group, metric: Metric, names: Mapping[str, str] | None = None) -> list[str]:
    """Warnings of records and on their samples, with the cells they are about; those alike but for numbers are one.

    `names` are those of cases by their ids, where they are in no grid.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for rounds in group:
        found = [text for record in rounds for text in record.warnings]
        found += case_warnings(rounds) if metric.unit == "s" or metric.id in _TIMED else []
        for text in dict.fromkeys(found):
            alike.setdefault(_NUMBER.sub("#", text), []).append(
                (names[rounds[0].case.id] if names else _cell(rounds), text)
            )
    lines = []
    for those in alike.values():
        cells = list(dict.fromkeys(cell for cell, _ in those))
        named = ", ".join(cells) if len(cells) <= _MOST_NAMED else f"{len(cells)} of {len(group)} cases"
        about = "" if len(cells) == len(group) == 1 else f"{named}: "
        lines.append(f"warning: {about}{_with_ranges([text for _, text in those])}")
    return lines


def _with_ranges(texts: Sequence[str]) -> str:
    """Texts that differ in their numbers alone as one, each number as the range of them: `14 to 65%`."""
    numbers = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    ranges = iter([" to ".join(dict.fromkeys((min(those, key=float), max(those, key=float)))) for those in numbers])
    return _NUMBER.sub(lambda _: next(ranges), texts[0])


def protocol_note(case: Case, group: Group) -> str:
    """How the figures below a title were taken, in one line."""
    axes, rule = case.axes, case.protocol.to_json()
    measured = (sum(record.status == "ok" for record in records) for records in group)
    rounds = {count for count in measured if count} or {0}
    low, high = min(rounds), max(rounds)
    text = _SAMPLING.get(str(rule.get("mode")), "").format_map({**_NO_RULE, **rule})
    if is_imported(group[0][0]):
        return f"measured with {tool_of(case)}; {case.workload.name}."
    rounds_text = counted(high, "round") if low == high else f"{low}–{high} rounds"
    threads = counted(axes.get("threads"), "thread")
    parts = (
        rounds_text, text, f"boundary {axes.get('boundary')}", str(axes.get("dtype")), threads,
        f"{case.workload.plugin}: {case.workload.name}.",
    )  # fmt: skip
    return "; ".join(filter(None, parts))
