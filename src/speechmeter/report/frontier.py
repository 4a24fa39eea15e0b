"""The largest that fits, one row a line: what fits, what does not, the margin, and time and memory at the edge."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.frontier import Edge, edges
from speechmeter.core import metrics
from speechmeter.core.finding import target_of
from speechmeter.core.types import Record
from speechmeter.report.labels import grid_groups
from speechmeter.report.numbers import figure as written
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, cell_of, list_table

_OTHER = {"batch": "seconds", "seconds": "batch", "max_frames": ""}
_COSTS = (
    metrics.LATENCY, metrics.THROUGHPUT, metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK,
    metrics.MEMORY_CUDA_ALLOCATED,
)  # fmt: skip
_EDGE = (metrics.LARGEST_FITTING, metrics.SMALLEST_FAILING, metrics.LARGEST_SAFE)
_ASSUMED = "assumption: if a size fits, every smaller size also fits."


def searched(record: Record) -> bool:
    """Whether a record is a trial of a search."""
    return target_of(record.case) is not None


def titled_edges(records: Sequence[Record]) -> list[tuple[str, Edge]]:
    """(the name of a line, its edge), in the order of the records."""
    found = [(title, edge) for title, group in grid_groups(records).items() for edge in edges(group)]
    several = len({edge.limit for _, edge in found if edge.searched}) > 1
    return [(f"{title} · {edge.limit}" if several and edge.searched else title, edge) for title, edge in found]


def other_axis(edge: Edge) -> str:
    """The axis of a grid that is not the searched one; empty where a case has none."""
    name = _OTHER.get(edge.target.axis, "")
    return name if isinstance(edge.case.axes.get(name), int | float) else ""


def frontier(records: Sequence[Record]) -> list[Table]:
    """A table for each axis that was searched; of an ordinary study, one for `batch`."""
    found: dict[str, list[tuple[str, Edge]]] = {}
    for title, edge in titled_edges(records):
        found.setdefault(edge.target.axis, []).append((title, edge))
    reasons = {r.case.subject.name: r.reason for r in records if r.status == "unavailable" and searched(r)}
    absent = [f"{name}: unavailable: {reason}" for name, reason in reasons.items()]
    return [_table(axis, lines, absent) for axis, lines in found.items()]


def _table(axis: str, lines: Sequence[tuple[str, Edge]], absent: Sequence[str]) -> Table:
    largest = [edge.largest for _, edge in lines if edge.largest]
    costs = [metric for metric in _COSTS if any(estimate(rounds, metric) is not None for rounds in largest)]
    rows = []
    for title, edge in lines:
        cells = [
            Cell(word=NOT_MEASURED, reason=edge.stop) if figure is None else Cell(estimate=figure)
            for figure in (edge.fits, edge.fails, edge.safe)
        ]
        cells += [cell_of(edge.largest, metric) if edge.largest else Cell(word=NOT_MEASURED) for metric in costs]
        rows.append(Row(labels=(title, words_at(edge)), cells=(*cells, Cell(word=str(edge.trials)))))
    columns = (*(metric.title for metric in _EDGE), *(f"{metric.title} there" for metric in costs), "tried")
    shown, notes = (*_EDGE, *costs), [*_notes(lines), *absent]
    return list_table(f"largest {axis} that fits", ("line", "at"), shown, rows, notes, columns=columns)


def words_at(edge: Edge) -> str:
    """`30 s` or `batch 4`: the value of the axis that was not searched; empty where a case has none."""
    other = other_axis(edge)
    value = edge.case.axes.get(other)
    return "" if not other else f"{value:g} s" if other == "seconds" else f"{other} {value:g}"


def _notes(lines: Sequence[tuple[str, Edge]]) -> list[str]:
    found = [
        f"limit: {edge.limit}. The safe size is {100 * edge.margin:g} % below the largest that fits."
        for _, edge in lines
        if edge.searched
    ]
    about: dict[str, list[str]] = {}
    for title, edge in lines:
        doubt = f"not monotone: {edge.doubt}" if edge.doubt else ""
        for text in filter(None, (edge.stop, doubt, _untried(edge), _in_pieces(edge))):
            about.setdefault(text, []).append(" · ".join(part for part in (title, words_at(edge)) if part))
    several = [f"{'all' if len(names) == len(lines) else ', '.join(names)}: {text}." for text, names in about.items()]
    return list(dict.fromkeys([_ASSUMED, *found, *several]))


def _untried(edge: Edge) -> str:
    """A gap that is wider than the margin: the search was stopped, or asked to come no closer."""
    if not edge.searched or edge.fits is None or edge.fails is None:
        return ""
    fits, fails = edge.fits.value, edge.fails.value
    if fails - fits <= edge.target.step * 1.5 or fails - fits <= edge.margin * fits:
        return ""
    return f"no {edge.target.axis} between {written(edge.fits)} and {written(edge.fails)} was tested"


def _in_pieces(edge: Edge) -> str:
    if edge.pieces is None or edge.fails is None:
        return ""
    return (
        f"at {edge.target.axis} {written(edge.fails)} the memory was fragmented: enough was free, but not in one "
        f"block. Torch had reserved {edge.pieces.unused_gib:.1f} GiB that it did not use. The result depends on the "
        "order of calls. More may fit with the environment variable PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    )
