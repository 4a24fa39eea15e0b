"""Where a call's time goes: a tree of modules with bars, the same by class, and in the rows that a plan names."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.module_tree import Line, class_lines, row_lines, tree
from speechmeter.analysis.modules import (
    DIRECTIONS,
    EVERYTHING,
    OWN,
    UNATTRIBUTED,
    WITHIN,
    published_by,
    published_shares,
    time_metric,
)
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import IMPORTED
from speechmeter.core.types import Record
from speechmeter.report.grids import case_labels
from speechmeter.report.lists import list_table, measured
from speechmeter.report.numbers import counted
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, by_case, cell_of

_BAR = 20
_LEAST_SHARE = 0.5
"""Per cent of the call below which a module has no line of its own, unless it was asked for."""
_BESIDE = (metrics.FLOPS, metrics.FLOPS_BACKWARD, metrics.MODULE_MFU, metrics.MEMORY_MODULE)
_NOTHING = Cell(word=NOT_MEASURED)
_BLANK = "\u2800"
"""Bars begin on the left: this blank is no space, so nothing takes it away."""


def timed(records: Sequence[Record]) -> bool:
    """Whether any record tells the time of modules, or why it does not."""
    return measured(records, metrics.TIME_MODULE)


def module_times(records: Sequence[Record], wanted: str | None = None) -> list[Table]:
    """For each case a tree, a table by class, and one in the subject's own rows where it names any."""
    labels = case_labels(records)
    found: list[Table] = []
    for case_id, group in by_case(records).items():
        lines = tree(group, wanted)
        if not lines:
            found.append(_absent(labels[case_id], group))
            continue
        found.append(_tree(labels[case_id], group, lines, everything=wanted is not None))
        if wanted is None:
            found += [_classes(labels[case_id], group), *_rows(labels[case_id], group)]
    return found


def _absent(label: str, group: Sequence[Record]) -> Table:
    cell = cell_of(group, metrics.TIME_MODULE)
    return list_table("modules", ("case",), (metrics.TIME_MODULE,), (Row(labels=(label,), cells=(cell,)),))


def _tree(label: str, group: Sequence[Record], lines: Sequence[Line], *, everything: bool) -> Table:
    time = time_metric(group)
    ways = _directions(group, time)
    beside = [metrics.TIME_MODULE] if time != metrics.TIME_MODULE else []
    beside += [metric for metric in _BESIDE if any(_has(group, metric, line.scope) for line in lines)]
    listed = [line for line in lines if everything or line.scope == UNATTRIBUTED or _share(group, line) >= _LEAST_SHARE]
    rows = tuple(
        Row(
            labels=("  " * line.depth + line.name, line.kind),
            cells=(
                _bar(_share(group, line)),
                cell_of(group, metrics.MODULE_SHARE, line.scope),
                *(_seconds(group, time, f"{line.scope}@{way}") for way in ways),
                _seconds(group, time, line.scope.replace(WITHIN, OWN, 1)),
                _seconds(group, metrics.MODULE_CALLS, line.scope),
                *(_seconds(group, metric, line.scope) for metric in beside),
            ),
        )
        for line in [Line(name="call", scope=EVERYTHING), *listed]
    )
    hidden = len(lines) - len(listed)
    notes = (
        [f"not listed: {counted(hidden, 'line')} below {_LEAST_SHARE:g} %; --filter '*' lists all."] if hidden else []
    )
    columns = ("", "share", *ways, "its own", "calls", *(_heading(metric) for metric in beside))
    shown = (metrics.MODULE_SHARE, time, metrics.MODULE_CALLS, *beside)
    return list_table(f"modules · {label}", ("module", "class"), shown, rows, [*notes, _PROFILED], columns=columns)


def _heading(metric: Metric) -> str:
    return "on the CPU" if metric == metrics.TIME_MODULE else metric.title


_PROFILED = (
    "a module's times hold what is inside it, `its own` do not; unattributed: between the nodes of the backward pass, "
    "and what no module, label or stage could be found for. Under a profiler calls take longer: see latency for that."
)


def _directions(group: Sequence[Record], time: Metric) -> list[str]:
    return [way for way in DIRECTIONS if _has(group, time, f"{EVERYTHING}@{way}")]


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
                *(_seconds(group, time, f"{line.scope}@{way}") for way in ways),
            ),
        )
        for line in lines
        if _share(group, line) >= _LEAST_SHARE
    )
    notes = ["own times of all modules of a class, without what is inside them."]
    shown = (metrics.MODULE_SHARE,)
    return list_table(f"by class · {label}", ("class",), shown, rows, notes, columns=("", "share", *ways))


def _rows(label: str, group: Sequence[Record]) -> list[Table]:
    """Forward and backward in the subject's rows, each with its share, and a published share where there is one."""
    lines = row_lines(group)
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
        for line in [*lines, Line(name=UNATTRIBUTED, scope=UNATTRIBUTED), Line(name="call", scope=EVERYTHING)]
    )
    heads = [head for way in ways for head in (way, f"share of {way}")]
    columns = (*heads, "share of call", *((f"{source}: share of forward",) if published else ()))
    shown = (metrics.MODULE_SHARE, time)
    return [list_table(f"rows · {label}", ("row",), shown, rows, columns=columns)]


def _both(group: Sequence[Record], time: Metric, line: Line, way: str) -> tuple[Cell, Cell]:
    scope = f"{line.scope}@{way}"
    share = _seconds(group, metrics.MODULE_SHARE, scope) if line.scope.startswith("row:") else _NOTHING
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
