"""The lines of a tree of modules: folded where layers repeat, with the scopes that their figures are asked by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from speechmeter.analysis.modules import LABELS, class_of, rows_of, time_metric
from speechmeter.core.scope import CLASS, LABEL, MODULE, OTHER_MODULES, OUTSIDE, ROW, STAGE, UNATTRIBUTED, WITHIN, Scope
from speechmeter.core.types import Measurement, Record


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: what it is called, how deep it is, its class, and the scope of its figures.

    `name` is printed: a path from the line above it that holds it. `pattern` is the whole path, and `above` are the
    paths of all lines that hold it, the outermost first.
    """

    name: str
    scope: Scope
    depth: int = 0
    kind: str = ""
    pattern: str = ""
    above: tuple[str, ...] = ()

    @property
    def is_label(self) -> bool:
        """Whether it is a label, which may hold what other lines are about."""
        return Scope.parse(self.name).kind == LABEL

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be called in a filter: the whole path, that from any line that holds it, as it is printed."""
        if not self.pattern:
            return self.name, Scope.parse(self.name).path
        return self.pattern, *(self.pattern.removeprefix(f"{outer}.") for outer in self.above)

    def fits(self, wanted: str) -> bool:
        """Whether one of its names fits a pattern, in which `*` is anything, or is just that."""
        return any(name == wanted or fnmatchcase(name, wanted) for name in self.names)


def folded(classes: Mapping[str, str]) -> dict[str, str]:
    """Path → pattern: numbers become `*` where a list holds several modules, all of one class."""
    children: dict[str, dict[str, str]] = {}
    for path, kind in classes.items():
        above, _, last = path.rpartition(".")
        if last.isdigit():
            children.setdefault(above, {})[last] = kind
    lists = {above for above, inside in children.items() if len(inside) > 1 and len(set(inside.values())) == 1}
    found = {}
    for path in classes:
        parts = path.split(".")
        repeated = [part.isdigit() and ".".join(parts[:depth]) in lists for depth, part in enumerate(parts)]
        found[path] = ".".join("*" if is_one else part for is_one, part in zip(repeated, parts, strict=True))
    return found


def tree(records: Sequence[Record], wanted: str | None = None) -> list[Line]:
    """Modules in the order they run, each before those inside it, then labels, stages and the rest.

    A line for everything that any round has. `wanted` is a pattern, in which `*` is anything: only the lines that fit
    it, and always `unattributed`.
    """
    measured = _measured(records)
    if not measured:
        return []
    classes = class_of(*measured)
    patterns = folded(classes)
    kinds: dict[str, str] = {}
    for path, pattern in patterns.items():
        kinds.setdefault(pattern, classes[path])
    # a module comes before those inside it, which come in the order they ran first
    ran: dict[str, int] = {}
    for index, pattern in enumerate(kinds):
        for outer in _outer(pattern):  # a list of modules is not called itself: it comes where the first of them does
            ran.setdefault(outer, index)
    lines = []
    for pattern in sorted(kinds, key=lambda pattern: [ran[outer] for outer in _outer(pattern)]):
        above = [outer for outer in _outer(pattern)[:-1] if outer in kinds]
        name = pattern.removeprefix(f"{above[-1]}.") if above else pattern
        lines.append(
            Line(
                name=name, scope=Scope.of(WITHIN, pattern), depth=len(above), kind=kinds[pattern],
                pattern=pattern, above=tuple(above),
            )
        )  # fmt: skip
    held = holds_all(measured)
    lines += [Line(name=name, scope=Scope.of(WITHIN, name) if name in held else name) for name in _others(measured)]
    return [line for line in lines if wanted is None or line.scope == UNATTRIBUTED or line.fits(wanted)]


def _timed(records: Sequence[Record]) -> list[tuple[Scope, Measurement]]:
    metric = time_metric(records)
    return [(Scope.parse(m.scope), m) for record in records for m in record.measurements if m.metric == metric.id]


def _measured(records: Sequence[Record]) -> list[Record]:
    metric = time_metric(records)
    return [
        r for r in records if any(m.metric == metric.id and Scope.parse(m.scope).kind == MODULE for m in r.measurements)
    ]


def _outer(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def holds_all(records: Sequence[Record]) -> set[str]:
    """Labels of which every record says what they hold; of those of earlier versions only their own time is known."""
    rows = [m for scope, m in _timed(records) if scope.kind == LABEL]
    return {m.scope for m in rows} - {m.scope for m in rows if LABELS not in m.notes}


def _others(records: Sequence[Record]) -> list[Scope]:
    scopes = dict.fromkeys(scope for scope, _ in _timed(records))
    return [*(scope for scope in scopes if scope.kind in (LABEL, STAGE)), Scope.parse(UNATTRIBUTED)]


def class_lines(records: Sequence[Record]) -> list[Line]:
    """One line a class of modules."""
    kinds = dict.fromkeys(class_of(*_measured(records)).values())
    return [Line(name=kind, scope=Scope.of(CLASS, kind)) for kind in kinds if kind]


def row_lines(records: Sequence[Record]) -> list[Line]:
    """One line a row that the subject names, in its order; then what is in none of them, so that all are the call."""
    measured = _measured(records)
    rows = rows_of(measured[0]) if measured else {}
    if not rows:
        return []
    others = [scope for scope in _others(measured) if scope != UNATTRIBUTED]
    return [
        *(Line(name=name, scope=Scope.of(ROW, name)) for name in rows),
        Line(name="other modules", scope=OTHER_MODULES),
        *(Line(name=scope, scope=Scope.of(OUTSIDE, scope)) for scope in others),
        Line(name=UNATTRIBUTED, scope=Scope.parse(UNATTRIBUTED)),
    ]
