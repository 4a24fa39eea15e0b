"""The built-in encoders through the command, in fresh processes."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch")


def records(workshop):
    return [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]


def readings(record):
    return {(m["metric"], m["scope"]): m for m in record["measurements"]}


def test_a_bare_word_names_an_encoder_whose_figures_come_from_shapes_alone(cli, workshop):
    done = cli("run", "--model", "apc", "--seconds", "1", "--batch", "2", "--quick",
               "--meters", "flops,parameters", "-o", "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    (apc,) = records(workshop)
    assert apc["status"] == "ok", apc["reason"]
    found = readings(apc)
    assert found["parameters.v1", "total"]["values"] == [4_105_296]
    assert found["flops.v1", "total"]["notes"]["counted on"] == "shapes alone"
    assert {"module:log-mel", "module:apc", "module:apc.layers.0"} <= {scope for _, scope in found}


def test_a_recogniser_of_the_zoo_is_timed_stage_by_stage(cli, workshop):
    (workshop / "plan.yaml").write_text(
        "models: [{name: small, load: conformer-ctc, vocabulary: 100}]\nseconds: 0.5\nmeters: [latency, parameters]\n"
    )
    done = cli("run", "plan.yaml", "--quick", "--repeats", "2", "-o", "run")
    assert done.returncode == 0, done.stderr
    (record,) = records(workshop)
    assert record["status"] == "ok", record["reason"]
    found = readings(record)
    stages = {scope for metric, scope in found if metric == "latency.v1"}
    assert stages == {"total", "stage:load", "stage:features", "stage:copy", "stage:model", "stage:decode"}
    assert found["parameters.v1", "total"]["values"] == [21_034_996 - 400 * 257]
    assert found["items.v1", "total"]["notes"]["notes"] == [
        "random weights: calls cost the same as with trained ones, but the output has no meaning"
    ]


def test_an_unknown_option_is_one_line(cli, workshop):
    (workshop / "plan.yaml").write_text("models: [{name: x, load: conformer-ctc, vocabulry: 100}]\n")
    done = cli("run", "plan.yaml", "-o", "run")
    assert done.returncode == 2
    assert "did you mean 'vocabulary'?" in done.stderr
    assert not (workshop / "run").exists()


def test_the_plan_of_the_encoder_study_gives_both_curves(cli):
    plan = Path(__file__).parents[2] / "plans/ssl-encoders.yaml"
    done = cli("run", str(plan), "--dry-run")
    assert done.returncode == 0, done.stderr
    kept = [line for line in done.stdout.splitlines() if line.endswith("· 1 round")]
    for model in ("log-mel", "mockingjay", "tera", "hubert", "wav2vec2", "apc", "cpc"):
        for cell in ("0.5 s × 1", "0.5 s × 2", "0.5 s × 4", "0.5 s × 8", "1 s × 1", "2 s × 1"):
            assert any(f"  {model} · cpu · {cell} " in line for line in kept), (model, cell)
