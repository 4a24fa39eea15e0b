"""Grids over seconds × batch, one per model, device and whatever else varies; a plain list where there is no grid."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.quality import score_notes
from speechmeter.analysis.scores import RULES
from speechmeter.analysis.warnings import case_warnings, in_words
from speechmeter.core import metrics
from speechmeter.core.axes import LATE_DEFAULTS
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import Scope
from speechmeter.core.types import CONTENT_HASHES, FAILED, Case, Record
from speechmeter.report.caveats import rounds_caveat, study_notes
from speechmeter.report.explaining import definition_line
from speechmeter.report.numbers import counted, number
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, by_case, cell_of, in_one_unit

_TIMED = (metrics.RTF.id, metrics.RTFX.id, metrics.THROUGHPUT.id)
_ROW_AXIS, _COLUMN_AXIS = "seconds", "batch"
_RULES = ("batch_seconds", "max_frames")
"""Axes that take the place of `batch` where they are set."""
WORKLOAD, _CONTENT = "workload", "workload's content"
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
_MOST_NAMED = 3
"""So many cells are named in front of a warning; of more, their number."""
_DIGITS = 6
"""So many of a hash tell what has one name apart."""

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
    "repeats": "{samples} samples after {discard} discarded",
    "schedule": "schedule {wait}/{warmup}/{active} × {repeat}",
}
_NO_RULE = dict.fromkeys(("samples", "min_samples", "budget_s", "discard", "wait", "warmup", "active", "repeat"), "?")

Group = list[list[Record]]


Beside = Mapping[str, tuple[Metric, ...]]
"""Figures that are side by side in every cell of a grid, by the word in their column's heading.

