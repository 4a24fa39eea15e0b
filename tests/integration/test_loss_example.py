"""examples/seeds/transducer-losses: its plan is the loss study, and the ranking is what `run` prints first."""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch")

SEED = Path(__file__).parents[2] / "examples/seeds/transducer-losses"
SMALL = {
    "shapes: {steps: 80}": "shapes: {file: shapes.tsv, steps: 8}\nthreads: 1",
    "batch: 30": "batch: 2",
    "vocabulary: 500": "vocabulary: 8",
    "device: [cuda]": "device: [cpu]",
    "meters: [latency, memory, agreement]": "meters: [latency]",
    "wait: 10, warmup: 10, active: 20": "wait: 1, warmup: 1, active: 2",
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The example in a folder of its own: eight steps of two short utterances."""
    folder = shutil.copytree(SEED, tmp_path / "example")
    (folder / "shapes.tsv").write_text("frames\ttokens\n" + "".join(f"{6 + n % 5}\t{1 + n % 3}\n" for n in range(16)))
    plan = (folder / "losses.yaml").read_text()
    for given, less in SMALL.items():
        assert given in plan
        plan = plan.replace(given, less)
    (folder / "losses.yaml").write_text(plan)
    monkeypatch.chdir(folder)


def test_the_ranking_of_the_loss_study_comes_first_and_the_schedule_is_kept(small, command):
    done = command("run", "losses.yaml", "--launcher", "inline", "-o", "losses-run")
    assert done.code == 0, done.out + done.err
    assert done.out.splitlines()[0] == "whole step"
    assert done.out.count("unavailable: k2 is not installed") <= 1
    shown = command("show", "losses-run", "--metric", "losses", "--format", "json")
    (table,) = json.loads(shown.out)
    rows = {row["labels"][0]: row["labels"][1] for row in table["rows"]}
    assert len(rows) == 8
    assert {rows["ours"], rows["ours-pruned"]} <= {str(rank) for rank in range(1, 9)}
    assert "mean step [µs]" in table["columns"]
    assert any("steps 2–3, 6–7 are measured, 4 of 8 batches" in note for note in table["notes"])
