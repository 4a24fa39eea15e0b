"""`speechmeter rerun`: does a figure hold, here and now?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from speechmeter.cli.saying import say

if TYPE_CHECKING:
    from speechmeter.api.rerunning import Rerun

_FORMATS = ("table", "markdown", "json")
_EXITS = {"reproduced": 0, "not reproduced": 1, "cannot tell": 3}


def rerun(
    run: str = typer.Argument(..., help="A run, or some of it: RUN@host=pi."),
    record: str = typer.Argument(..., help="The id of a case, or the beginning of it."),
    metric: list[str] | None = typer.Option(None, help="latency, memory, flops, …; repeatable. Default: all it has."),
    min_effect: str = typer.Option("5%", help="The smallest change that counts."),
    rounds: int | None = typer.Option(None, min=1, help="Fresh processes; default as many as the run has, at least 2."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Run directory; default runs/<time>-rerun-<id>."),
    trust: bool = typer.Option(False, "--trust", help="Run code that the record names."),
    format: str = typer.Option("table", help="table, markdown or json."),
) -> None:
    """Measure a case of a run again with its own protocol. Exit 0 reproduced, 1 not reproduced, 3 cannot tell."""
    from speechmeter.api.comparing import select, share
    from speechmeter.api.rerunning import Again
    from speechmeter.api.rerunning import rerun as measure_again
    from speechmeter.cli.console import console_for
    from speechmeter.cli.progress import progress
    from speechmeter.core.errors import InputError
    from speechmeter.core.plugins import nearest

    if format not in _FORMATS:
        raise InputError(f"there is no format {format!r}", where="--format", fix=nearest(format, list(_FORMATS)))
    how = Again(
        metrics=metric or (), min_effect=share(min_effect, "--min-effect"), rounds=rounds, output=output, trust=trust
    )
    with progress(console_for(sys.stderr)) as watch:
        made = measure_again(select(run), record, how, watch)
    _print(made, min_effect, format)
    if _EXITS[made.outcome]:
        raise typer.Exit(_EXITS[made.outcome])


def _print(made: Rerun, min_effect: str, format: str) -> None:
    from speechmeter.cli.console import console_for
    from speechmeter.report.comparison import comparison_json, comparison_table
    from speechmeter.report.lines import environment_notes, ratios
    from speechmeter.report.terminal import draw
    from speechmeter.report.text import markdown

    verdicts = made.comparison.verdicts
    parts = [f"{made.outcome}: {made.case.id} {made.case.label}", ratios(verdicts), str(made.path)]
    last = " · ".join(part for part in parts if part)
    notes = environment_notes(made.differences, *made.states)
    table = comparison_table(made.comparison.family, notes, min_effect)
    if format == "json":
        say(comparison_json(made.comparison.family, [*notes, last]))
        return
    if format == "markdown":
        say(markdown([table]))
    else:
        draw([table], console_for(sys.stdout))
    say(last)