Several of one word are in one cell, with a plus sign between them.
"""


def grids(
    records: Sequence[Record],
    metric: Metric,
    *,
    scope: str = "total",
    statistic: str = "geomean",
    beside: Beside | None = None,
) -> list[Table]:
    """One table for each group of cases that differ in seconds and batch alone.

    With `beside` every place of the grid has these figures side by side; the metric gives the title.
    """
    groups = grid_groups(records)
    return [grid_table(title, group, metric, scope, statistic, beside) for title, group in groups.items()]


def grid_groups(records: Sequence[Record]) -> dict[str, Group]:
    """Cases that differ in seconds and batch alone, by what they have in common."""
    cases = list(by_case(records).values())
    varying = varying_axes([group[0].case for group in cases])
    groups: dict[str, Group] = {}
    for group in cases:
        groups.setdefault(_title(group[0].case, varying), []).append(group)
    return groups


def grid_table(
    title: str,
    group: Group,
    metric: Metric,
    scope: str = "total",
    statistic: str = "geomean",
    beside: Beside | None = None,
) -> Table:
    """The table of one such group."""
    shown = beside or {"": (metric,)}
    cells = {
        (*_position(records[0].case), word): _joined([cell_of(records, one, scope, statistic) for one in those])
        for records in group
        for word, those in shown.items()
    }
    cells = dict(zip(cells, in_one_unit(list(cells.values())), strict=True))
    rows = _ordered(position[0] for position in cells)
    columns = [(column, word) for column in _ordered(position[1] for position in cells) for word in shown]
    heading = metric.title + (f", {Scope.parse(scope).path}" if scope != "total" else "")
    heading += "" if statistic == "geomean" else f" ({STATISTIC_WORDS[statistic]})"
    return Table(
        title=f"{title}: {heading}",
        metric=metric,
        labels=(f"{_ROW_AXIS} \\ {_COLUMN_AXIS}",),
        columns=tuple(f"{_label(column)} {word}".strip() for column, word in columns),
        rows=tuple(
            Row(
                labels=(_label(row) + (" s" if isinstance(row, float | int) else ""),),
                cells=tuple(cells.get((row, *column), Cell(word=NOT_MEASURED)) for column in columns),
            )
            for row in rows
        ),
        notes=(
            *(definition_line(one) for those in shown.values() for one in those),
            *_notes(group, cells, metric),
        ),
        caveats=_caveats(group, cells),
    )


def _joined(cells: Sequence[Cell]) -> Cell:
    """One cell of several figures."""
    first, *others = cells
    return replace(first, plus=_joined(others)) if others else first


def _position(case: Case) -> tuple[Any, Any]:
    return case.axes.get(_ROW_AXIS, "all"), _rule(case) or case.axes.get(_COLUMN_AXIS, "all")


def _rule(case: Case) -> str:
    """How batches were made, where not by their number of items; empty otherwise."""
    return next((f"{name} {_label(case.axes[name])}" for name in _RULES if case.axes.get(name) is not None), "")


def batching(case: Case) -> str:
    """How batches were made: `batch 4`, `batch_seconds 10`; empty where nothing is batched."""
    return _rule(case) or (f"{_COLUMN_AXIS} {case.axes[_COLUMN_AXIS]}" if _COLUMN_AXIS in case.axes else "")


def _ordered(values: Any) -> list[Any]:
    """First appearance, numbers ascending."""
    unique = list(dict.fromkeys(values))
    return sorted(unique) if all(isinstance(value, int | float) for value in unique) else unique


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def varying_axes(cases: Sequence[Case]) -> list[str]:
    """Axes beside the grid's own that take more than one value in this run, and `WORKLOAD` if there are several.

    Those of one name are told apart by what they hold.
    """
    names = dict.fromkeys(name for case in cases for name in case.axes)
    settings = [{**LATE_DEFAULTS, **case.axes} for case in cases]
    found = [
        name
        for name in names
        if name not in (_ROW_AXIS, _COLUMN_AXIS, "device", *_RULES)
        and len({axes[name] for axes in settings if name in axes}) > 1
    ]
    fed = {(case.workload.name, _content(case)) for case in cases}
    if len({name for name, _ in fed}) < len(fed):
        return [*found, _CONTENT]
    return [*found, WORKLOAD] if len(fed) > 1 else found


def _content(case: Case) -> str:
    """A hash of the file or folder that was fed; empty where there is none."""
    options = case.workload.options
    return next((str(options[name])[:_DIGITS] for name in CONTENT_HASHES if name in options), "")


def _title(case: Case, varying: Sequence[str]) -> str:
    parts = [case.subject.name, case.axes.device]
    parts += [f"{name} {case.axes[name]}" for name in varying if case.axes.get(name) is not None]
    parts += [case.workload.name] if WORKLOAD in varying else []
    parts += [f"{case.workload.name} {_content(case)}".strip()] if _CONTENT in varying else []
    return " · ".join(part for part in parts if part)


def case_labels(records: Sequence[Record]) -> dict[str, str]:
    """A name for each case that tells it from every other of these records."""
    cases = {record.case.id: record.case for record in records}
    varying = varying_axes(list(cases.values()))
    names = {case_id: " · ".join([_title(case, varying), *_cell_place(case)]) for case_id, case in cases.items()}
    names = _told_apart(names, {case_id: batching(case) for case_id, case in cases.items()})
    return _told_apart(names, {case_id: case_id[:_DIGITS] for case_id in cases})


def _told_apart(names: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    """Names that stand more than once, with more behind them where it differs."""
    alike: dict[str, set[str]] = {}
    for key, name in names.items():
        alike.setdefault(name, set()).add(more[key])
    return {key: f"{name} · {more[key]}" if len(alike[name]) > 1 else name for key, name in names.items()}


def cell_label(case: Case, records: Sequence[Record]) -> str:
    """A case's cell without its model: what it shares with those it is measured beside."""
    cases = list({record.case.id: record.case for record in records}.values())
    name = case.subject.name
    return " · ".join([_title(case, varying_axes(cases)).removeprefix(name).removeprefix(" · "), *_cell_place(case)])


def _cell_place(case: Case) -> list[str]:
    row, column = _position(case)
    if row == "all":
        return [_rule(case)] if _rule(case) else []
    return [_place(row, column)]


def _place(row: Any, column: Any) -> str:
    """A cell of a grid in words: `5 s × 4`; without seconds, how batches were made."""
    if row != "all":
        return f"{_label(row)} s × {_label(column)}"
    return f"{_COLUMN_AXIS} {column}" if isinstance(column, int) else str(column)


def _caveats(group: Group, cells: dict[tuple[Any, Any, str], Cell]) -> tuple[str, ...]:
    estimates = (cell.estimate for cell in cells.values() if cell.estimate is not None)
    return (*rounds_caveat(estimates), *study_notes([record for records in group for record in records]))


