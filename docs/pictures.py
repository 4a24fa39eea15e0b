"""Make the pictures of README and docs from the runs in `examples/runs`: `make pictures`."""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import console
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PLOTS = {
    "models": ("accuracy-vs-cost", "models"),
    "grid": ("cpu-grid@model=wav2vec2-base", "grid"),
    "scaling": ("cpu-grid", "scaling"),
    "cold-start": ("accuracy-vs-cost", "cold-start"),
    "front": ("accuracy-vs-cost", "front"),
    "losses": ("h200-losses", "losses"),
    "modules": ("h200-conformer-modules", "modules"),
    "frontier": ("h200-frontier@host=h200", "frontier"),
    "loss-frontier": ("h200-loss-frontier", "frontier"),
    "live-delays": ("live-streams", "live"),
    "live-timeline": ("live-paces", "live:timeline"),
}
ON_PAGE = ("accuracy-vs-cost",)
WINDOW = "1280,860"
RECOGNISERS = "examples/runs/accuracy-vs-cost"
ON_TERMINAL = {  # command: how many of its lines
    "speechmeter show examples/runs/cpu-grid --metric rtf": 13,
    f"speechmeter compare {RECOGNISERS}@model=sphinx {RECOGNISERS}@model=sphinx-narrow": 99,
}
TERMINAL_WIDTH = 118
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own, without the fonts that it loads from a server."""


def speechmeter(*words: str) -> None:
    """Run the command, as a user would, from the root of the repository."""
    subprocess.run([sys.executable, "-m", "speechmeter", *words], check=True, cwd=ROOT)


def plots() -> None:
    """A figure of each kind for which an example is there."""
    for name, (run, kind) in PLOTS.items():
        if (ROOT / "examples" / "runs" / run.partition("@")[0]).is_dir():
            made = ["--kind", kind, "-o", str(IMAGES / f"{name}.svg"), "--force", "--width", "114mm"]
            speechmeter("plot", f"examples/runs/{run}", *made)


def page() -> None:
    """The top of a page of an example, in light and dark."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("the picture of the page needs chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        html = Path(folder) / "report.html"
        speechmeter("report", *(f"examples/runs/{run}" for run in ON_PAGE), "-o", str(html))
        for scheme, number in (("light", "1"), ("dark", "0")):
            picture = IMAGES / f"page-{scheme}.png"
            subprocess.run(
                [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", f"--user-data-dir={folder}/{scheme}",
                 f"--blink-settings=preferredColorScheme={number}", "--virtual-time-budget=20000", "--hide-scrollbars",
                 f"--window-size={WINDOW}", f"--screenshot={picture}", html.as_uri()],
                check=True, stderr=subprocess.DEVNULL,
            )  # fmt: skip


def terminal_svg() -> str:
    """Commands in a terminal, with what they print now."""
    recorded = Console(record=True, width=TERMINAL_WIDTH, file=io.StringIO())
    with console.folder(""):
        for command, most in ON_TERMINAL.items():
            lines = console.coloured(command.split(), TERMINAL_WIDTH).rstrip().splitlines()
            recorded.print(Text(f"$ {command}", style="bold"))
            recorded.print(Text.from_ansi("\n".join(lines[:most])))
            recorded.print()
    return recorded.export_svg(title="", code_format=SVG, unique_id="terminal")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "terminal.svg").write_text(terminal_svg())
    plots()
    page()
