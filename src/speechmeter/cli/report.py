"""`speechmeter report`, `badge` and `plot`: runs as an HTML page or a site, a badge, or a figure for a paper."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import typer

from speechmeter.cli.printing import console_for, note, say
from speechmeter.core.errors import InputError
from speechmeter.report.views import CHARTS

_RUNS = typer.Argument(..., metavar="RUN…", help="Run directories, or parts of them: RUN@model=a,batch=1.")
_FORCE = typer.Option(False, "--force", help="Replace output files that exist.")


def report(
    runs: list[str] = _RUNS,
    output: Path | None = typer.Option(
        None, "-o", "--output", metavar="FILE", help="The HTML file to write. Default: report.html."
    ),
    site: Path | None = typer.Option(
        None,
        "--site",
        metavar="DIR",
        help="Write a site instead, for a static web server: a list of the runs with filters, and a page and a JSON "
        "file for each.",
    ),
    samples: int = typer.Option(
        0,
        "--samples",
        metavar="N",
        min=0,
        max=20,
        help="Put so many samples of speech of each system into the page, to be listened to. The runs need "
        "`save_speech: true`.",
    ),
    force: bool = typer.Option(False, "--force", help="Replace the output file, or the files of the site."),
) -> None:
    """Write tables and charts of runs as one HTML page that works without a network or a server, or as a site.

    \b
    Examples:
      speechmeter report runs/laptop runs/server -o report.html
      speechmeter report runs/* --site public
    """
    from speechmeter.api.pages import check_report, check_site

    gc.disable()  # a command this short has nothing to free, and collecting takes a third of its time
    if site is not None and output is not None:
        raise InputError("a site has no output file", key="site", fix="give one of `output` and `site`")
    if site is not None and samples:
        raise InputError("a site has no samples of speech", key="samples", fix="leave out `site`, or `samples`")
    if site is not None:
        check_site(site, force=force)
        _write_site(runs, site)
        return
    page = output or Path("report.html")
    check_report(page, force=force)
    write_page(runs, page, samples=samples)


def _write_site(runs: list[str], folder: Path) -> None:
    from speechmeter.api.pages import write_site
    from speechmeter.api.progress import counting

    with counting(console_for(sys.stderr), "studies") as watch:
        count = write_site(runs, folder, watch)
    say(f"written: {folder / 'index.html'}, with {count} {'study' if count == 1 else 'studies'}")


def badge(
    run: str = typer.Argument(..., metavar="RUN", help="A run directory, or part of one: RUN@model=a."),
    metric: str = typer.Option(
        "",
        "--metric",
        metavar="METRIC",
        help="The metric to show: rtfx, memory, … The default is the first value on the report page.",
    ),
    output: Path = typer.Option(..., "-o", "--output", metavar="FILE", help="The SVG file to write."),
    force: bool = _FORCE,
) -> None:
    """Write a badge for a README: the best figure of a run with its interval, as an SVG picture.

    \b
    Example:
      speechmeter badge runs/laptop --metric rtfx -o speed.svg
    """
    from speechmeter.api.pages import write_badge

    said = write_badge(run, output, metric or None, force=force)
    say(f"written: {output}")
    say(said)


def write_page(runs: list[str], output: Path, *, samples: int = 0) -> None:
    """Write the page, with progress in a terminal, and say where it is."""
    from speechmeter.api.pages import write_report
    from speechmeter.api.progress import counting

    with counting(console_for(sys.stderr), "reading") as watch:
        left = write_report(runs, output, watch, samples=samples)
    say(f"written: {output}")
    for line in left:
        note(line)


def plot(
    runs: list[str] = _RUNS,
    kind: str = typer.Option(
        ...,
        "--kind",
        metavar="KIND",
        help=f"One of {', '.join([*CHARTS][:-1])} or {[*CHARTS][-1]}. scaling:batch draws against the batch "
        f"size; live:{', live:'.join(CHARTS['live'].axes[1:])} draw more of live systems, "
        f"speech:{', speech:'.join(CHARTS['speech'].axes[1:])} of systems that speak.",
    ),
    metric: str = typer.Option(
        "",
        "--metric",
        metavar="METRIC",
        help="The metric to draw: rtf, memory, flops, … The default depends on the chart.",
    ),
    output: Path = typer.Option(
        ..., "-o", "--output", metavar="FILE", help="The file to write: figure.png, figure.svg or figure.pdf."
    ),
    width: str = typer.Option(
        "85mm",
        "--width",
        metavar="WIDTH",
        help="Width of the figure: 85mm, 8.5cm or 3.3in. Texts are 8 to 9 points high at any width.",
    ),
    title: str = typer.Option(
        "",
        "--title",
        metavar="TITLE",
        help="Text instead of the title and the notes below it; none leaves them out.",
    ),
    force: bool = _FORCE,
) -> None:
    """Draw one chart of runs into a file for a paper. Several runs are drawn in one figure.

    \b
    Examples:
      speechmeter plot runs/laptop --kind scaling -o latency.pdf
      speechmeter plot runs/laptop runs/server --kind scaling --metric memory --title none -o memory.pdf
    """
    from speechmeter.api.pages import plot as draw_plot
    from speechmeter.report.plot import read_width

    width_mm = read_width(width)
    drawn = draw_plot(runs, kind, output, metric=metric or None, title=title or None, width_mm=width_mm, force=force)
    for line in drawn:
        say(line)
