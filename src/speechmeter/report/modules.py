"""Where a call's time goes: in the rows that a plan names, by label, as a tree of modules with bars, and by class."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.module_tree import Line, class_lines, row_lines, tree
from speechmeter.analysis.modules import published_by, published_shares, time_metric
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import IMPORTED
from speechmeter.core.scope import DIRECTIONS, EVERYTHING, MODULE, ROW, UNATTRIBUTED, WITHIN, Scope
from speechmeter.core.types import Record
from speechmeter.report.arithmetic import scopes_with
from speechmeter.report.caveats import recorded_notes
from speechmeter.report.labels import labelled
from speechmeter.report.numbers import counted
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, cell_of, list_table, measured

_CALL = Scope.parse(EVERYTHING)
_BAR = 20
_LEAST_SHARE = 0.5
"""Per cent of the call below which a module has no line of its own, unless it was asked for."""
_NEAREST = 4
"""So many names are offered for a filter that fits none."""
_BESIDE = (metrics.FLOPS, metrics.FLOPS_BACKWARD, metrics.MODULE_MFU, metrics.MEMORY_MODULE)
_NOTHING = Cell(word=NOT_MEASURED)
_BLANK = "\u2800"
"""Fills a bar up on its right. It is not a space, so that nothing strips it."""
_PROFILED = (
    "the times of a module include everything that runs inside it; `its own` is the time without its submodules. "
    "unattributed: work that belongs to no known module, label or stage, and work between the nodes of the backward "
    "pass. The own times of all rows and labels add up to the call. The profiler slows calls down, so use latency for "
    "their usual time."
)
_HELD = (
    "the times of a label include the modules and labels inside it, forward and backward; `its own` is the time "
    "without them. The time of an inner label also counts for the outer label, so shares do not add up to 100 %."
)
_OWN_ALONE = (
    "an earlier version recorded this run. It recorded only the own time of a label, without the modules and labels "
    "inside it."
)
_ROWS = (
    "the first rows are those that the plan names. Below them is the rest of the call: `other modules`, stages and "
    "labels outside of these rows, and unattributed time. All shares of the call add up to 100 %. The columns for "
    "forward and backward divide only the time of the named rows."
)


def modules(records: Sequence[Record], wanted: str | None = None) -> list[Table]:
    """Times of modules where some record has them, or a reason why not; else their FLOPs and parameters.

    `wanted` is a pattern for modules and labels. Raises InputError where none fits it.
    """
    if not measured(records, metrics.TIME_MODULE):
        return _module_flops(records, wanted)
    found: list[Table] = []
    groups = labelled(records)
    if wanted is not None:
        lines = [line for _, group in groups for line in tree(group)]
        check_filter(wanted, [line.names for line in lines if line.scope != UNATTRIBUTED])
    for label, group in groups:
        lines = tree(group, wanted)
        if not lines:
            row = Row(labels=(label,), cells=(cell_of(group, metrics.TIME_MODULE),))
            found.append(list_table("modules", ("case",), (metrics.TIME_MODULE,), [row]))
            continue
        everything = wanted is not None
        found += [] if everything else _rows(label, group)
        found += _labels(label, group, [line for line in lines if line.is_label], everything=everything)
        own = [line for line in lines if not line.is_label]
        if not everything or any(line.scope != UNATTRIBUTED for line in own):  # else only labels fit the pattern
            listed, notes = _listed(group, own, everything=everything)
            notes += [*recorded_notes(group, metrics.TIME_MODULE), _PROFILED]
            found.append(_timed_lines(f"modules · {label}", ("module", "class"), group, listed, notes))
        found += [] if everything else [_classes(label, group)]
    return found


def _module_flops(records: Sequence[Record], wanted: str | None) -> list[Table]:
    """One row a case and module: its FLOPs, those of the modules inside it included, and its parameters."""
    shown = (metrics.FLOPS, metrics.PARAMETERS)
    scopes = [(label, group, scopes_with(group, MODULE, *shown)) for label, group in labelled(records)]
    if wanted is not None:
        check_filter(wanted, [(scope.path,) for _, _, own in scopes for scope in own])
    rows = [
        Row(labels=(label, scope.path), cells=tuple(cell_of(group, metric, scope) for metric in shown))
        for label, group, own in scopes
        for scope in own
        if wanted is None or fnmatchcase(scope.path, wanted)
    ]
    return [list_table("modules", ("case", "module"), shown, rows)]


def check_filter(wanted: str, names: Sequence[tuple[str, ...]]) -> None:
    """Raise InputError, with the nearest names, where no line has a name that fits; `names` are those of each line."""
    if not names or any(name == wanted or fnmatchcase(name, wanted) for line in names for name in line):
        return
    known = list(dict.fromkeys(name for line in names for name in reversed(line)))
    word = wanted.strip("*.")
    near = difflib.get_close_matches(word, known, n=_NEAREST, cutoff=0.5) or [n for n in known if word and word in n]
    fix = ", ".join(f"'{name}'" for name in (near or known)[:_NEAREST])
    raise InputError(
        f"no module or label matches {wanted!r}",
        key="filter",
        fix=f"{'similar names' if near else 'names in this run'}: {fix}; `filter: *` lists all",
    )


def _labels(label: str, group: Sequence[Record], lines: Sequence[Line], *, everything: bool) -> list[Table]:
    """The ranges that the model's own code names, each with all that runs inside it."""
    if not lines:
        return []
    listed, notes = _listed(group, lines, everything=everything)
    own_alone = [line.name for line in lines if line.scope.kind != WITHIN]
    notes += [_HELD] if len(own_alone) < len(lines) else []
    notes += [f"{', '.join(own_alone)}: {_OWN_ALONE}"] if own_alone else []
    return [_timed_lines(f"labels · {label}", ("label",), group, listed, notes)]


