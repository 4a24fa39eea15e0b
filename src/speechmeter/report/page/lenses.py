"""The section that puts speed offline, delay live and capacity of each system side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.lenses import RULE, is_seen_twice, lenses_of, slo_note
from speechmeter.report.sources import Source
from speechmeter.report.tables import NOT_MEASURED, Cell, Row

TITLE = "The same system offline, live and under load"
_TEXT = (
    "One row per system: its speed on whole recordings, its delay at one live stream, and how much load it carries "
    "within the SLO, with accuracy and memory."
)


def lenses_data(sources: Sequence[Source], defined: dict[str, Metric]) -> dict[str, Any] | None:
    """The section as the page holds it, over all sources; None where no system was measured in at least two ways.

    Capacities are for the SLO of the plan of their source. The metrics that it shows are added to `defined`.
    """
    slos = list({source.slo.text: source.slo for source in sources if source.slo is not None}.values())
    machines: dict[str, list[Record]] = {}
    for source in sources:
        for record in source.records:
            machines.setdefault(source.device(record), []).append(record)
    tables = [(machine, table) for machine, records in machines.items() for table in lenses_of(records, slos)]
    rows = [(machine, row) for machine, table in tables for row in table.rows if is_seen_twice(row)]
    if not rows:
        return None
    held = [at for at in range(len(rows[0][1].cells)) if any(row.cells[at].word != NOT_MEASURED for _, row in rows)]
    shown = [found.metric for _, row in rows for cell in row.cells if (found := cell.estimate) is not None]
    defined.update((metric.id, metric) for metric in shown)
    several = len({machine for machine, _ in rows}) > 1
    return {
        "title": TITLE,
        "text": _TEXT,
        "columns": ["system", *(tables[0][1].columns[at] for at in held)],
        "rows": [[_name(row, machine if several else ""), *(_cell(row.cells[at]) for at in held)]
                 for machine, row in rows],
        "notes": [RULE, slo_note(slos)],
    }  # fmt: skip


def _name(row: Row, machine: str) -> list[str]:
    return [row.labels[0], machine]


def _cell(cell: Cell) -> list[str]:
    """[what the table says, why it says no figure]."""
    return [cell.text(), cell.reason if cell.estimate is None and cell.word != NOT_MEASURED else ""]
