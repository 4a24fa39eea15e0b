"""Tables of arithmetic: FLOPs by case, module and operator, what was not counted, and how well the device was used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from speechmeter.analysis.readings import recomputed_share
from speechmeter.core import metrics
from speechmeter.core.scope import MODULE, OPERATOR, OPERATOR_KIND, STAGE, Scope
from speechmeter.core.types import Measurement, Record
from speechmeter.report.grids import case_labels
from speechmeter.report.lists import list_table, measured
from speechmeter.report.modules import check_filter
from speechmeter.report.recorded import recorded_notes
from speechmeter.report.tables import Row, Table, by_case, cell_of

_MOST_OPERATORS = 20
_LEAST_SHARE = 0.0001
_KINDS = {
    "matrix": "matrix arithmetic, in flops",
    "elements": "arithmetic by the element, in element_ops",
    "moves": "moving data, no arithmetic",
    "wraps": "only calls other operators",
    "unknown": "unsupported operator, not counted",
}


def flops(records: Sequence[Record]) -> list[Table]:
    """One row a case: totals, and per second of audio and token where there are any."""
    shown = [metrics.FLOPS, metrics.FLOPS_PER_AUDIO_SECOND]
    shown += [m for m in (metrics.FLOPS_BACKWARD, metrics.ELEMENT_OPS, metrics.BYTES_MOVED) if measured(records, m)]
    if measured(records, metrics.TOKENS):
        shown.insert(2, metrics.FLOPS_PER_TOKEN)
    labels = case_labels(records)
    rows = tuple(
        Row(labels=(labels[case_id],), cells=tuple(cell_of(group, metric) for metric in shown))
        for case_id, group in by_case(records).items()
    )
    return [list_table("FLOPs", ("case",), shown, rows, notes=_counted_notes(records, labels))]


def modules(records: Sequence[Record], wanted: str | None = None) -> list[Table]:
    """One row a case and module: its FLOPs, those of the modules inside it included, and its parameters.

    `wanted` is a pattern for the modules. Raises InputError where none fits it.
    """
    labels = case_labels(records)
    shown = (metrics.FLOPS, metrics.PARAMETERS)
    scopes = {case_id: _scopes(group, MODULE, *shown) for case_id, group in by_case(records).items()}
    if wanted is not None:
        check_filter(wanted, [(scope.path,) for own in scopes.values() for scope in own])
    rows = []
    for case_id, group in by_case(records).items():
        for scope in scopes[case_id]:
            if wanted is not None and not fnmatchcase(scope.path, wanted):
                continue
            cells = tuple(cell_of(group, metric, scope) for metric in shown)
            rows.append(Row(labels=(labels[case_id], scope.path), cells=cells))
    return [list_table("modules", ("case", "module"), shown, tuple(rows), notes=())]


def operators(records: Sequence[Record]) -> list[Table]:
    """One row a case and operator, the costliest first: FLOPs, and time where a profiled pass was made."""
    labels = case_labels(records)
    shown = (metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE, metrics.FLOPS, metrics.ELEMENT_OPS)
    rows = []
    for case_id, group in by_case(records).items():
        for scope, kind in _costliest(group):
            cells = tuple(cell_of(group, metric, scope) for metric in shown)
            rows.append(Row(labels=(labels[case_id], scope.path, kind), cells=cells))
    notes = (*(f"{kind}: {meaning}." for kind, meaning in _KINDS.items()), *recorded_notes(records, shown[0]))
    return [list_table("operators", ("case", "operator", "kind"), shown, tuple(rows), notes=notes)]


def coverage(records: Sequence[Record]) -> list[Table]:
    """One row a case: the share of operator time in each kind, as the profiled pass saw it; unknown ones by name."""
    labels = case_labels(records)
    rows, lines = [], []
    for case_id, group in by_case(records).items():
        shares = tuple(cell_of(group, metrics.OPERATOR_SHARE, Scope.of(OPERATOR_KIND, kind)) for kind in _KINDS)
        rows.append(Row(labels=(labels[case_id],), cells=(cell_of(group, metrics.TIME_OPERATOR), *shares)))
        unknown = [f"{name} {share:.2%}" for name, share in _unknown_shares(group)]
        lines += [f"{labels[case_id]}: unknown are {', '.join(unknown)}."] if unknown else []
    return [
        list_table(
            "time in operators, by kind",
            ("case",),
            (metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE),
            tuple(rows),
            notes=(
                *lines,
                *(f"{kind}: {meaning}." for kind, meaning in _KINDS.items()),
                *recorded_notes(records, metrics.TIME_OPERATOR),
            ),
            columns=("time in all", *_KINDS),
        )
    ]


def utilisation(records: Sequence[Record]) -> list[Table]:
    """One row a case and stage: the share of the device's measured peaks that it reached."""
    shown = [metrics.MFU, metrics.BANDWIDTH, metrics.BANDWIDTH_SHARE, metrics.PEAK_FLOPS, metrics.PEAK_BANDWIDTH]
    shown += [m for m in (metrics.TIME_GPU,) if measured(records, m)]
    if measured(records, metrics.TIME_GPU):
        shown.append(metrics.LAUNCH_BOUND)
    labels = case_labels(records)
    rows = []
    for case_id, group in by_case(records).items():
        rows.append(Row(labels=(labels[case_id], "total"), cells=tuple(cell_of(group, metric) for metric in shown)))
        for scope in _scopes(group, STAGE, metrics.FLOPS):
            cells = tuple(cell_of(group, metric, scope) for metric in shown[:3])
            if any(cell.estimate is not None and cell.estimate.value for cell in cells):
                rest = tuple(cell_of(group, metric, "nowhere") for metric in shown[3:])
                rows.append(Row(labels=(labels[case_id], scope.path), cells=(*cells, *rest)))
    return [list_table("utilisation", ("case", "stage"), shown, tuple(rows), notes=())]


