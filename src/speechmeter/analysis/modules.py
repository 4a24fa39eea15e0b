"""Times of modules put together: rolled up, folded over repeated layers, by class, by the rows that a plan names.

A record holds the own time of every module. Scopes that are made from it, `*` standing for one part of a path:
`within:encoder.layers.*` all modules that fit and what is inside them, `own:…` only those that fit, `class:Linear`,
`row:attention` as the subject's option `rows` says, `all rows` of those, `outside:stage:loss` what of a stage or label
is in no row, `outside:modules` the same of all modules, `everything`. `within:label:x` is a label with all modules and
labels inside it, `own:label:x` what neither has. `@forward`, `@backward` and `@recompute` at the end of any scope take
one direction of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import (
    ALL_ROWS,
    CLASS,
    DIRECTIONS,
    EVERYTHING,
    LABEL,
    MODULE,
    OTHER_MODULES,
    OUTSIDE,
    OWN,
    ROW,
    STAGE,
    TOTAL,
    UNATTRIBUTED,
    WITHIN,
    Scope,
)
from speechmeter.core.types import Measurement, Record

LABELS = "labels"
"""The note that says which labels hold the time of a row; earlier records have none."""
_INCLUSIVE: dict[str, Callable[[Sequence[float]], float]] = {
    metrics.FLOPS.id: sum,
    metrics.FLOPS_BACKWARD.id: sum,
    metrics.PARAMETERS.id: sum,
    metrics.MEMORY_MODULE.id: max,
}
"""Metrics whose rows hold what is inside a module already, and how those of repeated layers go together."""
_LARGEST = 1e100
"""Far above any published time; larger values are mistakes."""
_NANOSECOND = 1e-9
"""Times of a record are rounded to this."""
_TIMES = (metrics.TIME_GPU, metrics.TIME_MODULE)
TIME_IDS = frozenset(metric.id for metric in _TIMES)
"""Metrics of which even the total may be put together from rows."""
_MADE = (WITHIN, OWN, CLASS, ROW, OUTSIDE, EVERYTHING, ALL_ROWS)
"""Kinds of scopes that no record holds."""

Fits = Callable[[Scope, str, Sequence[str]], bool]
"""Whether the time of a scope, opened inside a module of that path and held by these labels, belongs to it."""


def is_made(record: Record, metric: Metric, scope: str) -> bool:
    """Whether a scope is put together from the rows of modules; the time of a whole call is their sum.

    Other meters may have read a total of their own, of other calls.
    """
    asked = Scope.parse(scope)
    if asked.all_directions == TOTAL:
        return metric in _TIMES and any(_is_module(m) for m in _rows(record, metric))
    return bool(asked.direction) or asked.kind in _MADE


def time_metric(records: Sequence[Record]) -> Metric:
    """The metric of the time of modules: the GPU's where it was measured, else the CPU's."""
    held = {m.metric for record in records for m in record.measurements if _is_module(m) and m.values}
    return next((metric for metric in _TIMES if metric.id in held), metrics.TIME_MODULE)


def find(record: Record, metric: Metric, scope: str) -> Measurement | None:
    """The measurement of a made scope, one value a call; None where no row belongs to it."""
    asked = Scope.parse(scope)
    if metric.id in _INCLUSIVE:
        pattern = asked.all_directions.path
        inside = [
            m.values[0]
            for m in record.measurements
            if m.metric == metric.id and m.values and _is_module(m) and fits_pattern(Scope.parse(m.scope).path, pattern)
        ]
        return Measurement.of(metric, [_INCLUSIVE[metric.id](inside)], scope=scope) if inside else None
    rows = list(_belonging(record, metric, asked.all_directions, asked.direction))
    if not rows:
        return next((m for m in record.measurements if m.metric == metric.id and m.unavailable), None)
    calls = max(map(len, rows))
    values = [sum(row[call] for row in rows if call < len(row)) for call in range(calls)]
    return Measurement.of(metric, values, scope=scope)


def calls(record: Record, scope: str) -> float | None:
    """How often in one call the modules or labels of a scope are entered; None for what is not entered."""
    asked = Scope.parse(scope)
    if asked.kind not in (WITHIN, OWN, MODULE, LABEL):
        return None
    fits = _fitting(record, asked.own)
    timed = _rows(record, metrics.TIME_MODULE)
    rows = [m for m in timed if "calls" in m.notes and fits(Scope.parse(m.scope), "", ())]
    entered = [float(m.notes["calls"]) for m in rows]
    return sum(entered) if entered else None


def _rows(record: Record, metric: Metric) -> Iterator[Measurement]:
    """Every row of the modules meter; together they are the call."""
    kinds = (MODULE, LABEL, STAGE, UNATTRIBUTED)
    rows = (m for m in record.measurements if m.metric == metric.id and m.values)
    return (m for m in rows if Scope.parse(m.scope).kind in kinds)


def _is_module(measurement: Measurement) -> bool:
    return Scope.parse(measurement.scope).kind == MODULE


def _belonging(record: Record, metric: Metric, scope: Scope, direction: str) -> Iterator[Sequence[float]]:
    """Values of every row, or part of one, that belongs to a scope; empty ones where it has none in a direction."""
    fits = _fitting(record, scope)
    for m in _rows(record, metric):
        row, parts = Scope.parse(m.scope), _parts(m)
        if len(parts) == 1:
            module, labels, _ = parts[0]
            if fits(row, module, labels):
                yield m.notes.get(direction, ()) if direction else m.values
            continue
        for module, labels, apart in parts:
            if fits(row, module, labels):
                ways = [apart[way] for way in DIRECTIONS if way in apart]
                yield apart.get(direction, ()) if direction else [sum(call) for call in zip(*ways, strict=True)]


Apart = Mapping[str, Sequence[float]]
"""Values by direction."""


def _parts(row: Measurement) -> list[tuple[str, Sequence[str], Apart]]:
    """The module that a label was opened in, the labels that hold it, and the values, of each part of a row.

    Records of earlier versions say of a label what it did in modules, and not which labels hold it.
    """
    held: Sequence[Mapping[str, Any]] = row.notes.get(LABELS, ())
    if held:
        return [(one.get("module", ""), one["in"], one) for one in held]
    inside: Mapping[str, Apart] = row.notes.get("inside", {})
    if not inside:
        return [("", (), row.notes)]
    left = {way: list(row.notes[way]) for way in DIRECTIONS if way in row.notes}
    for part in inside.values():
        for way in left.keys() & part.keys():
            left[way] = [value - own for value, own in zip(left[way], part[way], strict=True)]
    rest = {way: values for way, values in left.items() if max(values) >= _NANOSECOND}  # not only what rounding left
    return [*((path, (), apart) for path, apart in inside.items()), *([("", (), rest)] if rest else [])]


def _fitting(record: Record, scope: Scope) -> Fits:
    kind, what, label = scope.kind, scope.path, scope.inner.kind == LABEL
    if scope in (EVERYTHING, TOTAL):
        return lambda one, inside, labels: True
    if label and kind == WITHIN:
        name = scope.inner.path
        return lambda one, inside, labels: name in labels
    if label and kind == OWN:
        return lambda one, inside, labels: one == what
    if kind == WITHIN:
        return lambda one, inside, labels: within(inside or _path(one), what)
    if kind == OWN:
        return lambda one, inside, labels: one.kind == MODULE and fits_pattern(one.path, what)
    if kind == CLASS:
        classes = class_of(record)
        return lambda one, inside, labels: classes.get(_path(one)) == what
    rows = rows_of(record)
    if scope == ALL_ROWS:
        return lambda one, inside, labels: row_of(one, inside, rows, labels) is not None
    if kind == ROW:
        return lambda one, inside, labels: row_of(one, inside, rows, labels) == what
    if kind == OUTSIDE:
        return lambda one, inside, labels: (
            (one.kind == MODULE if scope == OTHER_MODULES else one == what)
            and row_of(one, inside, rows, labels) is None
        )
    return lambda one, inside, labels: one == scope


def _path(scope: Scope) -> str:
    return scope.path if scope.kind == MODULE else ""


def class_of(*records: Record) -> dict[str, str]:
    """Path → class of every module that has a row in any of the rounds."""
    rows = (m for record in records for m in _rows(record, metrics.TIME_MODULE) if _is_module(m))
    return {Scope.parse(m.scope).path: str(m.notes.get("class", "")) for m in rows}


def rows_of(record: Record) -> dict[str, tuple[str, ...]]:
    """Row → patterns, as the subject's option `rows` has them; a subject may mean something else by that word."""
    given = _mapping(record.case.subject.options.get("rows"))
    return {name: patterns for name, one in given.items() if (patterns := _patterns(one))}


