"""s3prl's upstreams, small and with random weights; one through the command."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from conftest import make_case

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch, Spec
from speechmeter.subjects.s3prl import UPSTREAMS, S3prlSubject

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.skipif(
    find_spec("s3prl") is None or find_spec("omegaconf") is None, reason="needs s3prl and omegaconf"
)

LAYERS = "[(16,10,5)] + [(16,3,2)] * 4 + [(16,2,2)] * 2"
SMALL = {"encoder_layers": 2, "encoder_embed_dim": 32, "encoder_ffn_embed_dim": 64, "encoder_attention_heads": 2,
         "conv_feature_layers": LAYERS}  # fmt: skip
FRAMES = 49  # what is left of 16000 samples after strides 5, 2, 2, 2, 2, 2, 2


def case_of(name, config):
    return make_case(subject=Spec(plugin="s3prl", name=name, source=name, options={"config": config}))


@pytest.mark.parametrize("name", UPSTREAMS)
def test_each_upstream_gives_a_state_for_every_layer_and_its_input(name):
    config = dict(SMALL)
    if name == "distiller":
        config["extractor_conv_feature_layers"] = config.pop("conv_feature_layers")
    prepared = S3prlSubject().prepare(case_of(name, config), "cpu")
    waves = np.random.default_rng(0).standard_normal((2, 16000)).astype(np.float32)
    state = Batch(data=waves, items=2, lengths=(16000, 12000), audio_s=1.75, padded_s=2.0)
    for stage in prepared.stages:
        state = stage.fn(state)
    assert {tuple(hidden.shape) for hidden in state if hidden.shape[-1] == 32} == {(2, FRAMES, 32)}
    assert len(state) >= SMALL["encoder_layers"] + 1
    assert all(torch.isfinite(hidden).all() for hidden in state)
    assert "random weights: calls cost the same as with trained ones, but the output has no meaning" in prepared.notes


@pytest.mark.parametrize("name", UPSTREAMS)
def test_a_misspelt_key_is_refused_where_s3prl_would_pass_over_it(name):
    with pytest.raises(SubjectError, match="did you mean 'encoder_layers'"):
        S3prlSubject().prepare(case_of(name, {"encoder_layer": 6}), "cpu")


def test_through_the_command(cli, workshop):
    config = json.dumps(SMALL)
    (workshop / "plan.yaml").write_text(
        f"models: [{{name: small, load: 's3prl:wav2vec2', config: {config}}}]\nseconds: 1\nmeters: [latency, flops]\n"
    )
    done = cli("run", "plan.yaml", "--quick", "-o", "run")
    assert done.returncode == 0, done.stderr
    (record,) = map(json.loads, (workshop / "run/records.jsonl").read_text().splitlines())
    assert record["status"] == "ok", record["reason"]
    found = {(m["metric"], m["scope"]): m for m in record["measurements"]}
    assert {scope for metric, scope in found if metric == "latency.v1"} == {
        "total", "stage:load", "stage:copy", "stage:model",
    }  # fmt: skip
    assert found["flops.v1", "total"]["values"] == found["flops.v1", "stage:model"]["values"]
