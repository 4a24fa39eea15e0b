"""`speechmeter rerun`: does a figure hold, here and now?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from speechmeter.api.rerunning import Rerun

_EXITS = {"reproduced": 0, "not reproduced": 1, "cannot tell": 3}


def rerun(
    run: str = typer.Argument(..., help="A run, or some of it: RUN@host=pi."),
    record: str = typer.Argument(..., help="The id of a case, or the beginning of it."),
    metric: list[str] | None = typer.Option(None, help="latency, memory, flops, …; repeatable. Default: all it has."),
    min_effect: str = typer.Option("5%", help="The smallest change that counts."),
    rounds: int | None = typer.Option(None, min=1, help="Fresh processes; default as many as the run has, at least 2."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Run directory; default runs/<time>-rerun-<id>."),
    trust: bool = typer.Option(False, "--trust", help="Run code that the record names."),
) -> None:
    """Measure a case of a run again with its own protocol. Exit 0 reproduced, 1 not reproduced, 3 cannot tell."""
    from speechmeter.api.comparing import select, share
    from speechmeter.api.rerunning import Again
    from speechmeter.api.rerunning import rerun as measure_again
    from speechmeter.cli.console import console_for
    from speechmeter.cli.progress import progress

    how = Again(
        metrics=metric or (), min_effect=share(min_effect, "--min-effect"), rounds=rounds, output=output, trust=trust
    )
    with progress(console_for(sys.stderr)) as watch:
        made = measure_again(select(run), record, how, watch)
    _print(made, min_effect)
    if _EXITS[made.outcome]:
        raise typer.Exit(_EXITS[made.outcome])


def _print(made: Rerun, min_effect: str) -> None:
    from speechmeter.cli.console import console_for
    from speechmeter.report.comparison import comparison_table
    from speechmeter.report.numbers import counted
    from speechmeter.report.terminal import draw

    alike = "the environment is the same in everything that is recorded"
    count = f"{counted(len(made.differences), 'difference')} between the environments, BASE is the run:"
    notes = [count, *made.differences] if made.differences else [alike]
    draw([comparison_table(made.comparison.verdicts, notes, min_effect)], console_for(sys.stdout))
    typer.echo(f"{made.outcome}: {made.case.id} {made.case.label} · {made.path}")
