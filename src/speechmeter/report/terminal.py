"""Tables in the terminal, with rich. Whatever its width, no number is broken over two lines.

A table that is too wide gets narrower columns first, then several blocks, then becomes a list. A number and its unit
are one piece, `201 ms`. Text is broken between words, and inside a word only where the word is longer than its column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.box import HEAVY_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
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
Words: TypeAlias = str | Text
"""A cell: text alone, or text with styles."""


def _cells(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


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
    if _cells(text[begin:end]) <= width:
        return [(begin, end)]
    lines: list[Span] = []
    for word in _WORD.finditer(text, begin, end):
        first = lines[-1][0] if lines else begin  # what a tree indents by stays in front of its first word
        if _cells(text[first : word.end()]) <= width:
            lines[-1:] = [(first, word.end())]
        elif _cells(word.group()) <= width:
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
        if lines[-1][0] < index and _cells(text[lines[-1][0] : after]) > width:
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
    return max((_cells(line) for text in texts for line in text.split("\n")), default=0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _FRAME * len(widths) + 1


def _least(texts: Sequence[str], wide: int) -> int:
    """The width at which no number is broken, and no word that is not longer than `wide`."""
    words = max((_cells(word) for text in texts for word in _WORD.findall(text)), default=1)
    numbers = max((_cells(number) for text in texts for number in _NUMBER.findall(text)), default=1)
    return max(numbers, min(words, wide))


def draw(tables: Sequence[Table], console: Console, *, sci: bool = False) -> None:
    """Print every table with its notes."""
    for table in tables:
        _print(Text(one_line(table.title), style="bold"), console)
        draw_rows(_headings(table), _words(table, sci=sci), console, labels=len(table.labels))
        for caveat in table.caveats:
            _print(Text(one_line(caveat)), console, _INDENT)
        for note in table.notes:
            style = "yellow" if note.startswith("warning") else "dim"
            _print(Text(one_line(note), style=style), console, _INDENT)
        console.print()


def one_block(table: Table, console: Console) -> RenderableType | None:
    """The rows of a table as something to print, without title and notes; None where it is too wide."""
    headings, rows = _headings(table), _words(table)
    labels = len(table.labels)
    found = blocks(_columns(headings, rows), labels, console.width)
    return _Grid(headings, rows, found[0], labels, header=True) if found is not None and len(found) == 1 else None


def _headings(table: Table) -> list[str]:
    return [one_line(heading) for heading in (*table.labels, *table.columns)]


def _words(table: Table, *, sci: bool = False) -> list[list[Words]]:
    return [
        [*map(one_line, row.labels), *(_styled(one_line(cell.text(sci=sci)), cell.word) for cell in row.cells)]
        for row in table.rows
    ]


def _styled(text: str, word: str) -> Words:
    return Text(text, style=_STYLES[word]) if word in _STYLES else text


def draw_rows(
    headings: Sequence[str], rows: Sequence[Sequence[Words]], console: Console, *, labels: int, header: bool = True
) -> None:
    """Print rows below headings: as one table, as several with the labels in each, or one cell a line.

    The first so many columns are labels, on the left; the others are figures, on the right.
    """
    found = blocks(_columns(headings, rows), labels, console.width)
    if found is None:
        _list(headings, rows, console, labels)
        return
    for block in found:
        console.print(_Grid(headings, rows, block, labels, header=header), crop=False)


def _columns(headings: Sequence[str], rows: Sequence[Sequence[Words]]) -> list[list[str]]:
    return [[heading, *(_plain(row[index]) for row in rows)] for index, heading in enumerate(headings)]


def _plain(words: Words) -> str:
    return words if isinstance(words, str) else words.plain


def _print(text: Text, console: Console, indent: str = "") -> None:
    """One line in a file, whose reader may have any width; in a terminal as many as it takes."""
    if console.is_terminal:
        _print_within(text, console, indent)
    else:
        console.print(Text(indent) + text, soft_wrap=True)


def _lines(words: Words, width: int) -> list[Words]:
    plain = _plain(words)
    if "\n" not in plain and _cells(plain) <= width:
        return [words]
    return [words[start:end] if end > start else "" for start, end in wrapped(plain, width)]


class _Grid:
    """A table whose cells are broken into lines already.

    Rich's own table lays out every cell anew, which takes 1 s for 5,000 rows; here it takes a tenth of that.
    """

    def __init__(
        self, headings: Sequence[str], rows: Sequence[Sequence[Words]], block: Block, labels: int, *, header: bool
    ) -> None:
        columns = list(zip(block.columns, block.widths, strict=True))
        self._head: list[list[Words]] = [
            [Text(_plain(line), style="bold") for line in _lines(headings[at], w)] for at, w in columns
        ]
        self._rows: list[list[list[Words]]] = [[_lines(row[at], width) for at, width in columns] for row in rows]
        self._header = header
        self._right = [at >= labels for at in block.columns]
        every = [self._head, *self._rows] if header else self._rows
        self._widths = [max((_cells(_plain(line)) for row in every for line in row[at]), default=0)
                        for at in range(len(columns))]  # fmt: skip

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Frame, heading and rows; rows of several lines are ruled."""
        box = HEAVY_HEAD.substitute(options, safe=console.safe_box)
        box = box if self._header else box.get_plain_headed_box()
        widths = [width + 2 for width in self._widths]
        yield Segment(f"{box.get_top(widths)}\n")
        if self._header:
            high = max(len(lines) for lines in self._head)
            head = [[*[""] * (high - len(lines)), *lines] for lines in self._head]
            yield from self._row(head, console, box.head_left, box.head_vertical, box.head_right)
            yield Segment(f"{box.get_row(widths, 'head')}\n")
        ruled = any(len(lines) > 1 for row in self._rows for lines in row)
        for index, row in enumerate(self._rows):
            if ruled and index:
                yield Segment(f"{box.get_row(widths, 'row')}\n")
            yield from self._row(row, console, box.mid_left, box.mid_vertical, box.mid_right)
        yield Segment(f"{box.get_bottom(widths)}\n")

    def _row(
        self, cells: Sequence[Sequence[Words]], console: Console, left: str, between: str, right: str
    ) -> Iterator[Segment]:
        for number in range(max(map(len, cells))):
            parts: list[str] = []  # what needs no style is one segment
            edge = left
            for lines, width, to_right in zip(cells, self._widths, self._right, strict=True):
                words = lines[number] if number < len(lines) else ""
                gap = " " * (width - _cells(_plain(words)))
                parts.append(f"{edge} {gap if to_right else ''}")
                edge = between
                if isinstance(words, str):
                    parts.append(words)
                else:
                    yield Segment("".join(parts))
                    yield from words.render(console)
                    parts = []
                parts.append(" " if to_right else f"{gap} ")
            yield Segment(f"{''.join(parts)}{right}\n")


def _list(headings: Sequence[str], rows: Sequence[Sequence[Words]], console: Console, labels: int) -> None:
    """Each row as its labels, and below them a line for each figure; of labels alone, the first leads."""
    leading = labels if labels < len(headings) else 1
    for row in rows:
        for label in filter(None, map(_plain, row[:leading])):
            _print_within(Text(label, style="bold"), console)
        for heading, words in zip(headings[leading:], row[leading:], strict=True):
            _print_within(Text(f"{heading}: " if heading else "") + words, console, _INDENT)


def _print_within(text: Text, console: Console, indent: str = "") -> None:
    for line in _lines(text, console.width - len(indent)):
        console.print(Text(indent) + line, soft_wrap=True)
