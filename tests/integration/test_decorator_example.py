"""The example in the form of SpeechBrain's profiling tutorial runs, and leaves the files that it promises."""

import json
import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch")

FOLDER = Path(__file__).parents[2] / "examples" / "seeds" / "speechbrain-decorators"


def test_the_tutorial_runs_at_a_small_size(tmp_path, monkeypatch, capsys, command):
    made = tmp_path / "profiles"
    asked = ["tutorial.py", "-o", str(made), "--seconds", "0.2", "--batch", "2", "--steps", "5"]
    monkeypatch.setattr(sys, "argv", asked)
    runpy.run_path(str(FOLDER / "tutorial.py"), run_name="__main__")
    out = capsys.readouterr().out
    for expected in (
        "### modules · together · cpu",
        "Self CPU time total",
        "fit: 5 steps ran, 2 recorded\nfit.evaluate_batch: 2 steps ran, 1 recorded\nevaluate: 5 steps ran, 2 recorded",
        "### modules · MyBrain.evaluate · cpu",
        "### modules · Recogniser.transcribe_batch · cpu",
        "### FLOPs",
    ):
        assert expected in out
    assert {str(path.parent.relative_to(made)) for path in made.rglob("tables.md")} == {
        "one-by-one", "together", "brain/fit", "brain/fit-evaluate_batch", "brain/evaluate",
        "recogniser/transcribe_batch",
    }  # fmt: skip
    done = command("trace", "diff", made / "one-by-one", made / "together", "--changed", "count", "--format", "json")
    first = [row["labels"][:3] for row in json.loads(done.out)[0]["rows"][:2]]
    assert sorted(first) == [
        ["is it faster one by one?", "label", "only in A"],
        ["or all together?", "label", "only in B"],
    ]


def test_the_readme_names_the_command():
    assert "python examples/seeds/speechbrain-decorators/tutorial.py" in (FOLDER / "README.md").read_text()
