"""`speechmeter recompute`: live metrics made anew from the exchanges of a run."""

from __future__ import annotations

from pathlib import Path

import typer

from speechmeter.cli.options import TABLE_FORMATS, format_option
from speechmeter.cli.printing import print_tables, say


def recompute(
    run: Path = typer.Argument(..., metavar="RUN", help="A run directory with live cases."),
    format: str = format_option(*TABLE_FORMATS),
) -> None:
    """Make the live metrics of a run anew from its stored exchanges, for example after a definition changed.

    Nothing is measured again. The records are written only if a figure changed, and the table says what changed. If an
    exchange file is missing or damaged, it is named, and nothing is written.

    \b
    Example:
      speechmeter recompute runs/live
    """
    from speechmeter.api.recomputing import recompute as made_anew
    from speechmeter.report.numbers import counted

    found = made_anew(run)
    of = f"{counted(found.rounds, 'round')} of {counted(found.cases, 'live case')}"
    if found.changes:
        print_tables([found.table()], format)
    if format == "table":
        say(f"{of} · {counted(len(found.changes), 'value')} changed" if found.changes else f"{of} · nothing changed")
