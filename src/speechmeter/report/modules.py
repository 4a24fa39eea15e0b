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
from speechmeter.core.scope import DIRECTIONS, EVERYTHING, ROW, UNATTRIBUTED, WITHIN, Scope
from speechmeter.core.types import Record
from speechmeter.report.grids import case_labels
from speechmeter.report.lists import list_table, measured
from speechmeter.report.numbers import counted
from speechmeter.report.recorded import recorded_notes
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, by_case, cell_of

_CALL = Scope.parse(EVERYTHING)
_BAR = 20
_LEAST_SHARE = 0.5
"""Per cent of the call below which a module has no line of its own, unless it was asked for."""
_NEAREST = 4
"""So many names are offered for a filter that fits none."""
_BESIDE = (metrics.FLOPS, metrics.FLOPS_BACKWARD, metrics.MODULE_MFU, metrics.MEMORY_MODULE)
_NOTHING = Cell(word=NOT_MEASURED)
_BLANK = "\u2800"
"""Bars begin on the left: this blank is no space, so nothing takes it away."""


def timed(records: Sequence[Record]) -> bool:
    """Whether any record tells the time of modules, or why it does not."""
    return measured(records, metrics.TIME_MODULE)


def module_times(records: Sequence[Record], wanted: str | None = None) -> list[Table]:
    """For each case the subject's own rows where it names any, its labels if it has any, a tree, and a table by class.

    `wanted` is a pattern for the labels and the lines of the tree. Raises InputError where no case has one that fits.
    """
    labels = case_labels(records)
    found: list[Table] = []
    groups = by_case(records)
    if wanted is not None:
        check_filter(wanted, [line.names for group in groups.values() for line in tree(group) if _may_be_asked(line)])
    for case_id, group in groups.items():
        label, lines = labels[case_id], tree(group, wanted)
        if not lines:
            found.append(_absent(label, group))
            continue
        found += _rows(label, group) if wanted is None else []
        found += _labels(label, group, [line for line in lines if line.is_label], wanted)
        found += _tree(label, group, [line for line in lines if not line.is_label], wanted)
        found += [_classes(label, group)] if wanted is None else []
    return found


def check_filter(wanted: str, names: Sequence[tuple[str, ...]]) -> None:
    """Raise InputError, with the nearest names, where no line has a name that fits; `names` are those of each line."""
    if not names or any(name == wanted or fnmatchcase(name, wanted) for line in names for name in line):
        return
    known = list(dict.fromkeys(name for line in names for name in reversed(line)))
    word = wanted.strip("*.")
    near = difflib.get_close_matches(word, known, n=_NEAREST, cutoff=0.5) or [n for n in known if word and word in n]
    fix = ", ".join(f"'{name}'" for name in (near or known)[:_NEAREST])
    raise InputError(
        f"no module or label fits {wanted!r}",
        where="--filter",
        fix=f"{'the nearest are' if near else 'there are'} {fix}; --filter '*' lists all",
    )


def _may_be_asked(line: Line) -> bool:
    return line.scope != UNATTRIBUTED


def _absent(label: str, group: Sequence[Record]) -> Table:
    cell = cell_of(group, metrics.TIME_MODULE)
    return list_table("modules", ("case",), (metrics.TIME_MODULE,), (Row(labels=(label,), cells=(cell,)),))


def _tree(label: str, group: Sequence[Record], lines: Sequence[Line], wanted: str | None) -> list[Table]:
    if all(line.scope == UNATTRIBUTED for line in lines) and wanted is not None:
        return []  # only labels fit
    listed, notes = _listed(group, lines, everything=wanted is not None)
    notes += [*recorded_notes(group, metrics.TIME_MODULE), _PROFILED]
    return [_timed_lines(f"modules · {label}", ("module", "class"), group, listed, notes)]


def _labels(label: str, group: Sequence[Record], lines: Sequence[Line], wanted: str | None) -> list[Table]:
    """The ranges that the model's own code names, each with all that runs inside it."""
    if not lines:
        return []
    listed, notes = _listed(group, lines, everything=wanted is not None)
    own_alone = [line.name for line in lines if line.scope.kind != WITHIN]
    notes += [_HELD] if len(own_alone) < len(lines) else []
    notes += [f"{', '.join(own_alone)}: {_OWN_ALONE}"] if own_alone else []
    return [_timed_lines(f"labels · {label}", ("label",), group, listed, notes)]


def _listed(group: Sequence[Record], lines: Sequence[Line], *, everything: bool) -> tuple[list[Line], list[str]]:
    """The lines that are worth one, and a note on the others."""
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
    rows = tuple(
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
    )
    columns = ("", "share", *ways, "its own", "calls", *(_heading(metric) for metric in beside))
    shown = (metrics.MODULE_SHARE, time, metrics.MODULE_CALLS, *beside)
    return list_table(title, heads, shown, rows, notes, columns=columns)


def _heading(metric: Metric) -> str:
    return "on the CPU" if metric == metrics.TIME_MODULE else metric.title


_PROFILED = (
    "a module's times hold what is inside it, `its own` do not; unattributed: between the nodes of the backward pass, "
    "and what no module, label or stage could be found for. Times are means over the same calls and rounds: a module "
    "is its own and what is inside it, and own times of all rows and labels add up to the call. Under a profiler calls "
    "take longer: see latency for that."
)
_HELD = (
    "a label's times hold the modules and labels inside it, forward and backward; `its own` do not. Labels inside each "
    "other share time, so their shares do not add up."
)
_OWN_ALONE = (
    "the run was recorded by an earlier version, which kept a label's own time alone: without the modules and labels "
    "inside it."
)


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
    rows = tuple(
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
    )
    notes = ["own times of all modules of a class, without what is inside them."]
    shown = (metrics.MODULE_SHARE,)
    return list_table(f"by class · {label}", ("class",), shown, rows, notes, columns=("", "share", *ways))


def _rows(label: str, group: Sequence[Record]) -> list[Table]:
    """Forward and backward in the subject's rows, each with its share, and a published share where there is one.

    What is in no row has lines of its own, so that all lines but the last are the call.
    """
    lines = [line for line in row_lines(group) if _is_row(line) or _share(group, line) > 0]
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


_ROWS = (
    "shares of the call add up to 100 %: below the named rows are modules in none of them (`other modules`), what "
    "stages and labels did outside of them, and unattributed time. Shares of one direction are of the named rows alone."
)


def _is_row(line: Line) -> bool:
    return line.scope.kind == ROW or line.scope == UNATTRIBUTED


def _both(group: Sequence[Record], time: Metric, line: Line, way: str) -> tuple[Cell, Cell]:
    scope = line.scope.in_direction(way)
    share = _seconds(group, metrics.MODULE_SHARE, scope) if line.scope.kind == ROW else _NOTHING
    return _seconds(group, time, scope), share


def _published(share: float | None) -> Cell:
    if share is None:
        return _NOTHING
    return Cell(
        estimate=Estimate(
            metric=metrics.MODULE_SHARE,
            value=share,
            low=None,
            high=None,
            rounds=1,
            samples_per_round=0,
            statistic=IMPORTED,
        )
    )