def _notes(group: Group, cells: dict[tuple[Any, Any, str], Cell], metric: Metric) -> list[str]:
    first = group[0][0].case
    notes = [protocol_note(first, group)]
    notes += _real_time_note(cells)
    notes += _loaded_note(group) if metric == metrics.MEMORY_CPU_TOTAL else []
    reasons: dict[str, list[str]] = {}
    for (row, column, word), cell in cells.items():
        for one in cell.figures:
            if one.estimate is None and one.reason:
                reasons.setdefault(f"{one.word}: {one.reason}", []).append(f"{_place(row, column)} {word}".strip())
    notes += [f"{', '.join(places)}: {what}" for what, places in reasons.items()]
    notes += _failed_notes(group)
    notes += dict.fromkeys(note for records in group for record in records for note in _told(record, metric))
    if metric.id in RULES:
        notes += dict.fromkeys(note for records in group for note in score_notes(records))
    return notes + _warning_notes(group, metric)


def _failed_notes(group: Group) -> list[str]:
    """Cases that have a figure although some of their rounds failed, with the reason of the last."""
    found = []
    for records in group:
        failed = [record for record in records if record.status in FAILED]
        if failed and len(failed) < len(records):
            place = " ".join(_cell_place(records[0].case))
            found.append(f"{place}: {in_words(records)}: {failed[-1].reason}".lstrip(": "))
    return found


def _loaded_note(group: Group) -> list[str]:
    """What a process held before any call, beside its peak during one."""
    found = [made for records in group if (made := estimate(records, metrics.MEMORY_CPU_LOAD)) is not None]
    if not found:
        return []
    low, high = (number(pick(one.value for one in found), found[0].metric.unit) for pick in (min, max))
    size = low if low == high else f"{low} to {high}"
    return [f"after loading, before the first call: {size}. `--metric memory` shows the growth during a call."]


def _warning_notes(group: Group, metric: Metric) -> list[str]:
    """Warnings of records and of the samples' own behaviour, with the cells they are about."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for records in group:
        found = [text for record in records for text in record.warnings]
        found += case_warnings(records) if metric.unit == "s" or metric.id in _TIMED else []
        for text in dict.fromkeys(found):
            cell = " ".join(_cell_place(records[0].case))
            alike.setdefault(_NUMBER.sub("#", text), []).append((cell, text))
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
    rounds_text = counted(high, "round") if low == high else f"{low}–{high} rounds"
    threads = counted(axes.get("threads"), "thread")
    return (
        f"{rounds_text}; {text}; boundary {axes.get('boundary')}; {axes.get('dtype')}; {threads}; "
        f"{case.workload.plugin}: {case.workload.name}."
    )


def _real_time_note(cells: dict[tuple[Any, Any, str], Cell]) -> list[str]:
    verdicts = [cell.verdict for cell in cells.values() if cell.verdict]
    if not verdicts:
        return []
    counts = {word: verdicts.count(word) for word in dict.fromkeys(verdicts)}
    return ["; ".join(f"{word}: {count} of {len(verdicts)} cells" for word, count in counts.items()) + "."]


def _told(record: Record, metric: Metric) -> list[str]:
    """What the meter says about its figure; what model and input say is a caveat."""
    own = record.find(metric.id) if metric.id not in (metrics.ITEMS.id, metrics.LATENCY_LOAD.id) else None
    return [str(note) for note in own.notes.get("notes", ())] if own is not None else []


def summary(records: Sequence[Record]) -> str:
    """One line on how the cases ended: `15 ok, 1 oom`."""
    counts: dict[str, int] = {}
    for record in records:
        counts[record.status] = counts.get(record.status, 0) + 1
    return ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "no records"


def cell_names(cases: Sequence[Case]) -> list[str]:
    """A name for each of these cells without its model and device: `5 s × 4`, and what else varies among them."""
    varying = [name for name in varying_axes(cases) if name not in ("threads", "cores")]
    found = []
    for case in cases:
        parts = [f"{name} {case.axes[name]}" for name in varying if case.axes.get(name) is not None]
        parts += [case.workload.name] if WORKLOAD in varying or _CONTENT in varying else []
        found.append(" · ".join([*_cell_place(case), *parts]) or batching(case) or "all")
    return found
