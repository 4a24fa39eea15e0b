"""Words from plans and records, made safe for each format of a table: they are shown as they are, and never obeyed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from speechmeter.core.printable import escaped_json, no_formula, one_line

_MARKDOWN = re.compile(
    r"""
    [\\`*~$|]                       # escapes, code, emphasis, struck text, mathematics, columns
    | (?<![^\W_])_ | _(?![^\W_])    # emphasis: not within a word
    | (?<!\S)\#                     # headings, and numbers of issues
    | \](?=[(\[])                   # links
    | ^[-+](?![\d.]) | ^[>=\[]      # lists, quotes, underlines, definitions of links
    | (?<=^\d)[.)](?=\s|$)          # numbered lists
    """,
    re.VERBOSE,
)
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "×": r"$\times$", "µ": r"\textmu{}",
    "≥": r"$\geq$", "≤": r"$\leq$", "–": "--", "·": r"$\cdot$", "Δ": r"$\Delta$", "…": r"\ldots{}", "−": "$-$",
    "→": r"$\rightarrow$", "°": r"\textdegree{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is, in a cell, a heading or a list, and in which no HTML is left.

    What a backslash does not escape everywhere (`<`, entities) is written as an entity.
    """
    escaped = _MARKDOWN.sub(r"\\\g<0>", one_line(text).strip())
    return re.sub(r"&(?=#?\w+;)", "&amp;", escaped).replace("<", "&lt;")


_EXPONENT = re.compile(r"(?:\$(-)\$)?(?<![\w.])(\d(?:\.\d+)?)e([+-]\d+)(?![\w.])")


def latex_text(text: str) -> str:
    """Text as LaTeX prints it, a minus before a number as one, and `9.5e-05` as a power of ten."""
    minus = re.sub(r"(?<!\w)-(?=\d)", "−", one_line(text))
    escaped = "".join(_LATEX.get(char, char) for char in minus)
    return _EXPONENT.sub(lambda found: rf"${found[1] or ''}{found[2]}\times10^{{{int(found[3])}}}$", escaped)


def csv_text(text: str) -> str:
    """Text that is a word to every spreadsheet, in one line."""
    return no_formula(one_line(text))


def json_of(data: Any, *, depth: int | None = None) -> str:
    """Indented JSON that is safe to print: what would steer a terminal is an escape, and means the same.

    What is nested deeper than `depth` is not indented: each such list or mapping is in one line. That is four times as
    fast, as Python has no fast way to indent.
    """
    try:
        return escaped_json(_indented(data, depth))
    except ValueError:
        return escaped_json(_indented(_finite(data), depth))


_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str)
_TREE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str, indent=2)


def _indented(data: Any, depth: int | None, margin: str = "\n") -> str:
    if depth is None:
        return _TREE.encode(data)
    if not depth or not data or not isinstance(data, dict | list | tuple):
        return _LINE.encode(data)
    inner = f"{margin}  "
    if isinstance(data, dict):
        parts = [f"{_LINE.encode(str(key))}: {_indented(one, depth - 1, inner)}" for key, one in data.items()]
        return f"{{{inner}{f',{inner}'.join(parts)}{margin}}}"
    return f"[{inner}{f',{inner}'.join(_indented(one, depth - 1, inner) for one in data)}{margin}]"


def _finite(value: Any) -> Any:
    """The same with null in the place of numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value
