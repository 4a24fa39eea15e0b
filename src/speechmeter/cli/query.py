"""`speechmeter query`: SQL over the records of runs, printed or written to a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from speechmeter.cli.saying import say

if TYPE_CHECKING:
    from speechmeter.store.query import Result


def query(
    words: list[str] = typer.Argument(
        ..., metavar='RUN… ["SELECT …"]', help="Run directories, then one SELECT; without it tables are described."
    ),
    format: str = typer.Option("table", help="table, markdown, csv, latex or json."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Write to FILE.parquet or FILE.csv instead."),
    force: bool = typer.Option(False, "--force", help="Replace the file at -o."),
) -> None:
    """Ask records by SQL: tables records, measurements, estimates and environments."""
    from speechmeter.api import querying
    from speechmeter.cli.console import console_for
    from speechmeter.core.errors import InputError
    from speechmeter.core.plugins import nearest
    from speechmeter.report.numbers import counted
    from speechmeter.report.results import FORMATS

    if format != "table" and format not in FORMATS:
        raise InputError(f"there is no format {format!r}", where="--format", fix=nearest(format, ["table", *FORMATS]))
    runs, sql = _split(words)
    if output is not None:
        if sql is None:
            raise InputError("there is no query to write", where="-o", fix='say what: "SELECT * FROM estimates"')
        count = querying.export(runs, sql, output, force=force)
        say(f"{counted(count, 'row')} · {output}")
        return
    title = "tables" if sql is None else " ".join(sql.split())
    with console_for(sys.stderr).status("reading records"):
        result = _described(runs) if sql is None else querying.query(runs, sql)
    _print(title, result, format)


def _split(words: list[str]) -> tuple[list[str], str | None]:
    """The runs, and the query behind them: what has a space in it and is no directory."""
    last = words[-1]
    if " " not in last.strip() or Path(last).exists():
        return words, None
    if len(words) == 1:
        from speechmeter.core.errors import InputError

        raise InputError("there is no run to ask", where="RUN", fix=f'speechmeter query RUN "{last}"')
    return words[:-1], last


def _described(runs: list[str]) -> Result:
    from speechmeter.store.columns import TABLES
    from speechmeter.store.query import Result
    from speechmeter.store.run_dir import RunDir

    for run in runs:
        RunDir.existing(Path(run))
    rows = [(name, c.name, c.type, c.meaning) for name, columns in TABLES.items() for c in columns]
    return Result(columns=("table", "column", "type", "meaning"), rows=tuple(rows))


def _print(title: str, result: Result, format: str) -> None:
    from speechmeter.cli.console import console_for
    from speechmeter.report.results import FORMATS, result_table
    from speechmeter.report.terminal import draw

    if format != "table":
        say(FORMATS[format](title, result.columns, result.rows, result.notes).rstrip())
        return
    draw([result_table(title, result.columns, result.rows, result.notes)], console_for(sys.stdout))
