"""`speechmeter query` and `speechmeter merge`: SQL over the records of runs, and several runs as one."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from speechmeter.cli.options import TABLE_FORMATS, format_option
from speechmeter.cli.printing import console_for, note, say


def query(
    words: list[str] = typer.Argument(
        ...,
        metavar='RUN… ["SELECT …"]',
        help="Run directories, then one SELECT query. Without a query, the tables and columns are listed.",
    ),
    format: str = format_option(*TABLE_FORMATS),
    output: Path | None = typer.Option(
        None, "-o", "--output", metavar="FILE", help="Write the rows to FILE.parquet or FILE.csv instead."
    ),
    force: bool = typer.Option(False, "--force", help="Replace output files that exist."),
) -> None:
    """Query the records of runs with SQL. The tables are records, measurements, estimates and environments.

    \b
    Example:
      speechmeter query runs/laptop "SELECT subject, seconds, value FROM estimates WHERE metric = 'latency.v1'"
    """
    from speechmeter.api import querying
    from speechmeter.core.errors import InputError
    from speechmeter.report.numbers import counted
    from speechmeter.report.results import FORMATS, result_table
    from speechmeter.report.terminal import draw

    runs, sql = querying.split_query(words)
    if output is not None:
        if sql is None:
            raise InputError("there is no query to write", key="output", fix='add one: "SELECT * FROM estimates"')
        count = querying.export(runs, sql, output, force=force)
        say(f"{counted(count, 'row')} · {output}")
        return
    title = "tables" if sql is None else " ".join(sql.split())
    with console_for(sys.stderr).status("reading records"):
        result = querying.described(runs) if sql is None else querying.query(runs, sql)
    if format == "table":
        draw([result_table(title, result.columns, result.rows, result.notes)], console_for(sys.stdout))
    else:
        say(FORMATS[format](title, result.columns, result.rows, result.notes).rstrip())


def merge(
    runs: list[Path] = typer.Argument(..., metavar="RUN…", help="Run directories, usually of several machines."),
    output: Path = typer.Option(
        ..., "-o", "--output", metavar="DIR", help="The run directory to write. It must not exist."
    ),
) -> None:
    """Merge several runs into one. A record that several runs contain is kept once.

    The command fails if runs contradict each other.

    \b
    Example:
      speechmeter merge runs/laptop runs/server -o runs/all
    """
    from speechmeter.api.runs import merge as merge_runs
    from speechmeter.report.numbers import counted

    made = merge_runs(runs, output)
    for line in made.left_out:
        note(f"left out: {line}")
    for old, new in made.gathered.renamed:
        note(
            f"the runs contain two machines named {old!r} (or one machine before and after a change); "
            f"in the merged run, one of them is named {new!r}"
        )
    hosts = sorted({record.host for record in made.gathered.records})
    same = f", {counted(made.gathered.duplicates, 'duplicate')} left out" if made.gathered.duplicates else ""
    count = counted(len(made.gathered.records), "record")
    say(f"{count} of {counted(len(hosts), 'machine')} ({', '.join(hosts)}){same} · {output}")
    say(f"to see it: speechmeter show {output}")