def _listed(group: Sequence[Record], lines: Sequence[Line], *, everything: bool) -> tuple[list[Line], list[str]]:
    """The lines with a share that is worth listing, and a note on the others."""
    listed = [line for line in lines if everything or line.scope == UNATTRIBUTED or _share(group, line) >= _LEAST_SHARE]
    hidden = len(lines) - len(listed)
    text = f"not listed: {counted(hidden, 'line')} below {_LEAST_SHARE:g} %; --filter '*' lists all."
    return listed, [text] if hidden else []


def _timed_lines(
    title: str, heads: tuple[str, ...], group: Sequence[Record], lines: Sequence[Line], notes: Sequence[str]
) -> Table:
    """Share, time by direction, own time, calls, and what else is known of the call and of each line."""
    time = time_metric(group)
    ways = _directions(group, time)
    beside = [metrics.TIME_MODULE] if time != metrics.TIME_MODULE else []
    beside += [metric for metric in _BESIDE if any(_has(group, metric, line.scope) for line in lines)]
    rows = [
        Row(
            labels=("  " * line.depth + line.name, line.kind)[: len(heads)],
            cells=(
                _bar(_share(group, line)),
                cell_of(group, metrics.MODULE_SHARE, line.scope),
                *(_seconds(group, time, line.scope.in_direction(way)) for way in ways),
                _seconds(group, time, line.scope.own),
                _seconds(group, metrics.MODULE_CALLS, line.scope),
                *(_seconds(group, metric, line.scope) for metric in beside),
            ),
        )
        for line in [Line(name="call", scope=_CALL), *lines]
    ]
    columns = (
        "",
        "share",
        *ways,
        "its own",
        "calls",
        *("on the CPU" if metric == metrics.TIME_MODULE else metric.title for metric in beside),
    )
    shown = (metrics.MODULE_SHARE, time, metrics.MODULE_CALLS, *beside)
    return list_table(title, heads, shown, rows, notes, columns=columns)


def _directions(group: Sequence[Record], time: Metric) -> list[str]:
    return [way for way in DIRECTIONS if _has(group, time, _CALL.in_direction(way))]


def _has(group: Sequence[Record], metric: Metric, scope: str) -> bool:
    return cell_of(group, metric, scope).estimate is not None


def _share(group: Sequence[Record], line: Line) -> float:
    found = cell_of(group, metrics.MODULE_SHARE, line.scope).estimate
    return found.value if found is not None else 0.0


def _seconds(group: Sequence[Record], metric: Metric, scope: str) -> Cell:
    """The figure, or nothing: a module without a backward pass is no failure."""
    cell = cell_of(group, metric, scope)
    return cell if cell.estimate is not None else _NOTHING


def _bar(share: float) -> Cell:
    eighths = round(share / 100 * _BAR * 8)
    drawn = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return Cell(word=drawn.ljust(_BAR, _BLANK))


def _classes(label: str, group: Sequence[Record]) -> Table:
    time = time_metric(group)
    ways = _directions(group, time)
    lines = sorted(class_lines(group), key=lambda line: -_share(group, line))
    rows = [
        Row(
            labels=(line.name,),
            cells=(
                _bar(_share(group, line)),
                cell_of(group, metrics.MODULE_SHARE, line.scope),
                *(_seconds(group, time, line.scope.in_direction(way)) for way in ways),
            ),
        )
        for line in lines
        if _share(group, line) >= _LEAST_SHARE
    ]
    notes = ["time of all modules of a class, without their submodules."]
    columns = ("", "share", *ways)
    return list_table(f"by class · {label}", ("class",), (metrics.MODULE_SHARE,), rows, notes, columns=columns)


def _rows(label: str, group: Sequence[Record]) -> list[Table]:
    """Forward and backward in the subject's rows, each with its share, and a published share where there is one.

    What is in no row has lines of its own, so that all lines but the last are the call.
    """
    lines = [
        line
        for line in row_lines(group)
        if line.scope.kind == ROW or line.scope == UNATTRIBUTED or _share(group, line) > 0
    ]
    if not lines:
        return []
    time = time_metric(group)
    ways = _directions(group, time)
    published = published_shares(group[0])
    source = published_by(group[0])
    rows = tuple(
        Row(
            labels=(line.name,),
            cells=(
                *(cell for way in ways for cell in _both(group, time, line, way)),
                cell_of(group, metrics.MODULE_SHARE, line.scope),
                *((_published(published.get(line.name)),) if published else ()),
            ),
        )
        for line in [*lines, Line(name="call", scope=_CALL)]
    )
    heads = [head for way in ways for head in (way, f"share of {way}")]
    columns = (*heads, "share of call", *((f"{source}: share of forward",) if published else ()))
    shown = (metrics.MODULE_SHARE, time)
    return [list_table(f"rows · {label}", ("row",), shown, rows, [_ROWS], columns=columns)]


def _both(group: Sequence[Record], time: Metric, line: Line, way: str) -> tuple[Cell, Cell]:
    """The time of one direction, and its share of that direction."""
    scope = line.scope.in_direction(way)
    share = _seconds(group, metrics.MODULE_SHARE, scope) if line.scope.kind == ROW else _NOTHING
    return _seconds(group, time, scope), share


def _published(share: float | None) -> Cell:
    if share is None:
        return _NOTHING
    found = Estimate(
        metric=metrics.MODULE_SHARE, value=share, low=None, high=None, rounds=1, samples_per_round=0, statistic=IMPORTED
    )
    return Cell(estimate=found)
