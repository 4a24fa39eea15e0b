"""What changed between two traces, as a table; and where the traces of a run lie."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.traces import LEAST_SHARE, Change, TraceDiff
from speechmeter.core import metrics
from speechmeter.core.types import Record
from speechmeter.report.grids import case_labels
from speechmeter.report.lists import list_table
from speechmeter.report.numbers import counted, number
from speechmeter.report.tables import Cell, Row, Table, by_case, cell_of

_MOST_PLACES = 3
CHANGED = {
    "any": "changed in number or time",
    "only": "is on one side alone",
    "count": "changed in number",
    "time": "changed in time alone",
}
"""Which changes can be asked for, in words."""
_KEPT = {"only": ("only in A", "only in B"), "count": ("only in A", "only in B", "calls"), "time": ("time",)}


def diff_table(diff: TraceDiff, *, most: int, min_effect: str, changed: str = "any") -> Table:
    """One row an operator, kernel, label or module that changed, at most so many; `changed` is a word of CHANGED."""
    changes = [change for change in diff.changes if changed == "any" or change.what in _KEPT[changed]]
    left_out = len(changes) - most
    steps = " and ".join(counted(count, "step") for count in diff.steps)
    notes = [
        f"per step, of {steps}; a step took {_seconds(diff.step_s[0])} in A and {_seconds(diff.step_s[1])} in B.",
        "own time: without what is inside; a trace is one sample and recording costs time: for a verdict, "
        "`speechmeter compare`.",
    ]
    if changed in ("any", "time"):
        notes.append(
            f"operators and kernels whose time alone changed are listed from {min_effect} and {LEAST_SHARE:.1%} of a "
            "step on."
        )
    return Table(
        title=f"B against A: what {CHANGED[changed]}",
        metric=None,
        labels=("name", "kind", "change", "where"),
        columns=("calls A", "calls B", "own time A", "own time B", "B − A"),
        rows=tuple(_row(change) for change in changes[:most]),
        notes=(*notes, *([f"{left_out} more changed; see them with --most."] if left_out > 0 else ())),
    )


def _row(change: Change) -> Row:
    more = f"{'+' if change.more_s >= 0 else '−'}{_seconds(abs(change.more_s))}"
    words = [*map(_calls, change.calls), *map(_seconds, change.own_s), more]
    labels = (change.name, change.kind, change.what, _places(change))
    return Row(labels=labels, cells=tuple(Cell(word=word) for word in words))


def _places(change: Change) -> str:
    """The modules with more or fewer calls: `encoder.3 +1`."""
    said = [f"{path} {'+' if more > 0 else '−'}{_calls(abs(more))}" for path, more in change.where[:_MOST_PLACES]]
    return ", ".join(said) + (", …" if len(change.where) > _MOST_PLACES else "")


def _calls(count: float) -> str:
    return f"{count:g}"


def _seconds(value_s: float) -> str:
    return number(value_s, "s")


def traces(records: Sequence[Record]) -> list[Table]:
    """One row a case: the trace's file in the run directory, its size, and what was left out of it."""
    labels, rows, notes = case_labels(records), [], []
    for case_id, group in by_case(records).items():
        found = next((m for record in group if (m := record.find(metrics.TRACE_BYTES.id)) is not None), None)
        if found is None:
            continue
        rows.append(Row(labels=(labels[case_id], found.notes.get("file", "–")), cells=(_size(group),)))
        if found.notes.get("left_out"):
            shortest_s = found.notes.get("shorter_than_us", 0) / 1e6
            notes.append(
                f"{labels[case_id]}: {found.notes['left_out']:,} events up to {_seconds(shortest_s)} left out."
            )
    if rows:
        notes.append("open with ui.perfetto.dev, chrome://tracing or `tensorboard --logdir`; stacks.txt is beside it.")
    return [list_table("traces", ("case", "file"), (metrics.TRACE_BYTES,), tuple(rows), notes)]


def _size(group: Sequence[Record]) -> Cell:
    return cell_of(group, metrics.TRACE_BYTES)
