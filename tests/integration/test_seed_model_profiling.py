"""The example of a model with labels of its own, as its README runs it, at a small size."""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch")

SEED = Path(__file__).parents[2] / "examples/seeds/model-profiling"
SMALL = {
    "shapes: {frames: raw, steps: 80}": "shapes: {file: shapes.tsv, frames: raw}\nbatch: 2",
    "max_frames: 1000": "threads: 1",
    "wait: 10, warmup: 10, active: 20": "wait: 1, warmup: 1, active: 1",
    "meters: [latency, modules, operators]": "meters: [modules, operators]",  # in one process nothing else is timed
}
INNER = ("feed_forward_macaron", "self_attn", "conv", "feed_forward")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The example in a folder of its own: six steps of two short utterances."""
    folder = shutil.copytree(SEED, tmp_path / "example")
    (folder / "shapes.tsv").write_text("raw_frames\ttokens\n" + "".join(f"{80 + n}\t{5 + n % 3}\n" for n in range(12)))
    plan = (folder / "plan.yaml").read_text()
    for given, less in SMALL.items():
        assert given in plan
        plan = plan.replace(given, less)
    (folder / "plan.yaml").write_text(plan)
    monkeypatch.setattr("gc.disable", lambda: None)  # `show` means it for a process that ends with the command
    monkeypatch.chdir(tmp_path)
    return folder


def test_labels_of_a_models_own_code_have_their_shares(small, command):
    done = command("run", small / "plan.yaml", "--trust", "--launcher", "inline", "-o", "run")
    assert done.code == 0, done.out + done.err
    shown = command("show", "run", "--metric", "modules", "--filter", "rnnt*", "--format", "json")
    assert shown.code == 0, shown.err
    (table,) = json.loads(shown.out)
    lines = {row["labels"][0].removeprefix("label:rnnt_"): row["cells"] for row in table["rows"]}

    def figure(name, column):
        return lines[name][table["columns"].index(column)]["value"]

    inner = [f"encoder_layer_{name}" for name in INNER]
    outer = ["encoder", "decoder", "loss_simple", "loss_pruned"]
    assert set(lines) == {"call", *outer, "encoder_embed", "encoder_layer", *inner}
    for held, holder in (
        (["encoder_embed", "encoder_layer"], "encoder"),
        (inner, "encoder_layer"),
        (outer, "call"),
    ):
        for column in ("share", "forward", "backward"):
            together = sum(figure(name, column) for name in held)
            assert 0 < together <= figure(holder, column) * (1 + 1e-9), (holder, column)
    assert figure("encoder_layer", "calls") == 2
    assert figure("encoder", "its own") < figure("encoder", "forward")

    # how long each range was open, as torch has it, over both recorded steps: 2 and 5
    texts = [line.split() for line in next(Path("run/artifacts").rglob("ranges.txt")).read_text().splitlines()[1:]]
    open_us = {name.removeprefix("rnnt_"): (float(us), int(calls)) for us, _, calls, name in texts if "rnnt" in name}
    for name in (*outer, *inner):
        assert figure(name, "forward") * 1e6 == pytest.approx(open_us[name][0] / 2, abs=0.2), name
    assert open_us["encoder_layer"][1] == 2 * 2

    ordered = command("show", "run", "--metric", "operators", "--sort", "memory", "--limit", "3", "--format", "csv")
    assert ordered.code == 0, ordered.err
    assert "memory_operator.v1" in ordered.out
