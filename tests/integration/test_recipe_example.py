"""The example in the form of SpeechBrain's profiling recipe runs, and leaves the files that it promises."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.skipif(find_spec("speechbrain") is None, reason="needs speechbrain")

FOLDER = Path(__file__).parents[2] / "examples" / "seeds" / "speechbrain-recipe"


def test_the_recipe_prints_and_writes_what_the_original_does(tmp_path, cli):
    made = tmp_path / "run"
    done = cli("run", str(FOLDER / "profile.yaml"), "--trust", "--quick", "--seconds", "1", "--batch", "1",
               "-o", str(made))  # fmt: skip
    assert done.returncode == 0, done.stderr
    rtf, memory = ((made / "tables" / name).read_text() for name in ("rtf.md", "memory.md"))
    assert "| seconds \\\\ batch | 1 wall | 1 CPU |" in rtf
    assert re.search(r"^\| 1 s( \| \d\.\d\dE[+-]\d\d){2} \|$", rtf, re.MULTILINE)
    assert re.search(r"^\| 1 s \| [\d.,]+ MiB \|$", memory, re.MULTILINE)
    assert f"written: {made / 'tables' / 'rtf.md'}" in done.stdout
    assert sum("1 s × 1 │ aten::" in line for line in done.stdout.splitlines()) == 10
    assert len(list(made.rglob("*.pt.trace.json.gz"))) == len(list(made.rglob("stacks.txt"))) == 1
    first = cli("show", str(made), "--metric", "operators", "--sort", "calls", "--limit", "1", "--format", "csv").stdout
    assert len({line.split(",")[1] for line in first.splitlines()[1:]}) == 1
