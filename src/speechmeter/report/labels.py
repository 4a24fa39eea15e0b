"""What cases are called: by what they have in common, by their cell, and so that no two of a table are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.analysis.selecting import by_case
from speechmeter.core.axes import LATE_DEFAULTS
from speechmeter.core.types import CONTENT_HASHES, Case, Record

ROW_AXIS, COLUMN_AXIS = "seconds", "batch"
"""The axes of a grid."""
PACE = "pace"
"""The axis that tells live cases from others."""
TEXT_PACE = "text_pace"
"""The axis of texts that come at a pace; without a value they come at once."""
_RULES = ("batch_seconds", "max_frames")
"""Axes that replace `batch` where they are set."""
WORKLOAD, _CONTENT = "workload", "workload's content"
_DIGITS = 6
"""So many digits of a hash distinguish what has one name."""

Group = list[list[Record]]
"""The rounds of cases that differ in seconds and batch alone."""


def label(value: Any) -> str:
    """The value of an axis as text: `5` for 5.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def setting(name: str, value: Any) -> str:
    """An axis and its value in a name: `threads 2`, `20 tokens/s`."""
    return f"{value:g} tokens/s" if name == TEXT_PACE else f"{name} {value}"


def _rule(case: Case) -> str:
    """How batches were made, where not by their number of items; empty otherwise."""
    return next((f"{name} {label(case.axes[name])}" for name in _RULES if case.axes.get(name) is not None), "")


def batching(case: Case) -> str:
    """How batches were made: `batch 4`, `batch_seconds 10`; empty where nothing is batched."""
    return _rule(case) or (f"{COLUMN_AXIS} {case.axes[COLUMN_AXIS]}" if COLUMN_AXIS in case.axes else "")


def position(case: Case) -> tuple[Any, Any]:
    """The row and the column of a case in a grid."""
    return case.axes.get(ROW_AXIS, "all"), _rule(case) or case.axes.get(COLUMN_AXIS, "all")


def cell_words(row: Any, column: Any) -> str:
    """A cell of a grid in words: `5 s × 4`; without seconds, how batches were made."""
    if row != "all":
        return f"{label(row)} s × {label(column)}"
    return f"{COLUMN_AXIS} {column}" if isinstance(column, int) else str(column)


def cell_of_case(case: Case) -> list[str]:
    """The cell of a case in words, as the one part of a name; no part where it has none."""
    row, column = position(case)
    if row == "all":
        return [_rule(case)] if _rule(case) else []
    return [cell_words(row, column)]


def varying_axes(cases: Sequence[Case]) -> list[str]:
    """Axes beside the grid's own that take more than one value in this run, and `WORKLOAD` if there are several."""
    names = dict.fromkeys(name for case in cases for name in case.axes)
    settings = [{**LATE_DEFAULTS, **case.axes.to_json()} for case in cases]
    found = [
        name
        for name in names
        if name not in (ROW_AXIS, COLUMN_AXIS, "device", *_RULES)
        and len({axes[name] for axes in settings if name in axes}) > 1
    ]
    if any(case.live is not None for case in cases) and any(case.live is None for case in cases) and PACE not in found:
        found.append(PACE)  # the others were fed whole
    fed = {(case.workload.name, _content(case)) for case in cases}
    if len({name for name, _ in fed}) < len(fed):
        return [*found, _CONTENT]  # one name for several contents: a hash distinguishes them
    return [*found, WORKLOAD] if len(fed) > 1 else found


def _content(case: Case) -> str:
    """A hash of the file or folder that was fed; empty where there is none."""
    options = case.workload.options
    return next((str(options[name])[:_DIGITS] for name in CONTENT_HASHES if name in options), "")


def _title(case: Case, varying: Sequence[str]) -> str:
    parts = [case.subject.name, case.axes.device]
    parts += [setting(name, case.axes[name]) for name in varying if case.axes.get(name) is not None]
    parts += [case.workload.name] if WORKLOAD in varying else []
    parts += [f"{case.workload.name} {_content(case)}".strip()] if _CONTENT in varying else []
    return " · ".join(part for part in parts if part)


def grid_groups(records: Sequence[Record]) -> dict[str, Group]:
    """Cases that differ in seconds and batch alone, by what they have in common."""
    cases = list(by_case(records).values())
    varying = varying_axes([group[0].case for group in cases])
    groups: dict[str, Group] = {}
    for group in cases:
        groups.setdefault(_title(group[0].case, varying), []).append(group)
    return groups


def case_labels(records: Sequence[Record]) -> dict[str, str]:
    """A name for each case, by its id, that no other of these records has."""
    cases = {record.case.id: record.case for record in records}
    varying = varying_axes(list(cases.values()))
    names = {case_id: " · ".join([_title(case, varying), *cell_of_case(case)]) for case_id, case in cases.items()}
    names = _made_unique(names, {case_id: batching(case) for case_id, case in cases.items()})
    return _made_unique(names, {case_id: case_id[:_DIGITS] for case_id in cases})


def _made_unique(names: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    """Names that several cases have, with more behind them where it differs."""
    alike: dict[str, set[str]] = {}
    for key, name in names.items():
        alike.setdefault(name, set()).add(more[key])
    return {key: f"{name} · {more[key]}" if len(alike[name]) > 1 else name for key, name in names.items()}


def labelled(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """Each case as its name and its rounds, in the order of the records."""
    labels = case_labels(records)
    return [(labels[case_id], group) for case_id, group in by_case(records).items()]


def cell_label(case: Case, records: Sequence[Record]) -> str:
    """The cell of a case without its model: what it shares with the models that were measured beside it."""
    cases = list({record.case.id: record.case for record in records}.values())
    name = case.subject.name
    return " · ".join([_title(case, varying_axes(cases)).removeprefix(name).removeprefix(" · "), *cell_of_case(case)])


def cell_names(cases: Sequence[Case]) -> list[str]:
    """A name for each of these cells without its model and device: `5 s × 4`, and what else varies among them."""
    varying = [name for name in varying_axes(cases) if name not in ("threads", "cores")]
    found = []
    for case in cases:
        parts = [setting(name, case.axes[name]) for name in varying if case.axes.get(name) is not None]
        parts += [case.workload.name] if WORKLOAD in varying or _CONTENT in varying else []
        found.append(" · ".join([*cell_of_case(case), *parts]) or batching(case) or "all")
    return found
