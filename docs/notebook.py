"""Run `examples/notebook.ipynb` in a fresh kernel and store its outputs: `make notebook`."""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "examples" / "notebook.ipynb"
_LONGEST_S = 600


def executed(folder: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a run in this folder. Raises CellExecutionError where a cell fails."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(
        notebook, timeout=_LONGEST_S, record_timing=False, resources={"metadata": {"path": str(folder)}}
    )
    made: nbformat.NotebookNode = client.execute()
    return made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        made = executed(Path(scratch))
        text = nbformat.writes(made)
        if scratch in text:
            sys.exit(f"an output names the folder {scratch}, which nobody else has")
    NOTEBOOK.write_text(text + "\n", encoding="utf-8")
