"""Tables in the terminal, with rich."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

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
        console.print(_rich(table, sci))
        for note in table.notes:
            style = "yellow" if note.startswith("warning") else "dim"
            console.print(f"  {note}", style=style, markup=False, highlight=False, soft_wrap=True)
        console.print()


def _rich(table: Table, sci: bool) -> RichTable:
    drawn = RichTable(title=escape(table.title), title_justify="left", title_style="bold", header_style="bold")
    for label in table.labels:
        drawn.add_column(escape(label), overflow="fold")
    for column in table.columns:
        drawn.add_column(escape(column), justify="right", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(escape(label) for label in row.labels), *(_cell(cell, sci) for cell in row.cells))
    return drawn


def _cell(cell: Cell, sci: bool) -> str:
    text = escape(cell.text(sci=sci))
    style = _STYLES.get(cell.word)
    return f"[{style}]{text}[/{style}]" if style else text
