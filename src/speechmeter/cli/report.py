"""`speechmeter report` and `speechmeter plot`: runs as an HTML page, or as a figure for a paper."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import typer

from speechmeter.cli.printing import console_for, say
from speechmeter.report.views import CHARTS

_RUNS = typer.Argument(..., metavar="RUN…", help="Run directories, or parts of them: RUN@model=a,batch=1.")
_FORCE = typer.Option(False, "--force", help="Replace the output file if it exists.")


def report(
    runs: list[str] = _RUNS,
    output: Path = typer.Option(Path("report.html"), "-o", "--output", metavar="FILE", help="The HTML file to write."),
    force: bool = _FORCE,
) -> None:
    """Write tables and charts of runs as one HTML page that works without a network or a server.

    \b
    Example:
      speechmeter report runs/laptop runs/server -o report.html
    """
    from speechmeter.api.pages import check_report

    gc.disable()  # a command this short has nothing to free, and collecting takes a third of its time
    check_report(output, force=force)
    write_page(runs, output)


def write_page(runs: list[str], output: Path) -> None:
    """Write the page, with progress in a terminal, and say where it is."""
    from speechmeter.api.pages import write_report
    from speechmeter.cli.progress import counting

    with counting(console_for(sys.stderr), "reading") as watch:
        write_report(runs, output, watch)
    say(f"written: {output}")


def plot(
    runs: list[str] = _RUNS,
    kind: str = typer.Option(
        ...,
        "--kind",
        metavar="KIND",
        help=f"The chart to draw: {', '.join([*CHARTS][:-1])} or {[*CHARTS][-1]}. Add a colon to choose one of its "
        "figures: scaling:batch, scaling:memory, parameters:flops, grid:rtf.",
    ),
    output: Path = typer.Option(
        ..., "-o", "--output", metavar="FILE", help="The file to write: figure.png, figure.svg or figure.pdf."
    ),
    width: float = typer.Option(
        3.3,
        "--width",
        metavar="INCHES",
        help="Width of the figure. A column of a paper is 3.3 inches.",
        min=1.5,
        max=20,
    ),
    force: bool = _FORCE,
) -> None:
    """Draw one chart of runs into a file for a paper.

    \b
    Example:
      speechmeter plot runs/laptop --kind scaling -o latency.pdf
    """
    from speechmeter.api.pages import plot as draw_plot

    for line in draw_plot(runs, kind, output, width_in=width, force=force):
        say(line)
