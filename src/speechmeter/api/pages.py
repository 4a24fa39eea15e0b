"""Runs as an HTML page, or as a figure for a paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from speechmeter.core.files import check_free, write_whole, written_by_user
from speechmeter.core.printable import one_line
from speechmeter.report.charts import check_installed
from speechmeter.report.charts import missing as extra_missing
from speechmeter.report.sources import read_sources

__all__ = ["check_report", "extra_missing", "plot", "write_report"]


def check_report(output: Path, *, force: bool) -> None:
    """Raise InputError where the page could not be written, before anything is read."""
    check_free(output, force=force)
    check_installed()


def write_report(runs: Sequence[str], output: Path, watch: Callable[[int, int], None] = lambda done, of: None) -> None:
    """Write the page of these runs. An existing file is replaced."""
    from speechmeter import __version__
    from speechmeter.report.page.build import build_page

    page = build_page(read_sources(runs), __version__, watch)
    with written_by_user(output):
        write_whole(output, page.encode())


def plot(runs: Sequence[str], kind: str, output: Path, *, width_in: float, force: bool) -> list[str]:
    """Draw a chart into a PNG, SVG or PDF file. Returns lines about it: where it is, and the caption of each figure."""
    from speechmeter.report.plot import check_kind, check_name, encoded, figures_of

    check_kind(kind)
    check_name(output)
    check_free(output, force=force)
    check_installed()
    figures = figures_of(read_sources(runs), kind)
    drawn = encoded(figures, output.suffix, width_in)
    with written_by_user(output):
        write_whole(output, drawn)
    captions = [one_line(f"{figure.title}. {figure.caption}".strip()) for figure in figures]
    return [f"written: {output}", *captions]
