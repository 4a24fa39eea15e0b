"""`speechmeter import`: results of other tools as a run."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from speechmeter.cli.printing import note, say


def import_(
    files: list[Path] = typer.Argument(
        ..., metavar="FILE…", help="Result files of other tools. The format is recognised.", show_default=False
    ),
    output: Path | None = typer.Option(
        None, "-o", "--output", metavar="RUN", help="The run directory to write. The default is a new one in runs/."
    ),
    force: bool = typer.Option(False, "--force", help="Replace a run that exists."),
) -> None:
    """Import results of vllm bench serve, guidellm, aiperf and stt-benchmark as a run.

    Every figure keeps the definition of its tool. Several files become one run, which shows them side by side.

    \b
    Example:
      speechmeter import vllm.json guidellm.json -o runs/served
    """
    from speechmeter.api.importing import import_results
    from speechmeter.report.numbers import counted

    made = import_results(files, output, force=force)
    for one in made.files:
        tool = f"{one.tool} {one.version}".strip()
        say(f"{one.path}: {tool}, {counted(one.benchmarks, 'benchmark')}, {counted(one.figures, 'figure')}")
        for line in one.left_out:
            note(f"not imported from {one.path.name}: {line}")
    say(f"written: {made.path}")
    say(f"to see it: speechmeter show {shlex.quote(str(made.path))}")
