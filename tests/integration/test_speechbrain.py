"""SpeechBrain through the command, in fresh processes, with random weights."""

import json
from importlib.util import find_spec

import pytest
from speechbrain_models import MODELS

from speechmeter.subjects.torchaudio_stand_in import torchaudio_or_stand_in

pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.skipif(find_spec("speechbrain") is None, reason="needs speechbrain")


def plan(workshop, kind, meters):
    model = f"{{name: {kind}, load: 'speechbrain:{MODELS / kind}'}}"
    (workshop / "plan.yaml").write_text(f"models: [{model}]\nseconds: 1\nbatch: 2\nmeters: [{meters}]\n")


PARTS = ("encoder", "embedding", "attending", "output")


def weights_in(directory, *parts):
    from hyperpyyaml import load_hyperpyyaml

    with torchaudio_or_stand_in(), (directory / "hyperparams.yaml").open() as stream:
        built = load_hyperpyyaml(stream)
    return sum(weight.numel() for part in parts for weight in built[part].parameters())


def measured(cli, workshop):
    done = cli("run", "plan.yaml", "--trust", "--quick", "-o", "run", HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    (record,) = map(json.loads, (workshop / "run/records.jsonl").read_text().splitlines())
    assert record["status"] == "ok", record["reason"]
    return {(m["metric"], m["scope"]): m for m in record["measurements"]}


def test_a_classifier_is_measured_by_stage(cli, workshop):
    plan(workshop, "EncoderClassifier", "latency, flops")
    found = measured(cli, workshop)
    stages = {scope for metric, scope in found if metric == "latency.v1"}
    assert stages == {"total", "stage:load", "stage:copy", "stage:features", "stage:model", "stage:decode"}
    by_stage = [found["flops.v1", f"stage:{name}"]["values"][0] for name in ("features", "model")]
    assert min(by_stage) > 0
    assert found["flops.v1", "total"]["values"] == [sum(by_stage)]
    assert found["flops.v1", "total"]["notes"]["counted on"] == "shapes alone"


@pytest.mark.campaign
def test_a_recogniser_with_random_weights_says_what_it_is(cli, workshop):
    plan(workshop, "EncoderDecoderASR", "latency, parameters")
    found = measured(cli, workshop)
    assert found["latency.v1", "stage:search"]["values"]
    assert found["parameters.v1", "total"]["values"] == [weights_in(MODELS / "EncoderDecoderASR", *PARTS)]
    notes = found["items.v1", "total"]["notes"]["notes"]
    assert "random weights: calls cost the same as with trained ones, but the output has no meaning" in notes
    assert "no tokenizer files: output is token ids" in notes


def test_a_plan_may_not_name_it_without_trust(cli, workshop):
    plan(workshop, "EncoderASR", "latency")
    done = cli("run", "plan.yaml", "--quick", "-o", "run")
    assert done.returncode == 2
    assert "runs code that the plan names" in done.stderr
    assert "--trust" in done.stderr
    assert not (workshop / "run").exists()


def test_what_the_file_names_and_is_not_there_becomes_the_reason(cli, workshop):
    (workshop / "hyperparams.yaml").write_text("type: EncoderASR\nmodules:\n  encoder: !new:speechbrain.nothing.Here\n")
    done = cli("run", "--model", "speechbrain:.", "--seconds", "1", "--quick", "--meters", "latency", "-o", "run")
    assert "Traceback" not in done.stdout + done.stderr
    (record,) = map(json.loads, (workshop / "run/records.jsonl").read_text().splitlines())
    assert record["status"] == "error"
    assert "speechbrain.nothing.Here" in record["reason"]
