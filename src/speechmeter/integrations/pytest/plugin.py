"""The plug-in as pytest loads it. It imports pytest alone: everything else waits for a test that uses the fixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from speechmeter.integrations.pytest.settings import add_options, is_worker, read_settings, tell_worker
from speechmeter.integrations.pytest.summary import rows_of, summary

if TYPE_CHECKING:
    from speechmeter.integrations.pytest.checking import Speechmeter

_MARKER = (
    "speechmeter(metric='latency', min_effect='5%', rounds='auto', max_latency_ms=…, max_memory_mib=…, max_rtf=…, …): "
    "what the fixture `speechmeter` judges by; every test that uses the fixture has it"
)
_KEPT = pytest.StashKey[list[str]]()


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
    tell_worker(node.workerinput, read_settings(node.config))


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

    return Speechmeter(request, read_settings(request.config), _teller(request.config))


def _teller(config: pytest.Config) -> Callable[[str], None]:
    """Progress in the terminal with `-v`, around pytest's capture; workers of pytest-xdist have no terminal."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if reporter is None or capture is None or config.get_verbosity() < 1 or is_worker(config):
        return lambda line: None

    def tell(line: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.write_line(line)

    return tell


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Put the measurements of all workers into one run, also where the session was interrupted.

    A session that passes but cannot keep them ends with pytest's exit code for internal errors.
    """
    settings = read_settings(session.config)
    if is_worker(session.config) or not settings.parts.is_dir():
        return
    from speechmeter.core.errors import SpeechmeterError
    from speechmeter.integrations.pytest.keeping import keep

    lines = session.config.stash.setdefault(_KEPT, [])
    try:
        lines.extend(keep(settings))
    except SpeechmeterError as error:
        lines.append(str(error))
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
