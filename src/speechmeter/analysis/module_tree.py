"""The lines of a tree of modules: folded where layers repeat, with the scopes that their figures are asked by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from speechmeter.analysis.modules import (
    CLASS,
    LABEL,
    MODULE,
    STAGE,
    UNATTRIBUTED,
    WITHIN,
    class_of,
    rows_of,
    time_metric,
)
from speechmeter.core.types import Record


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: what it is called, how deep it stands, its class, and the scope of its figures."""

    name: str
    scope: str
    depth: int = 0
    kind: str = ""
    pattern: str = ""


def folded(classes: Mapping[str, str]) -> dict[str, str]:
    """Path → pattern: numbers become `*` where a list holds several modules, all of one class."""
    children: dict[str, dict[str, str]] = {}
    for path, kind in classes.items():
        above, _, last = path.rpartition(".")
        if last.isdigit():
            children.setdefault(above, {})[last] = kind
    lists = {above for above, inside in children.items() if len(inside) > 1 and len(set(inside.values())) == 1}
    return {path: _pattern(path, lists) for path in classes}


def _pattern(path: str, lists: set[str]) -> str:
    parts = path.split(".")
    return ".".join(
        "*" if part.isdigit() and ".".join(parts[:place]) in lists else part for place, part in enumerate(parts)
    )


def tree(records: Sequence[Record], wanted: str | None = None) -> list[Line]:
    """Modules in the order they run, each before those inside it, then labels, stages and what nobody was given.

    `wanted` is a pattern, `*` standing for anything: only modules and labels that fit it.
    """
    record = _measured(records)
    if record is None:
        return []
    classes = class_of(record)
    patterns = folded(classes)
    kinds: dict[str, str] = {}
    for path, pattern in patterns.items():
        kinds.setdefault(pattern, classes[path])
    lines = [_line(pattern, kinds) for pattern in _in_order(kinds)]
    lines += [Line(name=scope, scope=scope) for scope in _others(record)]
    return [line for line in lines if _asked_for(line, wanted)]


def _measured(records: Iterable[Record]) -> Record | None:
    metric = time_metric(list(records))
    return next(
        (r for r in records if any(m.metric == metric.id and m.scope.startswith(MODULE) for m in r.measurements)), None
    )


def _in_order(patterns: Mapping[str, str]) -> list[str]:
    """A module stands before those inside it, which stand in the order they ran first."""
    ran: dict[str, int] = {}
    for place, pattern in enumerate(patterns):
        for outer in _outer(pattern):  # a list of modules is not called itself: it stands where the first of them does
            ran.setdefault(outer, place)
    return sorted(patterns, key=lambda pattern: [ran[outer] for outer in _outer(pattern)])


def _outer(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _line(pattern: str, kinds: Mapping[str, str]) -> Line:
    above = [outer for outer in _outer(pattern)[:-1] if outer in kinds]
    name = pattern.removeprefix(f"{above[-1]}.") if above else pattern
    return Line(name=name, scope=WITHIN + pattern, depth=len(above), kind=kinds[pattern], pattern=pattern)


def _others(record: Record) -> list[str]:
    metric = time_metric([record])
    scopes = [m.scope for m in record.measurements if m.metric == metric.id]
    return [*(s for s in scopes if s.startswith((LABEL, STAGE))), UNATTRIBUTED]


def _asked_for(line: Line, wanted: str | None) -> bool:
    if wanted is None or line.scope == UNATTRIBUTED:  # always shown
        return True
    return fnmatchcase(line.pattern or line.name.partition(":")[2], wanted)


def class_lines(records: Sequence[Record]) -> list[Line]:
    """One line a class of modules."""
    record = _measured(records)
    kinds = dict.fromkeys(class_of(record).values()) if record is not None else {}
    return [Line(name=kind, scope=CLASS + kind) for kind in kinds if kind]


def row_lines(records: Sequence[Record]) -> list[Line]:
    """One line a row that the subject names, in its order."""
    record = _measured(records)
    return [Line(name=name, scope=f"row:{name}") for name in rows_of(record)] if record is not None else []
