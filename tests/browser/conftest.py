"""A real Chromium with an empty profile that may not go anywhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import report_runs

from speechmeter.report.page.build import build_page
from speechmeter.report.sources import read_sources

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def chromium():
    """The browser; skipped where there is none.

    It closes with each file: while playwright is open an event loop runs in this thread, and tests of other files that
    start one of their own would fail.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory) -> Path:
    """The page of runs that fill every section, with hostile names in them."""
    folder = tmp_path_factory.mktemp("runs")
    runs = report_runs.full(folder)
    page = folder / "report.html"
    page.write_text(build_page(read_sources(map(str, runs)), "0"), encoding="utf-8")
    return page


class Opened:
    """A page in the browser, and what it said and asked for."""

    def __init__(self, browser, address: str, width: int = 1280, scheme: str = "light", height: int = 900) -> None:
        viewport = {"width": width, "height": height}
        self.page = browser.new_context(viewport=viewport, color_scheme=scheme).new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.page.wait_for_selector("body[data-ready=yes]", timeout=120_000)


@pytest.fixture(scope="module")
def opened(chromium, report):
    """`opened(width, scheme)`: the page, opened once for each."""
    pages: dict[tuple[int, str], Opened] = {}

    def open_page(width: int = 1280, scheme: str = "light") -> Opened:
        if (width, scheme) not in pages:
            pages[width, scheme] = Opened(chromium, report.as_uri(), width, scheme)
        return pages[width, scheme]

    return open_page


@pytest.fixture
def open_file(chromium):
    """`open_file(path, …)`: another page than the one that all tests share."""
    return lambda path, *look: Opened(chromium, path.as_uri(), *look)


@pytest.fixture
def open_at(chromium):
    """`open_at(address, …)`: a page of a server."""
    return lambda address, *look: Opened(chromium, address, *look)
