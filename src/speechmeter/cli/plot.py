"""`speechmeter plot`: one kind of figure as a file for a paper."""

from __future__ import annotations

from pathlib import Path

import typer


def plot(
    runs: list[str] = typer.Argument(..., metavar="RUN…", help="A run, or some of it: RUN@model=a,batch=1."),
    kind: str = typer.Option(
        ..., help="grid, scaling, frontier, front, modules, memory, losses, cold-start, energy, machines or stages."
    ),
    output: Path = typer.Option(
        ..., "-o", "--output", help="figure.png, figure.svg or figure.pdf.", show_default=False
    ),
    width: float = typer.Option(3.3, help="Width in inches; 3.3 is a column of a paper.", min=1.5, max=20),
    force: bool = typer.Option(False, "--force", help="Replace what stands at -o."),
) -> None:
    """Draw figures of one kind, as the report has them, sized for a paper."""
    from speechmeter.cli.files import check_free, write_whole
    from speechmeter.report.extra import check_installed
    from speechmeter.report.plot import check_kind, check_name
    from speechmeter.report.plot import plot as draw
    from speechmeter.report.sources import read_sources

    check_kind(kind)
    check_name(output)
    check_free(output, force=force)
    check_installed()
    write_whole(output, draw(read_sources(runs), kind, output.suffix, width))
    typer.echo(f"written: {output}")
