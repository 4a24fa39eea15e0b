"""Make the pictures of README and docs from the runs in `examples/runs`: `make pictures`."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PLOTS = {
    "grid": ("cpu-grid@model=wav2vec2-base", "grid"),
    "scaling": ("cpu-grid", "scaling"),
    "cold-start": ("accuracy-vs-cost", "cold-start"),
    "front": ("accuracy-vs-cost", "front"),
    "losses": ("h200-losses", "losses"),
    "modules": ("h200-conformer-modules", "modules"),
    "frontier": ("h200-frontier@host=h200", "frontier"),
    "loss-frontier": ("h200-loss-frontier", "frontier"),
}
ON_PAGE = ("accuracy-vs-cost", "cpu-grid")
WINDOW = "1280,1500"


def speechmeter(*words: str) -> None:
    """Run the command, as a user would, from the root of the repository."""
    subprocess.run([sys.executable, "-m", "speechmeter", *words], check=True, cwd=ROOT)


def plots() -> None:
    """A figure of each kind for which an example is there."""
    for name, (run, kind) in PLOTS.items():
        if (ROOT / "examples" / "runs" / run.partition("@")[0]).is_dir():
            made = ["--kind", kind, "-o", str(IMAGES / f"{name}.svg"), "--force", "--width", "4.5"]
            speechmeter("plot", f"examples/runs/{run}", *made)


def page() -> None:
    """The top of a page of two examples, in light and dark."""
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


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    plots()
    page()