def _patterns(given: Any) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    return found if all(isinstance(one, str) for one in found) else ()


def _mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def row_of(scope: Scope, inside: str, rows: Mapping[str, Sequence[str]], labels: Sequence[str] = ()) -> str | None:
    """The first row that has a pattern for this scope: of a path, `label:x` of all that it holds, or `stage:x`."""
    path = inside or _path(scope)
    names = {scope, *(Scope.of(LABEL, label) for label in labels)}
    for name, patterns in rows.items():
        if any(pattern in names or (path and within(path, pattern)) for pattern in patterns):
            return name
    return None


def fits_pattern(path: str, pattern: str) -> bool:
    """Whether every part of a path is that of the pattern; `*` is any one part."""
    parts, wanted = path.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(w in ("*", part) for part, w in zip(parts, wanted, strict=True))


def within(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern or lies inside one that does."""
    parts = path.split(".")
    return bool(path) and fits_pattern(".".join(parts[: pattern.count(".") + 1]), pattern)


def published_shares(record: Record) -> dict[str, float]:
    """Row → per cent of the forward pass, from the milliseconds that the subject's option `published` has."""
    given = _mapping(_published(record).get("forward_ms"))
    times = {
        row: float(value) for row, value in given.items() if isinstance(value, int | float) and 0 <= value < _LARGEST
    }
    whole = sum(times.values())
    return {row: 100 * value / whole for row, value in times.items()} if whole > 0 else {}


def published_by(record: Record) -> str:
    """Who published the shares, as the option `published` says."""
    return str(_published(record).get("name", "published"))


def _published(record: Record) -> Mapping[str, Any]:
    return _mapping(record.case.subject.options.get("published"))
