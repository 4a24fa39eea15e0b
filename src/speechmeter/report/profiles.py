"""Tables of profiled steps: time by kind of work, memory at the peak, traces and what changed between two of them."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.traces import LEAST_SHARE, Change, TraceDiff
from speechmeter.core import metrics
from speechmeter.core.scope import MODULE, SPLIT, Scope
from speechmeter.core.types import Record
from speechmeter.report.caveats import recorded_notes
from speechmeter.report.labels import labelled
from speechmeter.report.numbers import counted, number
from speechmeter.report.tables import Cell, Row, Table, cell_of, list_table, measured

_KINDS = {"kernel": "kernel", "memcpy": "copies", "runtime": "runtime", "cpu": "CPU", "idle": "idle"}
_KINDS_ON_CPU = {"cpu": "CPU", "idle": "idle"}
_RATIOS = (metrics.GPU_IDLE, metrics.LAUNCH_BOUND)
_MOST_HOLDERS = 15
_MOST_PLACES = 3
CHANGED = {
    "any": "changed in number or time",
    "only": "runs in A only or in B only",
    "count": "changed in number",
    "time": "changed only in time",
}
"""Which changes can be asked for, in words."""
_KEPT = {"only": ("only in A", "only in B"), "count": ("only in A", "only in B", "calls"), "time": ("time",)}


def split(records: Sequence[Record]) -> list[Table]:
    """One row a case: an average call by kind of work, how long the GPU was idle, and latency over its busy time."""
    on_gpu = any(record.case.device.is_cuda for record in records)
    kinds, ratios = (_KINDS, _RATIOS) if on_gpu else (_KINDS_ON_CPU, ())
    rows = [
        Row(
            labels=(label,),
            cells=(
                *(cell_of(group, metrics.TIME_SPLIT, Scope.of(SPLIT, kind)) for kind in kinds),
                *(cell_of(group, metric) for metric in ratios),
            ),
        )
        for label, group in labelled(records)
        if measured(group, metrics.TIME_SPLIT)
    ]
    columns = (*kinds.values(), *(metric.title for metric in ratios))
    notes = recorded_notes(records, metrics.TIME_SPLIT)
    shown = (metrics.TIME_SPLIT, *ratios)
    return [list_table("time by kind", ("case",), shown, rows, notes, columns=columns)] if rows else []


def timeline(records: Sequence[Record]) -> list[Table]:
    """The peak of memory of each case, then the modules that held most of it."""
    rows, notes = [], []
    for label, group in labelled(records):
        rows.append(Row(labels=(label, "peak"), cells=(cell_of(group, metrics.MEMORY_TENSORS_PEAK),)))
        held = (m.scope for record in group for m in record.measurements if m.metric == metrics.MEMORY_AT_PEAK.id)
        scopes = list(dict.fromkeys(held))  # the meter writes the largest first
        for scope in scopes[:_MOST_HOLDERS]:
            name = Scope.parse(scope).without(MODULE)
            rows.append(Row(labels=(label, name), cells=(cell_of(group, metrics.MEMORY_AT_PEAK, scope),)))
        if len(scopes) > _MOST_HOLDERS:
            notes.append(f"{label}: {len(scopes) - _MOST_HOLDERS} modules that held less memory are not listed.")
        peak = next((m for record in group if (m := record.find(metrics.MEMORY_TENSORS_PEAK.id)) is not None), None)
        if peak is not None and peak.notes.get("operators"):
            largest = [f"{number(size, 'bytes')} by {name} in {path}" for name, path, size in peak.notes["operators"]]
            notes.append(f"{label}: largest allocations: {', '.join(largest)}.")
    shown = (metrics.MEMORY_TENSORS_PEAK, metrics.MEMORY_AT_PEAK)
    return [list_table("memory at the peak", ("case", "module"), shown, rows, notes, columns=("bytes",))]


def traces(records: Sequence[Record]) -> list[Table]:
    """One row a case: the trace's file in the run directory, its size, and what was left out of it."""
    rows, notes = [], []
    for label, group in labelled(records):
        found = next((m for record in group if (m := record.find(metrics.TRACE_BYTES.id)) is not None), None)
        if found is None:
            continue
        rows.append(Row(labels=(label, found.notes.get("file", "–")), cells=(cell_of(group, metrics.TRACE_BYTES),)))
        if found.notes.get("left_out"):
            shortest_s = found.notes.get("shorter_than_us", 0) / 1e6
            notes.append(f"{label}: {found.notes['left_out']:,} events up to {number(shortest_s, 's')} were left out.")
    if rows:
        notes.append(
            "open it with ui.perfetto.dev, chrome://tracing or `tensorboard --logdir`; stacks.txt is in "
            "the same folder."
        )
    return [list_table("traces", ("case", "file"), (metrics.TRACE_BYTES,), rows, notes)]


def diff_table(diff: TraceDiff, *, most: int, min_effect: str, changed: str = "any") -> Table:
    """One row an operator, kernel, label or module that changed, at most so many; `changed` is a word of CHANGED."""
    changes = [change for change in diff.changes if changed == "any" or change.what in _KEPT[changed]]
    steps_a, steps_b = (counted(count, "step") for count in diff.steps)
    step_a, step_b = (number(seconds, "s") for seconds in diff.step_s)
    notes = [
        f"values are for one step: means over {steps_a} of A and {steps_b} of B. "
        f"A step took {step_a} in A and {step_b} in B.",
        "own time: time of an operator without the operators that it calls. A trace is a single sample and recording "
        "slows the step down, so use "
        "`speechmeter compare` to decide whether the speed changed.",
    ]
    if changed in ("any", "time"):
        notes.append(
            f"an operator or kernel with the same number of calls is listed if its time changed by {min_effect} or "
            f"more, and by {LEAST_SHARE:.1%} of a step or more."
        )
    if len(changes) > most:
        notes.append(f"{len(changes) - most} more changed; list more of them with `--most`.")
    return Table(
        title=f"B against A: what {CHANGED[changed]}",
        metric=None,
        labels=("name", "kind", "change", "where"),
        columns=("calls A", "calls B", "own time A", "own time B", "B − A"),
        rows=tuple(_change_row(change) for change in changes[:most]),
        notes=tuple(notes),
    )


def _change_row(change: Change) -> Row:
    """Calls and times on both sides, and the modules with more or fewer calls: `encoder.3 +1`."""
    where = [f"{path} {'+' if more > 0 else '−'}{abs(more):g}" for path, more in change.where[:_MOST_PLACES]]
    where += ["…"] if len(change.where) > _MOST_PLACES else []
    more = f"{'+' if change.more_s >= 0 else '−'}{number(abs(change.more_s), 's')}"
    words = [*(f"{count:g}" for count in change.calls), *(number(seconds, "s") for seconds in change.own_s), more]
    labels = (change.name, change.kind, change.what, ", ".join(where))
    return Row(labels=labels, cells=tuple(Cell(word=word) for word in words))
