"""The plug-in as pytest loads it. It imports pytest only; the rest is imported by a test that uses the fixture."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from speechmeter.integrations.pytest.settings import PROPERTY, add_options, is_worker, read_settings, send_to_worker

if TYPE_CHECKING:
    from speechmeter.integrations.pytest.checking import Speechmeter

_MARKER = (
    "speechmeter(metric='latency', min_effect='5%', rounds='auto', max_latency_ms=…, max_memory_mib=…, max_rtf=…, …): "
    "what the fixture `speechmeter` compares and which limits it checks; set on every test that uses the fixture"
)
_KEPT = pytest.StashKey[list[str]]()
_HEADINGS = ("metric", "figure", "against", "verdict")
_FILE_WIDTH = 160


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the command line and the ini file."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker; refuse options that contradict each other."""
    config.addinivalue_line("markers", _MARKER)
    read_settings(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker of pytest-xdist is about to start."""
    send_to_worker(node.workerinput, read_settings(node.config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the fixture, so that `-m 'not speechmeter'` leaves it out."""
    for item in items:
        if "speechmeter" in getattr(item, "fixturenames", ()) and item.get_closest_marker("speechmeter") is None:
            item.add_marker("speechmeter")


@pytest.fixture
def speechmeter(request: pytest.FixtureRequest) -> Speechmeter:
    """Measure what a model costs, in fresh processes: `speechmeter.check(factory, seconds=5)`."""
    from speechmeter.integrations.pytest.checking import Speechmeter

    return Speechmeter(request, read_settings(request.config), _progress_writer(request.config))


def _progress_writer(config: pytest.Config) -> Callable[[str], None]:
    """Progress in the terminal with `-v`, around pytest's capture; workers of pytest-xdist have no terminal."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if reporter is None or capture is None or config.get_verbosity() < 1 or is_worker(config):
        return lambda line: None

    def write(line: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.write_line(line)

    return write


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Put the measurements of all workers into one run, also where the session was interrupted.

    A session that passes but cannot keep them ends with pytest's exit code for internal errors.
    """
    settings = read_settings(session.config)
    if is_worker(session.config) or not settings.parts.is_dir():
        return
    from speechmeter.core.errors import SpeechmeterError
    from speechmeter.integrations.pytest.judging import as_in_tests
    from speechmeter.integrations.pytest.keeping import keep

    lines = session.config.stash.setdefault(_KEPT, [])
    try:
        lines.extend(keep(settings))
    except SpeechmeterError as error:
        lines.append(error.message(as_in_tests))
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The findings of all tests in one table."""
    rows = rows_of(report for reports in terminalreporter.stats.values() for report in reports)
    lines = config.stash.get(_KEPT, [])
    if not rows and not lines:
        return
    terminalreporter.section("speechmeter")
    if rows:
        width = config.get_terminal_writer().fullwidth if terminalreporter.isatty else None
        terminalreporter.write_line(summary(rows, width))
    for line in lines:
        terminalreporter.write_line(line)


def rows_of(reports: Iterable[Any]) -> list[list[str]]:
    """The findings of all tests; of the several reports of a test, that of its call has them."""
    return [
        row
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, rows in getattr(report, "user_properties", ())
        if name == PROPERTY
        for row in rows
    ]


def summary(rows: Sequence[Sequence[str]], terminal_width: int | None) -> str:
    """The rows as a table like those of Speechmeter's commands, reasons below it; wide where it goes to a file."""
    from rich.console import Console

    from speechmeter.report.tables import Cell, Row, Table
    from speechmeter.report.terminal import draw

    table = Table(
        title="",
        metric=None,
        labels=("case",),
        columns=_HEADINGS,
        rows=tuple(
            Row(labels=(case,), cells=tuple(Cell(word=text) for text in texts[: len(_HEADINGS)]))
            for case, *texts in rows
        ),
        notes=tuple(dict.fromkeys(f"{row[-3]}: {row[-1]}" for row in rows if row[-1])),
    )
    out = io.StringIO()
    draw([table], Console(file=out, width=terminal_width or _FILE_WIDTH))
    return out.getvalue().strip()
