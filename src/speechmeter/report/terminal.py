"""Tables in the terminal, with rich. Whatever its width, no number is broken over two lines.

A table that is too wide gets narrower columns first, then several blocks, then becomes a list. A number and its unit
are one piece, `201 ms`. Text is broken between words, and inside a word only where the word is longer than its column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from speechmeter.core.printable import one_line
from speechmeter.report.tables import Table

_STYLES = {
    "skipped": "dim",
    "unavailable": "dim",
    "oom": "red",
    "timeout": "red",
    "crashed": "red",
    "error": "red",
}
_INDENT = "  "
_UNIT = r"(?:%|[A-Za-zµ]{1,5}(?:/s)?)"
_NUMBER = re.compile(rf"[±+\-−≥≤(\[]*\d(?:[\d.,]*\d)?(?:[eE][+-]?\d+)?[%\])]*(?: {_UNIT}(?![\w.·:]))?(?: × \d+)?,?")
_WORD = re.compile(rf"(?:{_NUMBER.pattern}|\S)+")
_FRAME = 3
"""Cells that the frame takes for each column; one more for the whole table."""
_WIDE, _NARROW = 24, 12
"""A column need not be wider than this for the sake of a long word; nor labels, where room is scarce."""

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some columns of a table beside its labels, by their index, with the width of each."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]


def wrapped(text: str, width: int) -> list[Span]:
    """Lines of at most `width` cells, as (start, end) in the text. Only a number that is wider is longer."""
    lines: list[Span] = []
    start = 0
    for line in text.split("\n"):
        lines += _wrapped_line(text, start, start + len(line), width)
        start += len(line) + 1
    return lines


def _wrapped_line(text: str, begin: int, end: int, width: int) -> list[Span]:
    if cell_len(text[begin:end]) <= width:
        return [(begin, end)]
    lines: list[Span] = []
    for word in _WORD.finditer(text, begin, end):
        first = lines[-1][0] if lines else begin  # what a tree indents by stays in front of its first word
        if cell_len(text[first : word.end()]) <= width:
            lines[-1:] = [(first, word.end())]
        elif cell_len(word.group()) <= width:
            lines.append((word.start(), word.end()))
        else:
            lines += _broken(text, word.start(), word.end(), width)
    return lines or [(begin, begin)]


def _broken(text: str, begin: int, end: int, width: int) -> list[Span]:
    """A long word in pieces; numbers in it stay whole."""
    lines = [(begin, begin)]
    index = begin
    while index < end:
        number = _NUMBER.match(text, index, end)
        after = number.end() if number else index + 1
        if lines[-1][0] < index and cell_len(text[lines[-1][0] : after]) > width:
            lines.append((index, index))
        lines[-1] = (lines[-1][0], after)
        index = after
    return lines


def blocks(columns: Sequence[Sequence[str]], labels: int, width: int) -> list[Block] | None:
    """How to draw columns of texts, each below its heading; every block repeats the first so many, which are labels.

    None where not even the labels and one column fit side by side: the rows are then a list.
    """
    natural = [_natural(texts) for texts in columns]
    everything = tuple(range(len(columns)))
    if _total(natural) <= width:
        return [Block(columns=everything, widths=tuple(natural))]
    wanted = _Wanted(natural=natural, cells=[_natural(texts[1:]) for texts in columns], labels=labels)
    least = [_least(texts, _WIDE) for texts in columns]
    if _total(least) <= width:
        return [_grown(everything, least, wanted, width)]
    for narrow in (least, [_least(texts, _NARROW) for texts in columns[:labels]] + least[labels:]):
        groups = _groups(narrow, labels, width)
        if groups is not None:
            return [_grown(group, narrow, wanted, width) for group in groups]
    return None


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """The widths at which nothing is wrapped: with the headings, and of the cells alone."""

    natural: Sequence[int]
    cells: Sequence[int]
    labels: int


def _groups(least: Sequence[int], labels: int, width: int) -> list[tuple[int, ...]] | None:
    """The columns of each block, every one with the labels in front; None where a column does not fit beside them."""
    first = tuple(range(labels))
    if labels == len(least):
        return [first] if _total(least) <= width else None
    groups: list[tuple[int, ...]] = []
    for column in range(labels, len(least)):
        if groups and _total([least[index] for index in (*groups[-1], column)]) <= width:
            groups[-1] = (*groups[-1], column)
        elif _total([least[index] for index in (*first, column)]) <= width:
            groups.append((*first, column))
        else:
            return None
    return groups


def _grown(group: Sequence[int], least: Sequence[int], wanted: _Wanted, width: int) -> Block:
    """What room is left goes to the figures, then to the labels, then to headings."""
    widths = {column: least[column] for column in group}
    figures = [column for column in group if column >= wanted.labels]
    names = [column for column in group if column < wanted.labels]
    for chosen, limits in ((figures, wanted.cells), (names, wanted.natural), (figures, wanted.natural)):
        left = width - _total(list(widths.values()))
        while left > 0 and (short := [column for column in chosen if widths[column] < limits[column]]):
            widths[min(short, key=lambda column: widths[column])] += 1
            left -= 1
    return Block(columns=tuple(group), widths=tuple(widths[column] for column in group))


def _natural(texts: Sequence[str]) -> int:
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _FRAME * len(widths) + 1


def _least(texts: Sequence[str], wide: int) -> int:
    """The width at which no number is broken, and no word that is not longer than `wide`."""
    words = max((cell_len(word) for text in texts for word in _WORD.findall(text)), default=1)
    numbers = max((cell_len(number) for text in texts for number in _NUMBER.findall(text)), default=1)
    return max(numbers, min(words, wide))


def draw(tables: Sequence[Table], console: Console, *, sci: bool = False) -> None:
    """Print every table with its notes."""
    for table in tables:
        _print(Text(one_line(table.title), style="bold"), console)
        rows = [
            [
                *(Text(one_line(label)) for label in row.labels),
                *(Text(one_line(cell.text(sci=sci)), style=_STYLES.get(cell.word, "")) for cell in row.cells),
            ]
            for row in table.rows
        ]
        draw_rows(
            [one_line(heading) for heading in (*table.labels, *table.columns)], rows, console, labels=len(table.labels)
        )
        for caveat in table.caveats:
            _print(Text(one_line(caveat)), console, _INDENT)
        for note in table.notes:
            style = "yellow" if note.startswith("warning") else "dim"
            _print(Text(one_line(note), style=style), console, _INDENT)
        console.print()


def draw_rows(
    headings: Sequence[str], rows: Sequence[Sequence[Text]], console: Console, *, labels: int, header: bool = True
) -> None:
    """Print rows below headings: as one table, as several with the labels in each, or one cell a line.

    The first so many columns are labels, on the left; the others are figures, on the right.
    """
    columns = [[heading, *(row[index].plain for row in rows)] for index, heading in enumerate(headings)]
    found = blocks(columns, labels, console.width)
    if found is None:
        _list(headings, rows, console, labels)
        return
    for block in found:
        console.print(_rich(headings, rows, block, labels, header=header))


def _print(text: Text, console: Console, indent: str = "") -> None:
    """One line in a file, whose reader may have any width; in a terminal as many as it takes."""
    if console.is_terminal:
        _print_within(text, console, indent)
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
            _print_within(Text(text.plain, style="bold"), console)
        for heading, text in zip(headings[leading:], row[leading:], strict=True):
            _print_within(Text(f"{heading}: " if heading else "") + text, console, _INDENT)


def _print_within(text: Text, console: Console, indent: str = "") -> None:
    for line in _lines(text, console.width - len(indent)):
        console.print(Text(indent) + line, soft_wrap=True)
