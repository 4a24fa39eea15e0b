"""Text of strangers made safe to print: nothing in it steers a terminal, reorders a line, ends it, or is computed."""

from __future__ import annotations

import re

_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
"""C0 but for tab and line feed, C1, and halves of surrogate pairs, which no encoder takes."""
_REORDERING = "\u202a-\u202e\u2066-\u2069"
"""Embeddings, overrides and isolates: behind one of them a terminal shows a whole row in another order. The marks that
Hebrew and Arabic text has (U+200E, U+200F) and the joiners of Indic scripts change one word alone and stay."""
_ENDS = "\u2028\u2029"
REORDERS = f"[{_REORDERING}{_ENDS}]"
"""What reorders or ends a line. For `re` and for DuckDB alike."""
_NO_TEXT = re.compile(f"[{_CONTROL}]")
_UNSAFE = re.compile(f"[{_CONTROL}{_REORDERING}{_ENDS}]")
_BREAKS = re.compile(r"[\t\n\u2028\u2029]+")
MARK = "\N{REPLACEMENT CHARACTER}"
"""Takes the place of what is not shown."""
FORMULA = r"^[\s" + "\ufeff\u200b-\u200f\u2060" + r"]*[=+@\-\t\r\n＝＋＠－]"
"""Words that a spreadsheet takes for a formula when it opens a CSV file. For `re` and for DuckDB alike."""
NUMBER = r"^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$"
"""What begins like a formula and is a number."""


def only_text(text: str) -> str:
    """The same with a mark in the place of control characters, as records are read."""
    return _NO_TEXT.sub(MARK, text)


def printable(text: str) -> str:
    """The same with a mark in the place of what would steer a terminal or reorder a line; line ends and tabs stay."""
    return text if text.isprintable() else _UNSAFE.sub(MARK, text)


def one_line(text: str) -> str:
    """`printable`, and a space in the place of line ends and tabs: what a cell or a title may be."""
    return text if text.isprintable() else printable(_BREAKS.sub(" ", text))


def escaped_json(text: str) -> str:
    """JSON with the same meaning in which nothing steers, reorders or ends a line: such characters become escapes."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def no_formula(text: str) -> str:
    """The same with an apostrophe before words that a spreadsheet would compute; numbers stay numbers."""
    return f"'{text}" if re.search(FORMULA, text) and not re.fullmatch(NUMBER, text) else text
