"""Tables as Markdown, CSV, LaTeX and JSON. Names from plans are escaped for each of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest
from speechmeter.core.printable import one_line
from speechmeter.report.escaping import csv_text as safe_csv
from speechmeter.report.escaping import json_of, latex_text, markdown_text
from speechmeter.report.tables import Cell, Table
from speechmeter.report.terminal import draw

_TABLE_WIDTH = 120
"""Columns of a table that is not drawn for a terminal of known width."""


def markdown(tables: Sequence[Table], *, sci: bool = False) -> str:
    """GitHub tables, notes below each."""
    return "\n".join(_markdown(table, sci) for table in tables)


def _markdown(table: Table, sci: bool) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(map(markdown_text, cells)) + " |"

    lines = [f"### {markdown_text(table.title)}", "", row([*table.labels, *table.columns])]
    lines.append("|" + "|".join([":--"] * len(table.labels) + ["--:"] * len(table.columns)) + "|")
    lines += [row([*r.labels, *(cell.text(sci=sci) for cell in r.cells)]) for r in table.rows]
    return "\n".join([*lines, "", *(f"- {markdown_text(note)}" for note in (*table.caveats, *table.notes)), ""])


def folded(head: str, table: Table) -> str:
    """A comment for GitHub: the outcome in one line, which is Markdown, and the table folded below it."""
    return f"{head}\n\n<details><summary>All figures</summary>\n\n{markdown([table])}\n</details>"


def csv_text(tables: Sequence[Table], *, sci: bool = False) -> str:
    """One line a figure: table, labels, column, what is printed, and the figure with its interval unrounded."""
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
                for one in cell.figures:
                    text = one.text(sci=sci) if one.estimate is not None else safe_csv(one.text(sci=sci))
                    named = map(safe_csv, (table.title, " / ".join(row.labels), column))
                    writer.writerow([*named, text, *_figures(one)])
    return out.getvalue()


def _figures(cell: Cell) -> list[Any]:
    found = cell.estimate
    if found is None:
        return ["", "", "", "", "", "", "", safe_csv(cell.reason)]
    bounds = [found.value, found.low, found.high]
    numbers = ["" if bound is None else repr(bound) for bound in bounds]
    return [safe_csv(found.metric.id), safe_csv(found.metric.unit), *numbers, found.rounds, found.samples_per_round, ""]


_PACKAGES = r"% needs \usepackage{booktabs,textcomp}"


def latex(tables: Sequence[Table], *, sci: bool = False) -> str:
    """booktabs tables, and the packages that they need. Caveats are printed, other notes are comments."""
    return "\n".join([_PACKAGES, *(_latex(table, sci) for table in tables)])


def _latex(table: Table, sci: bool) -> str:
    columns = "l" * len(table.labels) + "r" * len(table.columns)

    def row(cells: Sequence[str]) -> str:
        text = " & ".join(latex_text(cell) for cell in cells) + r" \\"
        # behind the end of a row these would be its options
        return f"{{}}{text}" if text.lstrip().startswith(("[", "*")) else text

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(table.title)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            row([*table.labels, *table.columns]),
            r"\midrule",
            *(row([*r.labels, *(cell.text(sci=sci) for cell in r.cells)]) for r in table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par{{\footnotesize {latex_text(' '.join(caveat.split()))}}}" for caveat in table.caveats),
            *(f"% {' '.join(one_line(note).split())}" for note in table.notes),
            r"\end{table}",
            "",
        ]
    )


def json_text(tables: Sequence[Table], *, sci: bool = False) -> str:
    """The tables as data: every cell with its text, its figure and its reason."""
    data = [
        {
            "title": table.title,
            "labels": table.labels,
            "columns": table.columns,
            "notes": (*table.caveats, *table.notes),
            "rows": [{"labels": row.labels, "cells": [_cell(cell, sci) for cell in row.cells]} for row in table.rows],
        }
        for table in tables
    ]
    return json_of(data, depth=3)  # a row is a line


def _cell(cell: Cell, sci: bool) -> dict[str, Any]:
    if cell.plus is not None:
        return {"text": cell.text(sci=sci), "figures": [_cell(one, sci) for one in cell.figures]}
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


TABLE = "table"
"""The format of the terminal."""
FORMATS: dict[str, Callable[..., str]] = {
    "markdown": markdown,
    "csv": csv_text,
    "latex": latex,
    "json": json_text,
}
"""Text formats by name, beside `table`."""


ALL_FORMATS = (TABLE, *FORMATS)


def check_format(format: str, formats: Sequence[str] = ALL_FORMATS) -> None:
    """Raise InputError for a format that is none of these. Every command and function that takes one asks here."""
    if format not in formats:
        raise InputError(f"there is no format {format!r}", key="format", fix=nearest(format, list(formats)))


def formatted(tables: Sequence[Table], format: str, *, sci: bool = False) -> str:
    """The tables in a format by name; `table` is drawn as for a terminal of 120 columns. Raises as `check_format`."""
    check_format(format)
    if format != TABLE:
        return FORMATS[format](tables, sci=sci)
    out = io.StringIO()
    draw(tables, Console(file=out, width=_TABLE_WIDTH, color_system=None), sci=sci)
    return out.getvalue()
