"""Runs as an HTML page, as a site, as a badge, or as a figure for a paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from speechmeter.analysis.metric_names import metric_named
from speechmeter.api.frames import figure_rows
from speechmeter.core.errors import InputError
from speechmeter.core.files import check_free, write_whole, written_by_user
from speechmeter.core.printable import one_line
from speechmeter.report.answers import best_finding, top_of
from speechmeter.report.badge import badge
from speechmeter.report.charts import check_installed
from speechmeter.report.charts import missing as extra_missing
from speechmeter.report.charts.figure import Figure
from speechmeter.report.plot import left_of
from speechmeter.report.sources import read_sources

__all__ = ["check_report", "check_site", "extra_missing", "plot", "write_badge", "write_report", "write_site"]

Watch = Callable[[int, int], None]
"""Called with how many of how many are done."""


def check_report(output: Path, *, force: bool) -> None:
    """Raise InputError where the page could not be written, before anything is read."""
    check_free(output, force=force)
    check_installed()


def write_report(
    runs: Sequence[str], output: Path, watch: Watch = lambda done, of: None, *, samples: int = 0
) -> tuple[str, ...]:
    """Write the page of these runs. An existing file is replaced. Returns a line for each unfinished run.

    `samples` of the speech that a run saved can be listened to, so many of each system.
    """
    from speechmeter import __version__
    from speechmeter.report.page.build import build_page

    sources = read_sources(runs)
    page = build_page(sources, __version__, watch, samples=samples)
    with written_by_user(output):
        write_whole(output, page.encode())
    return left_of(sources)


def check_site(folder: Path, *, force: bool) -> None:
    """Raise InputError where no site could be written: into a folder that holds something, unless `force` is given."""
    with written_by_user(folder):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file, not a directory", key="site", fix="choose another name")
        if folder.is_dir() and any(folder.iterdir()) and not force:
            fix = "add `force` to replace the files of the site, or choose another directory"
            raise InputError(f"{folder} already exists and is not empty", key="site", fix=fix)
    check_free(folder / "index.html", force=True, makes_folder=True)
    check_installed()


def write_site(runs: Sequence[str], folder: Path, watch: Watch = lambda done, of: None) -> int:
    """Write a site of these runs into a folder. Its files are replaced, and others are left alone.

    Returns how many studies it has. The list is written last.
    """
    from speechmeter import __version__
    from speechmeter.report.page.site import site_files

    sources = read_sources(runs)
    for path, content in site_files(sources, __version__, figure_rows, watch):
        with written_by_user(folder / path):
            write_whole(folder / path, content)
    return len(sources)


def write_badge(run: str, output: Path, metric: str | None = None, *, force: bool = False) -> str:
    """Write a badge: the first answer of a run, or its best figure of a metric. Returns what it says, in words.

    Raises InputError where the run has no such figure.
    """
    if output.suffix.lower() != ".svg":
        raise InputError(f"{output} does not end in .svg", key="output", fix="a badge is an SVG file")
    check_free(output, force=force)
    source, *others = read_sources([run])
    if others:
        raise InputError("a badge shows one machine", where=run, fix=f"choose one: RUN@host={source.host}")
    if metric is None:
        found = next(iter(top_of(source).findings), None)
    else:
        found = best_finding(source, metric_named(metric, source.records, key="metric"))
    if found is None:
        raise InputError(f"there is no figure{f' of {metric}' if metric else ''}", where=run, fix="choose another run")
    with written_by_user(output):
        write_whole(output, badge(found).encode())
    return f"{found.name}: {found.value} {found.unit}, {found.interval}; {found.label}"


def plot(
    runs: Sequence[str],
    kind: str,
    output: Path,
    *,
    metric: str | None = None,
    title: str | None = None,
    width_mm: float | None = None,
    force: bool = False,
) -> list[str]:
    """Draw a chart into a PNG, SVG or PDF file. Returns lines about it: where it is, and the caption of each figure."""
    from speechmeter.report.plot import check_kind, check_name, check_runs, encoded, figures_of, titled

    check_kind(kind)
    check_runs(kind, len(runs))
    check_name(output)
    check_free(output, force=force)
    check_installed()
    sources = read_sources(runs)
    figures = figures_of(sources, kind, metric)
    drawn = encoded(titled(figures, title), output.suffix, width_mm)
    with written_by_user(output):
        write_whole(output, drawn)
    return [f"written: {output}", *(_caption(figure) for figure in figures), *left_of(sources)]


def _caption(figure: Figure) -> str:
    return one_line(f"{figure.title}. {figure.caption}".strip())
