"""Inference runtimes other than torch, in fresh processes, on small models with random weights made here."""

import json

import pytest
import tiny_ctc
import tiny_whisper

torch = pytest.importorskip("torch", reason="needs torch to make models")


def records(workshop):
    return [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]


def readings(record):
    return {(m["metric"], m["scope"]): m for m in record["measurements"]}


def export(module, shape, dynamic, path):
    torch.onnx.export(module.eval(), (torch.zeros(shape),), path, dynamo=True, dynamic_shapes=[dynamic], verbose=False)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(1, 16, 400, 160)
        self.linear = torch.nn.Linear(16, 40)

    def forward(self, wave):
        return self.linear(torch.relu(self.conv(wave[:, None])).transpose(1, 2))


def test_an_exported_graph_is_measured_and_its_weights_are_counted(cli, workshop):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    pytest.importorskip("onnxscript", reason="needs onnxscript to export")
    batch, time = torch.export.Dim("batch", max=64), torch.export.Dim("samples", min=400)
    export(Encoder(), (2, 16_000), {0: batch, 1: time}, workshop / "model.onnx")
    export(Encoder(), (1, 16_000), {1: time}, workshop / "fixed.onnx")
    done = cli(
        "run", "--model", "onnx:model.onnx", "--model", "onnx:fixed.onnx", "--seconds", "1", "--batch", "2", "--quick",
        "--threads", "1", "--meters", "latency,memory,parameters,flops", "-o", "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    good, fixed = records(workshop)
    found = readings(good)
    assert good["status"] == "ok", good["reason"]
    weights = sum(p.numel() for p in Encoder().parameters())
    axis = 1  # where the channel is put in: an int64 constant of the exported graph
    assert found["parameters.v1", "total"]["values"] == [weights + axis]
    assert found["memory_weights.v1", "total"]["values"] == [4 * weights + 8 * axis]
    assert "outside torch" in found["flops.v1", "total"]["unavailable"]
    assert {scope for metric, scope in found if metric == "latency.v1"} == {
        "total", "stage:load", "stage:copy", "stage:model",
    }  # fmt: skip
    assert "CPUExecutionProvider" in found["items.v1", "total"]["notes"]["notes"][0]
    assert fixed["status"] == "error"
    assert fixed["reason"].startswith("input 'wave' float (1, samples) is fixed and cannot take 2 × 16000")


def test_a_converted_whisper_with_random_weights(cli, workshop):
    pytest.importorskip("faster_whisper", reason="needs faster-whisper")
    pytest.importorskip("transformers", reason="needs transformers to make a model")
    tiny_whisper.convert(workshop / "saved", workshop / "converted")
    plan = 'models: [{name: tiny, load: "faster-whisper:converted", weights: random}]\nseconds: 1\nbatch: 2\n'
    (workshop / "plan.yaml").write_text(plan + "quantize: int8-dynamic\nmax_new_tokens: 6\nmeters: [latency]\n")
    done = cli("run", "plan.yaml", "--quick", "-o", "run")
    assert done.returncode == 0, done.stderr
    (record,) = records(workshop)
    found = readings(record)
    assert record["status"] == "ok", record["reason"]
    assert found["tokens.v1", "total"]["values"] == [12.0]
    assert {scope for metric, scope in found if metric == "latency.v1"} == {
        "total", "stage:load", "stage:features", "stage:model", "stage:decode",
    }  # fmt: skip
    assert not any("noise" in warning for warning in record["warnings"])


@pytest.mark.campaign
def test_openai_whisper_with_random_weights(cli, workshop):
    pytest.importorskip("tiktoken", reason="needs openai-whisper, which needs tiktoken")
    pytest.importorskip("whisper", reason="needs openai-whisper")
    done = cli(
        "run", "--model", "openai-whisper:tiny", "--seconds", "1", "--quick", "--set", "max_new_tokens=3",
        "--set", "samples=2", "--meters", "latency,parameters,flops", "-o", "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = records(workshop)
    found = readings(record)
    assert record["status"] == "ok", record["reason"]
    assert found["parameters.v1", "total"]["values"] == [37_184_640]
    frames, width, layers = 1500, 384, 4
    convolutions = 2 * 3 * width * (80 * 2 * frames + width * frames)
    encoder = convolutions + layers * (2 * 12 * width**2 * frames + 2 * 2 * frames**2 * width)
    assert found["flops.v1", "module:model.encoder"]["values"] == [encoder]
    tokens = {scope: m["values"] for (metric, scope), m in found.items() if metric == "tokens.v1"}
    assert tokens == {"total": [3.0], "stage:model": [3.0]}


def test_a_sherpa_onnx_recogniser_with_random_weights(cli, workshop):
    pytest.importorskip("sherpa_onnx", reason="needs sherpa-onnx")
    pytest.importorskip("onnx", reason="needs onnx to build a model")
    tiny_ctc.save(workshop / "ctc", "zipformer2_ctc")
    (workshop / "empty").mkdir()
    args = ["--seconds", "1", "--batch", "2", "--quick", "--meters", "latency,parameters", "-o", "run"]
    refused = cli("run", "--model", "sherpa-onnx:empty", *args)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "'empty' contains no .onnx file" in refused.stderr
    done = cli("run", "--model", "sherpa-onnx:ctc", *args)
    assert done.returncode == 0, done.stderr
    (record,) = records(workshop)
    found = readings(record)
    assert record["status"] == "ok", record["reason"]
    assert found["parameters.v1", "total"]["values"] == [tiny_ctc.PARAMETERS]
    assert {scope for metric, scope in found if metric == "latency.v1"} == {
        "total", "stage:load", "stage:features", "stage:model", "stage:decode",
    }  # fmt: skip
