"""The figures of a run that is still going on, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType

from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.types import LEFT_OUT, Record
from speechmeter.report.labels import case_labels
from speechmeter.report.tables import Row, Table, cell_of, measured
from speechmeter.report.terminal import one_block

_SHOWN = (
    metrics.LATENCY,
    metrics.RTF,
    metrics.FLOPS,
    metrics.MEMORY_CPU_TOTAL,
    metrics.MEMORY_CUDA_ALLOCATED,
)
_AROUND = 7
"""Lines of the terminal that the table leaves to its frame, to what is running, and to what was printed before."""
_MOST = 20


def so_far(records: Sequence[Record], console: Console) -> RenderableType | None:
    """A table of the cases that were measured last, with intervals over their rounds; None where it does not fit."""
    groups = by_case(record for record in records if record.status not in LEFT_OUT)
    room = min(_MOST, console.height - _AROUND)
    if not groups or room < 1:
        return None
    labels = case_labels(records)
    newest = sorted(groups, key=lambda case: groups[case][-1].sequence)[-room:]
    chosen = [case for case in groups if case in newest]
    held = [record for case in chosen for record in groups[case]]
    shown = [metric for metric in _SHOWN if metric is metrics.RTF or measured(held, metric)]
    rows = [
        Row(
            labels=(labels[case],),
            cells=tuple(cell_of(groups[case], metric) for metric in shown),
        )
        for case in chosen
    ]
    columns = tuple(metric.title for metric in shown)
    more = f" ({len(chosen)} of {len(groups)} cases)" if len(chosen) < len(groups) else ""
    return one_block(
        Table(title="", metric=None, labels=(f"so far{more}",), columns=columns, rows=tuple(rows)), console
    )
