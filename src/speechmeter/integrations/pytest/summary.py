"""The table at the end of a session, from the reports of all workers."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

PROPERTY = "speechmeter"
"""The user property of a test's report that holds its findings: a list of rows of text."""
_HEADINGS = ("metric", "figure", "against", "verdict")
_FILE_WIDTH = 160


def rows_of(reports: Iterable[Any]) -> list[list[str]]:
    """The findings of all tests, each told once though a test has several reports."""
    return [
        row
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, rows in getattr(report, "user_properties", ())
        if name == PROPERTY
        for row in rows
    ]


def summary(rows: Sequence[Sequence[str]], terminal_width: int | None) -> str:
    """The rows as a table like those of Speechmeter's commands, reasons below it; wide where it goes to a file."""
    from rich.console import Console

    from speechmeter.report.tables import Cell, Row, Table
    from speechmeter.report.terminal import draw

    table = Table(
        title="",
        metric=None,
        labels=("case",),
        columns=_HEADINGS,
        rows=tuple(
            Row(labels=(case,), cells=tuple(Cell(word=text) for text in texts[: len(_HEADINGS)]))
            for case, *texts in rows
        ),
        notes=tuple(dict.fromkeys(f"{row[-3]}: {row[-1]}" for row in rows if row[-1])),
    )
    out = io.StringIO()
    draw([table], Console(file=out, width=terminal_width or _FILE_WIDTH))
    return out.getvalue().strip()
