"""Tables in the terminal, with rich. Whatever its width, no number is broken over two lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from speechmeter.core.printable import one_line
from speechmeter.report.layout import Block, blocks, wrapped
from speechmeter.report.tables import Cell, Table

_STYLES = {
    "skipped": "dim",
    "unavailable": "dim",
    "oom": "red",
    "timeout": "red",
    "crashed": "red",
    "error": "red",
}
_INDENT = "  "


def draw(tables: Sequence[Table], console: Console, *, sci: bool = False) -> None:
    """Print every table with its notes."""
    for table in tables:
        _say(Text(one_line(table.title), style="bold"), console)
        rows = [
            [*(Text(one_line(label)) for label in row.labels), *(_cell(cell, sci) for cell in row.cells)]
            for row in table.rows
        ]
        draw_rows(
            [one_line(heading) for heading in (*table.labels, *table.columns)], rows, console, labels=len(table.labels)
        )
        for caveat in table.caveats:
            _say(Text(one_line(caveat)), console, _INDENT)
        for note in table.notes:
            style = "yellow" if note.startswith("warning") else "dim"
            _say(Text(one_line(note), style=style), console, _INDENT)
        console.print()


def draw_rows(
    headings: Sequence[str], rows: Sequence[Sequence[Text]], console: Console, *, labels: int, header: bool = True
) -> None:
    """Print rows below headings: as one table, as several with the labels in each, or one cell a line.

    The first so many columns are labels, on the left; the others are figures, on the right.
    """
    columns = [[heading, *(row[place].plain for row in rows)] for place, heading in enumerate(headings)]
    found = blocks(columns, labels, console.width)
    if found is None:
        _list(headings, rows, console, labels)
        return
    for block in found:
        console.print(_rich(headings, rows, block, labels, header=header))


def _say(text: Text, console: Console, indent: str = "") -> None:
    """One line in a file, where nobody's screen is known; in a terminal as many as it takes."""
    if console.is_terminal:
        _say_within(text, console, indent)
    else:
        console.print(Text(indent) + text, soft_wrap=True)


def _lines(text: Text, width: int) -> list[Text]:
    return [text[start:end] if end > start else Text() for start, end in wrapped(text.plain, width)]


def _rich(
    headings: Sequence[str], rows: Sequence[Sequence[Text]], block: Block, labels: int, *, header: bool
) -> RichTable:
    drawn = RichTable(header_style="bold", show_header=header)
    for column, width in zip(block.columns, block.widths, strict=True):
        heading = Text("\n").join(_lines(Text(headings[column]), width))
        drawn.add_column(heading, justify="right" if column >= labels else "left", no_wrap=True, vertical="top")
    cells = [
        [_lines(row[column], width) for column, width in zip(block.columns, block.widths, strict=True)] for row in rows
    ]
    if rows and all(len(lines) == 1 for row in cells for lines in row):
        # rich lays out each cell: a column of lines is one cell, where nothing has to fold (3 × faster on large grids)
        drawn.add_row(*(Text("\n").join(lines[0] for lines in column) for column in zip(*cells, strict=True)))
        return drawn
    drawn.show_lines = True
    for row in cells:
        drawn.add_row(*(Text("\n").join(lines) for lines in row))
    return drawn


def _list(headings: Sequence[str], rows: Sequence[Sequence[Text]], console: Console, labels: int) -> None:
    """Each row as its labels, and below them a line for each figure; of labels alone, the first leads."""
    leading = labels if labels < len(headings) else 1
    for row in rows:
        for text in filter(None, row[:leading]):
            _say_within(Text(text.plain, style="bold"), console)
        for heading, text in zip(headings[leading:], row[leading:], strict=True):
            _say_within(Text(f"{heading}: " if heading else "") + text, console, _INDENT)


def _say_within(text: Text, console: Console, indent: str = "") -> None:
    for line in _lines(text, console.width - len(indent)):
        console.print(Text(indent) + line, soft_wrap=True)


def _cell(cell: Cell, sci: bool) -> Text:
    return Text(one_line(cell.text(sci=sci)), style=_STYLES.get(cell.word, ""))
