"""`speechmeter compare`: is NEW slower than BASE?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from speechmeter.cli.saying import say

if TYPE_CHECKING:
    from speechmeter.api.comparing import Comparison

_FORMATS = ("table", "markdown", "json", "github")


def compare(
    base: str | None = typer.Argument(None, help="A run, or some of it: RUN@model=a,batch=1.", show_default=False),
    new: str | None = typer.Argument(None, help="Another run, or another part of the same.", show_default=False),
    metric: list[str] | None = typer.Option(None, help="latency, rtf, memory, parameters, modules, …; repeatable."),
    min_effect: str = typer.Option("5%", help="The smallest change that counts."),
    thresholds: Path | None = typer.Option(None, help="YAML file with a smallest effect for each metric."),
    allow_different: bool = typer.Option(
        False, "--allow-different", help="Compare although protocol or machine differ."
    ),
    allow_missing: bool = typer.Option(False, "--allow-missing", help="Accept that NEW lacks cells that BASE has."),
    every_cell: bool = typer.Option(
        False, "--every-cell", help="Judge every cell by itself: no correction for their number, all must be settled."
    ),
    history: str | None = typer.Option(
        None, help="Instead of two runs: level shifts over all runs in this folder, DIR or DIR@model=a."
    ),
    last: int | None = typer.Option(None, min=1, help="With --history: only so many newest runs."),
    format: str = typer.Option("table", help="table, markdown, json or github."),
) -> None:
    """Verdict for each cell: SLOWER, FASTER, SAME, or CANNOT TELL. Exit 1 on a regression, 3 when it cannot tell.

    Many cells are judged together: a regression is one that holds among all of them, and there is none where the
    geometric mean of the change lies within --min-effect.

    With --history: the levels of each case over many runs; exit 1 where the newest shift is a regression,
    or the newest run failed.
    """
    from speechmeter.api.comparing import compare as compare_selections
    from speechmeter.api.comparing import read_thresholds, select, share
    from speechmeter.cli.history import show_history
    from speechmeter.core.errors import InputError
    from speechmeter.core.plugins import nearest

    if format not in _FORMATS:
        raise InputError(f"there is no format {format!r}", where="--format", fix=nearest(format, list(_FORMATS)))
    effect = share(min_effect, "--min-effect")
    wanted = dict.fromkeys(metric or ["latency"], effect)
    if thresholds is not None:
        wanted = {**(wanted if metric else {}), **read_thresholds(thresholds)}
    shown = min_effect if thresholds is None else f"as {thresholds} says"
    _check_sides(base, new, history, last)
    if history is not None:
        code = show_history(history, wanted, last, format, shown)
    else:
        found = compare_selections(
            select(base or ""),
            select(new or ""),
            wanted,
            allow_different=allow_different,
            allow_missing=allow_missing,
            every_cell=every_cell,
        )
        _print(found, format, shown)
        code = found.family.exit_code()
    if code:
        raise typer.Exit(code)


def _check_sides(base: str | None, new: str | None, history: str | None, last: int | None) -> None:
    """Two runs or a folder of them, not both."""
    from speechmeter.core.errors import InputError

    if history is not None and base is not None:
        raise InputError("a history takes no BASE and NEW", where="--history", fix="leave out one of the two")
    if history is None and new is None:
        raise InputError(
            "two runs are compared, or a folder of them", where="compare", fix="give BASE and NEW, or --history DIR"
        )
    if history is None and last is not None:
        raise InputError("only a history has newest runs", where="--last", fix="add --history DIR")


def _print(found: Comparison, format: str, min_effect: str) -> None:
    from speechmeter.cli.console import console_for
    from speechmeter.report.comparison import comparison_json, comparison_table, github
    from speechmeter.report.terminal import draw
    from speechmeter.report.text import markdown

    table = comparison_table(found.family, found.notes, min_effect)
    if format == "json":
        say(comparison_json(found.family, found.notes))
    elif format == "markdown":
        say(markdown([table]))
    elif format == "github":
        say(github(table, found.family))
    else:
        draw([table], console_for(sys.stdout))
