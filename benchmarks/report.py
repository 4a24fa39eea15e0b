"""What a report of many records costs: time to build, size, and how fast the page answers in Chromium.

    python benchmarks/report.py [--records 20000]

Times are those of this machine as it is; the ratio to reading the same run stands beside them. The browser's part is
left out where chromium or playwright are not installed.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import report_runs

from speechmeter.report.page.build import build_page
from speechmeter.report.sources import read_sources

CLICK = """() => {
  document.querySelector('.summary tr.group button')?.click();
  const begun = performance.now();
  document.querySelector('.summary td.figure button:not(.none)').click();
  document.querySelector('dialog').getBoundingClientRect();
  const open = performance.now() - begun;
  document.querySelector('dialog').close();
  const sorting = performance.now();
  document.querySelector('.summary thead button').click();
  document.querySelector('.summary').getBoundingClientRect();
  return [open, performance.now() - sorting];
}"""


def main() -> None:
    """Print one line a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    count = parser.parse_args().records
    with tempfile.TemporaryDirectory() as folder:
        run = report_runs.many(Path(folder) / "run", count)
        begun = time.perf_counter()
        sources = read_sources([str(run)])
        read_s = time.perf_counter() - begun
        page = Path(folder) / "report.html"
        page.write_text(build_page(sources, "benchmark"), encoding="utf-8")
        whole_s = time.perf_counter() - begun
        print(
            f"{count:,} records: read in {read_s:.1f} s, report in {whole_s:.1f} s ({whole_s / read_s:.1f} × reading)"
        )
        print(f"size: {page.stat().st_size / 1e6:.1f} MB")
        _in_browser(page)


def _in_browser(page: Path) -> None:
    program = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        print("in the browser: not measured, chromium or playwright is not installed")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        opened = browser.new_page()
        begun = time.perf_counter()
        opened.goto(page.as_uri())
        opened.wait_for_selector(".summary tbody tr")
        table_s = time.perf_counter() - begun
        opened.wait_for_selector("body[data-ready=yes]", timeout=120_000)
        ready_s = time.perf_counter() - begun
        click_ms, sort_ms = opened.evaluate(CLICK)
        browser.close()
    print(f"in Chromium: table after {table_s:.1f} s, every chart after {ready_s:.1f} s")
    print(f"a click on a figure is answered in {click_ms:.0f} ms, a sort in {sort_ms:.0f} ms")


if __name__ == "__main__":
    main()
