"""`speechmeter plot`: one kind of figure as a file for a paper."""

from __future__ import annotations

from pathlib import Path

import typer

from speechmeter.cli.saying import say
from speechmeter.report.views import CHARTS


def plot(
    runs: list[str] = typer.Argument(..., metavar="RUN…", help="A run, or some of it: RUN@model=a,batch=1."),
    kind: str = typer.Option(
        ...,
        help=f"{', '.join(list(CHARTS)[:-1])} or {list(CHARTS)[-1]}. "
        "With a colon, one of its figures: scaling:batch, scaling:memory, parameters:flops, grid:rtf.",
    ),
    output: Path = typer.Option(
        ..., "-o", "--output", help="figure.png, figure.svg or figure.pdf.", show_default=False
    ),
    width: float = typer.Option(3.3, help="Width in inches; 3.3 is a column of a paper.", min=1.5, max=20),
    force: bool = typer.Option(False, "--force", help="Replace the file at -o."),
) -> None:
    """Draw a figure for a paper: latency over input size (scaling), latency over parameters, and others."""
    from speechmeter.core.files import check_free, write_whole, written_by_user
    from speechmeter.core.printable import one_line
    from speechmeter.report.charts import check_installed
    from speechmeter.report.plot import check_kind, check_name, encoded, figures_of
    from speechmeter.report.sources import read_sources

    check_kind(kind)
    check_name(output)
    check_free(output, force=force)
    check_installed()
    figures = figures_of(read_sources(runs), kind)
    drawn = encoded(figures, output.suffix, width)
    with written_by_user(output):
        write_whole(output, drawn)
    say(f"written: {output}")
    for figure in figures:
        say(one_line(f"{figure.title}. {figure.caption}".strip()))
