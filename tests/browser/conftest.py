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


@pytest.fixture(scope="session")
def chromium():
    """The browser; skipped where there is none."""
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

    def __init__(self, browser, path: Path, width: int, scheme: str) -> None:
        self.page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-ready=yes]")


@pytest.fixture(scope="session")
def opened(chromium, report):
    """`opened(width, scheme)`: the page, opened once for each."""
    pages: dict[tuple[int, str], Opened] = {}

    def open_page(width: int = 1280, scheme: str = "light") -> Opened:
        if (width, scheme) not in pages:
            pages[width, scheme] = Opened(chromium, report, width, scheme)
        return pages[width, scheme]

    return open_page


@pytest.fixture
def open_file(chromium):
    """`open_file(path)`: another page than the one that all tests share."""
    return lambda path: Opened(chromium, path, 1280, "light")