def _scopes(group: Sequence[Record], kind: str, *wanted: metrics.Metric) -> list[Scope]:
    """The parts of a case that have a figure, in the order in which the first of the wanted metrics names them."""
    rows = ((m, Scope.parse(m.scope)) for record in group for m in record.measurements if m.values)
    own = [(m, scope) for m, scope in rows if scope.kind == kind]
    return list(dict.fromkeys(scope for metric in wanted for m, scope in own if m.metric == metric.id))


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
    ordered = sorted(found.items(), key=lambda item: item[1][:2], reverse=True)
    top = ordered[:_MOST_OPERATORS] + [item for item in ordered[_MOST_OPERATORS:] if item[1][2] == "unknown"]
    return [(Scope.parse(scope), kind) for scope, (_, _, kind) in top]


def _operator_rows(group: Sequence[Record]) -> Iterator[Measurement]:
    """Of every round: one may have an operator that another has not."""
    ids = {metrics.TIME_OPERATOR.id, metrics.FLOPS.id, metrics.ELEMENT_OPS.id}
    for record in group:
        yield from (m for m in record.measurements if m.metric in ids and _is_operator(Scope.parse(m.scope)))


def _is_operator(scope: Scope) -> bool:
    """Over all modules: those in one module are parts of it."""
    return scope.kind == OPERATOR and not scope.is_in_module


def _unknown_shares(group: Sequence[Record]) -> list[tuple[str, float]]:
    """Operators that nobody here knows, with their share of the time, where it is worth a word."""
    rows = (m for m in _operator_rows(group) if m.metric == metrics.TIME_OPERATOR.id and _is_unknown(m))
    scopes = dict.fromkeys(Scope.parse(m.scope) for m in rows)
    found = [(one.path, cell_of(group, metrics.OPERATOR_SHARE, one).estimate) for one in scopes]
    return [(name, e.value) for name, e in found if e is not None and e.value >= _LEAST_SHARE]


def _is_unknown(measurement: Measurement) -> bool:
    return measurement.notes.get("kind") == "unknown"


def _counted_notes(records: Sequence[Record], labels: dict[str, str]) -> tuple[str, ...]:
    """How each count was taken and what it does not hold, cases that say the same together."""
    said: dict[str, list[str]] = {}
    for record in records:
        found = record.find(metrics.FLOPS.id)
        if found is None or not found.values:
            continue
        because = f" because {found.notes['because']}" if "because" in found.notes else ""
        checked = f" ({found.notes['checked']})" if "checked" in found.notes else ""
        texts = [f"counted on {found.notes.get('counted on', 'a real run')}{checked}{because}"]
        if found.notes.get("no arithmetic by torch in"):
            texts.append(f"no arithmetic by torch in: {', '.join(found.notes['no arithmetic by torch in'])}")
        unknown = found.notes.get("unknown", {})
        texts.append(f"not counted: {', '.join(unknown)}" if unknown else "every torch operator that ran is known")
        texts += [found.notes["another input"]] if "another input" in found.notes else []
        backward = record.find(metrics.FLOPS_BACKWARD.id)
        if backward is not None and backward.notes.get("attention"):
            texts.append(f"attention backward: {', '.join(backward.notes['attention'])}")
        again = recomputed_share(record)
        if again is not None:
            texts.append(f"{again:.0%} of the backward pass repeats forward work")
        said.setdefault("; ".join(texts), []).append(labels[record.case.id])
    return tuple(
        f"{text}." if len(said) == 1 else f"{', '.join(dict.fromkeys(cases))}: {text}." for text, cases in said.items()
    )
