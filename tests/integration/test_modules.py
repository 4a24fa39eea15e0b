"""Training steps as a user runs them: rows of modules, tables, comparisons, and a model of the user's own."""

import json

import pytest

pytest.importorskip("torch", reason="needs torch")

SIZE = "layers: 2\nwidth: 32\nheads: 2\ninner: 48\nkernel: 5\nvocabulary: 11\nthreads: 1\nrounds: 1\nrepeats: 2\n"
PLAN = f"""
train:
  - name: conformer-transducer
    rows:
      {{embed: encoder.embed, attention: encoder.layers.*.self_attn, rest: encoder, loss: [loss_simple, joiner]}}
    published: {{name: V100, forward_ms: {{embed: 10, attention: 30}}}}
shapes: {{file: tiny.tsv, frames: raw}}
batch: 2
optimizer: adamw
meters: [latency, parameters, flops, modules]
{SIZE}"""
MINE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(3))
    def forward(self, sound):
        frames = sound.unflatten(-1, (-1, 16))
        for layer in self.layers:
            frames = torch.tanh(layer(frames))
        return frames
def make():
    return Model(), lambda output, batch: output.square().mean()
"""


def records_of(workshop, run):
    return [json.loads(line) for line in (workshop / run / "records.jsonl").read_text().splitlines()]


def test_the_built_in_step_is_measured_shown_and_compared(cli, workshop):
    (workshop / "tiny.tsv").write_text("raw_frames\ttokens\n120\t9\n100\t7\n90\t5\n80\t4\n")
    (workshop / "plan.yaml").write_text(PLAN)
    done = cli("run", "plan.yaml", "-o", "run")
    assert done.returncode == 0, done.stderr + done.stdout
    first = records_of(workshop, "run")[0]
    assert first["status"] == "ok", first["reason"]
    rows = {(m["metric"], m["scope"]): m for m in first["measurements"]}
    assert rows["time_module.v1", "module:encoder.layers.1.self_attn"]["notes"]["class"] == "RelativeAttention"
    assert rows["time_module.v1", "label:Optimizer.step#AdamW.step"]["values"]
    assert rows["flops_backward.v1", "module:encoder.layers.0.feed_forward"]["values"][0] == pytest.approx(
        2 * rows["flops.v1", "module:encoder.layers.0.feed_forward"]["values"][0]
    )
    stages = [scope for metric, scope in rows if metric == "latency.v1" and scope.startswith("stage:")]
    assert stages == ["stage:load", "stage:data", "stage:forward", "stage:loss", "stage:backward", "stage:optimizer"]

    shown = cli("show", "run", "--metric", "modules")
    assert shown.returncode == 0, shown.stderr
    for word in ("layers.*", "█", "V100: share of forward", "unattributed", "share of backward", "by class"):
        assert word in shown.stdout, word
    narrow = cli("show", "run", "--metric", "modules", "--filter", "*.self_attn", "--format", "csv").stdout
    assert "in_proj" not in narrow
    assert "self_attn" in narrow
    assert cli("show", "run", "--metric", "rtf", "--filter", "x").returncode == 2

    judged = cli("compare", "run", "run", "--metric", "modules", "--format", "json")
    verdicts = {v["scope"]: v for v in json.loads(judged.stdout)["verdicts"]}
    assert verdicts["within:encoder.layers.*.self_attn"]["ratio"] == pytest.approx(1.0)
    assert "unattributed" in verdicts


def test_a_users_model_and_loss_are_trained_on_sound(cli, workshop):
    (workshop / "mine.py").write_text(MINE)
    (workshop / "plan.yaml").write_text(
        "train: [{name: mine, load: 'python:mine.py:make'}]\nworkload: audio\nseconds: 0.1\nbatch: 2\noptimizer: sgd\n"
        "meters: [latency, modules]\nthreads: 1\nrounds: 1\nrepeats: 2\n"
    )
    refused = cli("run", "plan.yaml", "-o", "run")
    assert refused.returncode == 2
    assert "--trust" in refused.stderr
    done = cli("run", "plan.yaml", "-o", "run", "--trust")
    assert done.returncode == 0, done.stderr
    (record,) = records_of(workshop, "run")
    rows = {m["scope"]: m for m in record["measurements"] if m["metric"] == "time_module.v1"}
    assert {"forward", "backward"} <= set(rows["module:Model.layers.2"]["notes"])
    assert "layers.*" in cli("show", "run", "--metric", "modules").stdout


def test_the_plan_of_the_study_is_sound(cli):
    from pathlib import Path

    plan = Path(__file__).parents[2] / "plans/conformer-modules.yaml"
    published = (
        "layers=12",
        "width=512",
        "heads=8",
        "inner=2048",
        "max_frames=30000",
        "shapes.steps=20",
        "pairing=columns",
    )
    done = cli("run", str(plan), "--dry-run", *(part for one in published for part in ("--set", one)))
    assert done.returncode == 0, done.stderr
    assert "2 cases, 0 skipped, 0 unavailable" in done.stdout
