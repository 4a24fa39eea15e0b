"""`speechmeter report`: one HTML page of some runs."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import typer

from speechmeter.cli.saying import say


def report(
    runs: list[str] = typer.Argument(..., metavar="RUN…", help="Runs, or parts of them: RUN@model=a,batch=1."),
    output: Path = typer.Option(Path("report.html"), "-o", "--output", help="The file to write."),
    force: bool = typer.Option(False, "--force", help="Replace what stands at -o."),
) -> None:
    """Write a page with tables and charts that needs nothing but a browser: no network, no server."""
    from speechmeter.core.files import check_free
    from speechmeter.report.charts import check_installed

    gc.disable()  # a command this short frees nothing by it
    check_free(output, force=force)
    check_installed()
    write_report(runs, output)
    say(f"written: {output}")


def write_report(runs: list[str], output: Path) -> None:
    """Write the page of these runs, over one that stands there."""
    from speechmeter import __version__
    from speechmeter.cli.console import console_for
    from speechmeter.cli.progress import counting
    from speechmeter.core.files import write_whole, written_by_user
    from speechmeter.report.page.build import build_page
    from speechmeter.report.sources import read_sources

    sources = read_sources(runs)
    with counting(console_for(sys.stderr), "reading") as watch:
        page = build_page(sources, __version__, watch)
    with written_by_user(output):
        write_whole(output, page.encode())
