"""`speechmeter rerun`: does a figure hold, here and now?"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from speechmeter.cli.options import format_option
from speechmeter.cli.printing import console_for, print_tables, say

_EXITS = {"reproduced": 0, "not reproduced": 1, "cannot tell": 3}


def rerun(
    run: str = typer.Argument(..., metavar="RUN", help="A run directory, or a part of it: RUN@host=pi."),
    record: str = typer.Argument(..., metavar="CASE", help="The id of a case, or the beginning of it."),
    metric: list[str] | None = typer.Option(
        None,
        "--metric",
        metavar="METRIC",
        help="What to compare: latency, memory, flops, …; repeatable. "
        "The default is latency, memory, FLOPs, parameters, WER and BLEU, as far as the case has them.",
    ),
    min_effect: str = typer.Option(
        "5%",
        "--min-effect",
        metavar="SHARE",
        help="The smallest change that counts: a percentage such as 5%, or for live delays also a time such as 30ms.",
    ),
    rounds: int | None = typer.Option(
        None,
        "--rounds",
        metavar="N",
        min=1,
        help="Number of fresh processes. The default is as many as the run has, at least 2.",
    ),
    output: Path | None = typer.Option(
        None, "-o", "--output", metavar="DIR", help="The run directory to write. The default is runs/<time>-rerun-<id>."
    ),
    trust: bool = typer.Option(
        False, "--trust", help="Allow the run to start the Python code and commands that its record names."
    ),
    format: str = format_option("table", "markdown", "json"),
) -> None:
    """Measure a case of a run again, in the same way, and compare.

    The exit code is 0 if the figures are reproduced, 1 if they are not, and 3 if the command cannot tell.

    \b
    Example:
      speechmeter rerun runs/laptop 3f2a
    """
    from speechmeter.api.comparing import select, smallest_effect
    from speechmeter.api.progress import progress
    from speechmeter.api.rerunning import Again
    from speechmeter.api.rerunning import rerun as measure_again
    from speechmeter.report.comparison import comparison_json, comparison_table
    from speechmeter.report.lines import environment_notes, ratios

    how = Again(
        metrics=metric or (),
        min_effect=smallest_effect(min_effect, key="min_effect"),
        rounds=rounds,
        output=output,
        trust=trust,
    )
    with progress(console_for(sys.stderr)) as watch:
        made = measure_again(select(run), record, how, watch)
    parts = [
        f"{made.outcome}: {made.case.id} {made.case.label}", ratios(made.comparison.verdicts), str(made.path)
    ]  # fmt: skip
    outcome = " · ".join(part for part in parts if part)
    notes = environment_notes(made.differences, *made.states)
    if format == "json":
        say(comparison_json(made.comparison.family, [*notes, outcome]))
    else:
        print_tables([comparison_table(made.comparison.family, notes, min_effect)], format)
        say(outcome)
    if _EXITS[made.outcome]:
        raise typer.Exit(_EXITS[made.outcome])
