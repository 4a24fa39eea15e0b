"""Tables in the terminal, with rich."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from speechmeter.report.tables import Cell, Table

_STYLES = {
    "skipped": "dim",
    "unavailable": "dim",
    "oom": "red",
    "timeout": "red",
    "crashed": "red",
    "error": "red",
}


def draw(tables: Sequence[Table], console: Console, *, sci: bool = False) -> None:
    """Print every table with its notes."""
    for table in tables:
        console.print(Text(table.title, style="bold"), soft_wrap=True)
        console.print(_rich(table, sci, console.width))
        for note in table.notes:
            style = "yellow" if note.startswith("warning") else "dim"
            console.print(Text(f"  {note}", style=style), soft_wrap=True)
        console.print()


def _rich(table: Table, sci: bool, width: int) -> RichTable:
    headings = [*table.labels, *table.columns]
    rows = [[*map(Text, row.labels), *(_cell(cell, sci) for cell in row.cells)] for row in table.rows]
    drawn = RichTable(header_style="bold")
    for place, heading in enumerate(headings):
        drawn.add_column(Text(heading), justify="right" if place >= len(table.labels) else "left", overflow="fold")
    if rows and _fits(headings, rows, width):
        # rich lays out each cell: a column of lines is one cell, where nothing has to fold (3 × faster on large grids)
        rows = [[Text("\n").join(column) for column in zip(*rows, strict=True)]]
    for row in rows:
        drawn.add_row(*row)
    return drawn


def _fits(headings: Sequence[str], rows: Sequence[Sequence[Text]], width: int) -> bool:
    columns = zip(*([cell.plain for cell in row] for row in rows), strict=True)
    widest = [max(map(cell_len, (heading, *column))) for heading, column in zip(headings, columns, strict=True)]
    return sum(widest) + 3 * len(widest) + 1 <= width


def _cell(cell: Cell, sci: bool) -> Text:
    return Text(cell.text(sci=sci), style=_STYLES.get(cell.word, ""))
