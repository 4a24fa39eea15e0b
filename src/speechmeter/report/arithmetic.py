"""Tables of arithmetic: FLOPs by case, the costliest operators, what was not counted, and how busy the device was."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.readings import costliest_operators, recomputed_share
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import OPERATOR, OPERATOR_KIND, STAGE, Scope
from speechmeter.core.types import Measurement, Record
from speechmeter.report.caveats import recorded_notes
from speechmeter.report.labels import labelled
from speechmeter.report.numbers import counted
from speechmeter.report.tables import Cell, Row, Table, case_table, cell_of, list_table, measured

MOST_OPERATORS = 20
"""So many operators of each case are listed, unless a limit is given."""
_LEAST_SHARE = 0.0001
"""An unknown operator with a smaller share of the time is not named."""
_KINDS = {
    "matrix": "matrix products and convolutions, counted in flops",
    "elements": "element-wise arithmetic, counted in element_ops",
    "moves": "operators that move data and compute nothing",
    "wraps": "operators that only call other operators",
    "unknown": "unsupported operators, not counted",
}
_KIND_NOTES = [f"{kind}: {meaning}." for kind, meaning in _KINDS.items()]
NAME = "name"
SORT_KEYS: dict[str, Metric] = {
    "own-time": metrics.TIME_OPERATOR,
    "total-time": metrics.TIME_OPERATOR_TOTAL,
    "calls": metrics.OPERATOR_CALLS,
    "own-memory": metrics.MEMORY_OPERATOR_OWN,
    "memory": metrics.MEMORY_OPERATOR,
    "flops": metrics.FLOPS,
}
"""Figures that operators may be sorted by, beside their name."""
_SORTED = (
    metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE, metrics.TIME_OPERATOR_TOTAL, metrics.OPERATOR_CALLS,
    metrics.MEMORY_OPERATOR_OWN, metrics.MEMORY_OPERATOR, metrics.FLOPS,
)  # fmt: skip


def flops(records: Sequence[Record]) -> list[Table]:
    """One row a case: totals, and per second of audio and token where there are any."""
    shown = [metrics.FLOPS, metrics.FLOPS_PER_AUDIO_SECOND]
    shown += [metrics.FLOPS_PER_TOKEN] if measured(records, metrics.TOKENS) else []
    shown += [m for m in (metrics.FLOPS_BACKWARD, metrics.ELEMENT_OPS, metrics.BYTES_MOVED) if measured(records, m)]
    return [case_table("FLOPs", records, shown, _counted_notes(records))]


def _counted_notes(records: Sequence[Record]) -> list[str]:
    """How each count was taken and what it does not hold; cases with the same answer share a line."""
    cases: dict[str, dict[str, None]] = {}
    for label, group in labelled(records):
        for record in group:
            found = record.find(metrics.FLOPS.id)
            if found is not None and found.values:
                text = "; ".join(_how_counted(found, record.find(metrics.FLOPS_BACKWARD.id)))
                cases.setdefault(text, {})[label] = None
    return [f"{text}." if len(cases) == 1 else f"{', '.join(labels)}: {text}." for text, labels in cases.items()]


def _how_counted(found: Measurement, backward: Measurement | None) -> list[str]:
    notes = found.notes
    because = f" because {notes['because']}" if "because" in notes else ""
    checked = f" ({notes['checked']})" if "checked" in notes else ""
    texts = [f"counted on {notes.get('counted on', 'a real run')}{checked}{because}"]
    if notes.get("no arithmetic by torch in"):
        texts.append(f"torch computed nothing in: {', '.join(notes['no arithmetic by torch in'])}")
    unknown = notes.get("unknown", {})
    texts.append(f"not counted: {', '.join(unknown)}" if unknown else "every torch operator that ran is supported")
    texts += [notes["another input"]] if "another input" in notes else []
    if backward is not None and backward.notes.get("attention"):
        texts.append(f"operators of the backward pass of attention: {', '.join(backward.notes['attention'])}")
    again = recomputed_share(backward)
    if again is not None:
        texts.append(f"{again:.0%} of the backward pass is recomputation of the forward pass")
    return texts


def operators(records: Sequence[Record], sort: str | None = None, limit: int | None = None) -> list[Table]:
    """One row a case and operator, the costliest first: FLOPs, and time where a profiled pass was made.

    With a key or a limit all figures of each operator, sorted by it. Raises InputError for a key that is not known or
    that no record has a figure for, and for a limit below 1.
    """
    if sort is not None or limit is not None:
        return _sorted_operators(records, sort, limit)
    shown = (metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE, metrics.FLOPS, metrics.ELEMENT_OPS)
    rows = []
    for label, group in labelled(records):
        for scope, kind in _costliest(group):
            cells = tuple(cell_of(group, metric, scope) for metric in shown)
            rows.append(Row(labels=(label, scope.path, kind), cells=cells))
    notes = [*_KIND_NOTES, *recorded_notes(records, shown[0])]
    return [list_table("operators", ("case", "operator", "kind"), shown, rows, notes)]


def _costliest(group: Sequence[Record]) -> list[tuple[Scope, str]]:
    """(scope, kind) of the operators that matter most: by time when it was profiled, else by arithmetic."""
    found: dict[str, tuple[float, float, str]] = {}
    for m in _operator_rows(group):
        time, work, kind = found.get(m.scope, (0.0, 0.0, ""))
        timed = m.metric == metrics.TIME_OPERATOR.id
        found[m.scope] = (
            time + (sum(m.values) / max(1, len(m.values)) if timed else 0.0),
            work + (0.0 if timed else sum(m.values)),
            kind or str(m.notes.get("kind", "")),
        )
    ranked = sorted(found.items(), key=lambda item: item[1][:2], reverse=True)
    top = ranked[:MOST_OPERATORS] + [item for item in ranked[MOST_OPERATORS:] if item[1][2] == "unknown"]
    return [(Scope.parse(scope), kind) for scope, (_, _, kind) in top]


def _operator_rows(group: Sequence[Record]) -> list[Measurement]:
    """Readings of whole operators, of every round: one may have an operator that another has not."""
    ids = {metrics.TIME_OPERATOR.id, metrics.FLOPS.id, metrics.ELEMENT_OPS.id}
    found = [m for record in group for m in record.measurements if m.metric in ids]
    scopes = [Scope.parse(m.scope) for m in found]
    # an operator in one module is part of the operator over all modules
    return [m for m, s in zip(found, scopes, strict=True) if s.kind == OPERATOR and not s.is_in_module]


def _sorted_operators(records: Sequence[Record], sort: str | None, limit: int | None) -> list[Table]:
    if sort is not None and sort not in (*SORT_KEYS, NAME):
        known = ", ".join((*SORT_KEYS, NAME))
        raise InputError(f"operators cannot be sorted by {sort!r}", key="sort", fix=f"choose from: {known}")
    if limit is not None and limit < 1:
        raise InputError(f"a table cannot have {limit} rows", key="limit", fix="give a number of at least 1")
    cells = {label: _operator_cells(group) for label, group in labelled(records)}
    held = {metric for own in cells.values() for row in own.values() for metric, cell in row.items() if cell.estimate}
    by = _sort_key(sort, held)
    shown = [metric for metric in _SORTED if metric in held] or list(_SORTED[:1])

    def rank(scope: Scope, figures: dict[Metric, Cell]) -> tuple[float, str]:
        found = None if by == NAME else figures[SORT_KEYS[by]].estimate
        return (-found.value if found is not None else 0.0), scope

    rows = []
    notes = [
        "the time and memory of an inner operator also count for the operator that calls it: only `time in operator` "
        "and its share add up.",
        *recorded_notes(records, metrics.TIME_OPERATOR),
    ]
    for label, own in cells.items():
        ranked = sorted(own.items(), key=lambda item: rank(*item))
        listed = ranked[: limit or MOST_OPERATORS]
        rows += [Row(labels=(label, scope.path), cells=tuple(one[m] for m in shown)) for scope, one in listed]
        if left := len(ranked) - len(listed):
            notes.append(f"not listed: {counted(left, 'operator')} of {label}; --limit {len(ranked)} lists all.")
    return [list_table(f"operators by {by}", ("case", "operator"), shown, rows, notes)]


def _operator_cells(group: Sequence[Record]) -> dict[Scope, dict[Metric, Cell]]:
    """Every figure of every operator, by its scope."""
    scopes = dict.fromkeys(Scope.parse(m.scope) for record in group for m in record.measurements if m.values)
    names = [scope for scope in scopes if scope.kind == OPERATOR and not scope.is_in_module]
    return {scope: {metric: cell_of(group, metric, scope) for metric in _SORTED} for scope in names}


def _sort_key(sort: str | None, held: set[Metric]) -> str:
    """The key that is asked for; else own time, FLOPs where no time was measured, or the name."""
    known = [word for word, metric in SORT_KEYS.items() if metric in held]
    if sort is None or not held:
        return next(iter(known), NAME)
    if sort != NAME and sort not in known:
        raise InputError(
            f"this run has no {sort} of operators",
            key="sort",
            fix=f"choose from: {', '.join((*known, NAME))}; or measure again with the meters operators and flops",
        )
    return sort


def operators_by_module(records: Sequence[Record]) -> list[Table]:
    """One row a case, module and operator, the costliest first; forward and backward together."""
    shown = (metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE)
    rows = []
    for label, group in labelled(records):
        for scope in costliest_operators(group, MOST_OPERATORS):
            operator, module = scope.operator_and_module()
            cells = tuple(cell_of(group, metric, scope) for metric in shown)
            rows.append(Row(labels=(label, module, operator.path), cells=cells))
    notes = ["an operator of the backward pass is listed with the module whose forward pass caused it."]
    return [list_table("operators by module", ("case", "module", "operator"), shown, rows, notes)]


def coverage(records: Sequence[Record]) -> list[Table]:
    """One row a case: the share of operator time in each kind, as the profiled pass saw it; unknown ones by name."""
    rows, notes = [], []
    for label, group in labelled(records):
        shares = (cell_of(group, metrics.OPERATOR_SHARE, Scope.of(OPERATOR_KIND, kind)) for kind in _KINDS)
        rows.append(Row(labels=(label,), cells=(cell_of(group, metrics.TIME_OPERATOR), *shares)))
        timed = (m for m in _operator_rows(group) if m.metric == metrics.TIME_OPERATOR.id)
        unknown = dict.fromkeys(Scope.parse(m.scope) for m in timed if m.notes.get("kind") == "unknown")
        found = [(one.path, cell_of(group, metrics.OPERATOR_SHARE, one).estimate) for one in unknown]
        named = [f"{name} {share.value:.2%}" for name, share in found if share and share.value >= _LEAST_SHARE]
        notes += [f"{label}: unsupported operators: {', '.join(named)}."] if named else []
    notes += [*_KIND_NOTES, *recorded_notes(records, metrics.TIME_OPERATOR)]
    shown, columns = (metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE), ("time in all", *_KINDS)
    return [list_table("time in operators, by kind", ("case",), shown, rows, notes, columns=columns)]


def utilisation(records: Sequence[Record]) -> list[Table]:
    """One row a case and stage: the share of the device's measured peaks that it reached."""
    shown = [metrics.MFU, metrics.BANDWIDTH, metrics.BANDWIDTH_SHARE, metrics.PEAK_FLOPS, metrics.PEAK_BANDWIDTH]
    shown += [metrics.TIME_GPU, metrics.LAUNCH_BOUND] if measured(records, metrics.TIME_GPU) else []
    rows = []
    for label, group in labelled(records):
        rows.append(Row(labels=(label, "total"), cells=tuple(cell_of(group, metric) for metric in shown)))
        for scope in scopes_with(group, STAGE, metrics.FLOPS):
            cells = [cell_of(group, metric, scope) for metric in shown[:3]]
            if any(cell.estimate is not None and cell.estimate.value for cell in cells):
                # the other figures are of the whole call alone
                cells += [cell_of(group, metric, "nowhere") for metric in shown[3:]]
                rows.append(Row(labels=(label, scope.path), cells=tuple(cells)))
    return [list_table("utilisation", ("case", "stage"), shown, rows)]


def scopes_with(group: Sequence[Record], kind: str, *wanted: Metric) -> list[Scope]:
    """The parts of a case that have a figure, in the order in which the first of the wanted metrics names them."""
    readings = ((m, Scope.parse(m.scope)) for record in group for m in record.measurements if m.values)
    own = [(m, scope) for m, scope in readings if scope.kind == kind]
    return list(dict.fromkeys(scope for metric in wanted for m, scope in own if m.metric == metric.id))
