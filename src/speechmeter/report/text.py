"""Tables as Markdown, CSV, LaTeX and JSON. Names from plans are escaped for each of them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from speechmeter.report.tables import Cell, Table

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "×": r"$\times$", "µ": r"\textmu{}",
    "≥": r"$\geq$", "≤": r"$\leq$", "–": "--", "·": r"$\cdot$", "Δ": r"$\Delta$", "…": r"\ldots{}", "−": "$-$",
    "→": r"$\rightarrow$", "°": r"\textdegree{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "\n": " ",
}  # fmt: skip


def markdown(tables: Sequence[Table], *, sci: bool = False) -> str:
    """GitHub tables, notes below each."""
    return "\n".join(_markdown(table, sci) for table in tables)


def _markdown(table: Table, sci: bool) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    lines = [f"### {table.title}", "", row([*table.labels, *table.columns])]
    lines.append("|" + "|".join([":--"] * len(table.labels) + ["--:"] * len(table.columns)) + "|")
    lines += [row([*r.labels, *(cell.text(sci=sci) for cell in r.cells)]) for r in table.rows]
    return "\n".join([*lines, "", *(f"- {note}" for note in table.notes), ""])


def folded(head: str, table: Table) -> str:
    """A comment for GitHub: the outcome in one line, the table folded below it."""
    return f"{head}\n\n<details><summary>All figures</summary>\n\n{markdown([table])}\n</details>"


def csv_text(tables: Sequence[Table], *, sci: bool = False) -> str:
    """One line a cell: table, labels, column, what is printed, and the figure with its interval unrounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "table",
            "row",
            "column",
            "text",
            "metric",
            "unit",
            "value",
            "low",
            "high",
            "rounds",
            "samples",
            "reason",
        ]
    )
    for table in tables:
        for row in table.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                writer.writerow([table.title, " / ".join(row.labels), column, cell.text(sci=sci), *_figures(cell)])
    return out.getvalue()


def _figures(cell: Cell) -> list[Any]:
    found = cell.estimate
    if found is None:
        return ["", "", "", "", "", "", "", cell.reason]
    bounds = [found.value, found.low, found.high]
    numbers = ["" if bound is None else repr(bound) for bound in bounds]
    return [found.metric.id, found.metric.unit, *numbers, found.rounds, found.samples_per_round, ""]


def latex(tables: Sequence[Table], *, sci: bool = False) -> str:
    """booktabs tables; needs \\usepackage{booktabs} and textcomp."""
    return "\n".join(_latex(table, sci) for table in tables)


def _latex(table: Table, sci: bool) -> str:
    columns = "l" * len(table.labels) + "r" * len(table.columns)

    def row(cells: Sequence[str]) -> str:
        text = " & ".join(_latex_escape(cell) for cell in cells) + r" \\"
        return f"{{}}{text}" if text[0] in "[*" else text  # behind the end of a row these would be its options

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_escape(table.title)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            row([*table.labels, *table.columns]),
            r"\midrule",
            *(row([*r.labels, *(cell.text(sci=sci) for cell in r.cells)]) for r in table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            *(f"% {' '.join(note.split())}" for note in table.notes),
            r"\end{table}",
            "",
        ]
    )


def _latex_escape(text: str) -> str:
    """Text as LaTeX prints it, a minus before a number as one."""
    minus = re.sub(r"(?<!\w)-(?=\d)", "−", text)
    return "".join(_LATEX.get(char, char) for char in minus)


def json_text(tables: Sequence[Table], *, sci: bool = False) -> str:
    """The tables as data: every cell with its text, its figure and its reason."""
    data = [
        {
            "title": table.title,
            "columns": table.columns,
            "notes": table.notes,
            "rows": [{"labels": row.labels, "cells": [_cell(cell, sci) for cell in row.cells]} for row in table.rows],
        }
        for table in tables
    ]
    return json.dumps(data, ensure_ascii=False, indent=2)


def _cell(cell: Cell, sci: bool) -> dict[str, Any]:
    found = cell.estimate
    data: dict[str, Any] = {"text": cell.text(sci=sci)}
    if found is None:
        return {**data, "reason": cell.reason}
    return {
        **data,
        "metric": found.metric.id,
        "unit": found.metric.unit,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "rounds": found.rounds,
        "samples": found.samples_per_round,
        **({"verdict": cell.verdict} if cell.verdict else {}),
    }


FORMATS: dict[str, Callable[..., str]] = {
    "markdown": markdown,
    "csv": csv_text,
    "latex": latex,
    "json": json_text,
}
"""Text formats by name; `table` is the terminal's."""
