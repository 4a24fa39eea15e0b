"""`speechmeter compare`: is NEW slower than BASE?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from speechmeter.api.comparing import Comparison

_FORMATS = ("table", "markdown", "json", "github")


def compare(
    base: str = typer.Argument(..., help="A run, or some of it: RUN@model=a,batch=1."),
    new: str = typer.Argument(..., help="Another run, or another part of the same."),
    metric: list[str] | None = typer.Option(None, help="latency, rtf, memory, parameters, modules, …; repeatable."),
    min_effect: str = typer.Option("5%", help="The smallest change that counts."),
    thresholds: Path | None = typer.Option(None, help="YAML file with a smallest effect for each metric."),
    allow_different: bool = typer.Option(
        False, "--allow-different", help="Compare although protocol or machine differ."
    ),
    format: str = typer.Option("table", help="table, markdown, json or github."),
) -> None:
    """Verdict for each cell: SLOWER, FASTER, SAME, or CANNOT TELL. Exit 1 on a regression, 3 when it cannot tell."""
    from speechmeter.analysis.compare import overall_exit
    from speechmeter.api.comparing import compare as compare_selections
    from speechmeter.api.comparing import read_thresholds, select, share
    from speechmeter.core.errors import InputError
    from speechmeter.core.plugins import nearest

    if format not in _FORMATS:
        raise InputError(f"there is no format {format!r}", where="--format", fix=nearest(format, list(_FORMATS)))
    effect = share(min_effect, "--min-effect")
    wanted = dict.fromkeys(metric or ["latency"], effect)
    if thresholds is not None:
        wanted = {**(wanted if metric else {}), **read_thresholds(thresholds)}
    found = compare_selections(select(base), select(new), wanted, allow_different=allow_different)
    shown = min_effect if thresholds is None else f"as {thresholds} says"
    _print(found, format, shown)
    code = overall_exit(found.verdicts)
    if code:
        raise typer.Exit(code)


def _print(found: Comparison, format: str, min_effect: str) -> None:
    from speechmeter.cli.console import console_for
    from speechmeter.report.comparison import comparison_json, comparison_table, github
    from speechmeter.report.terminal import draw
    from speechmeter.report.text import markdown

    table = comparison_table(found.verdicts, found.notes, min_effect)
    if format == "json":
        typer.echo(comparison_json(found.verdicts, found.notes))
    elif format == "markdown":
        typer.echo(markdown([table]))
    elif format == "github":
        typer.echo(github(table, found.verdicts))
    else:
        draw([table], console_for(sys.stdout))
