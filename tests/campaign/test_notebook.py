"""`examples/notebook.ipynb` in a kernel of its own: every cell runs, and gives outputs of the kinds that are stored."""

import json
import runpy
from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'speechmeter[test]'")

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.campaign


def kinds(notebook):
    """For each cell of code the types of its outputs, and of each the formats that it has."""
    return [
        [(output["output_type"], sorted(output.get("data", ()))) for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def test_the_notebook_runs_as_it_is_stored(tmp_path):
    made = runpy.run_path(str(ROOT / "docs/notebook.py"))["executed"](tmp_path)
    stored = json.loads((ROOT / "examples/notebook.ipynb").read_text())
    assert kinds(made) == kinds(stored)
    assert [len(found) for found in kinds(made)] == [1, 2, 2, 1, 1, 1, 1]
    result, progress_and_run, _, frame, chart, comparison, error = (
        cell["outputs"] for cell in made["cells"] if cell["cell_type"] == "code"
    )
    assert "<table>" in result[0]["data"]["text/html"]
    assert progress_and_run[0]["data"]["text/plain"].startswith("20 of 20 measured in ")
    assert "<table>" in progress_and_run[1]["data"]["text/html"]
    assert "0.00" in frame[0]["data"]["text/html"]
    assert "seconds" in chart[0]["data"]["image/svg+xml"]
    assert "NEW against BASE" in comparison[0]["data"]["text/html"]
    assert "use `resume` to continue it" in error[0]["text"]
