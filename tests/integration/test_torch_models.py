"""Real torch and transformers models in fresh processes, small and with random weights."""

import json

import pytest

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 40,
         "conv_dim": [32] * 7}  # fmt: skip


def records(workshop):
    return [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]


def readings(record):
    return {(m["metric"], m["scope"]): m for m in record["measurements"]}


@pytest.mark.campaign
def test_a_local_directory_with_weights_but_no_tokenizer(cli, workshop):
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    model = Wav2Vec2ForCTC(Wav2Vec2Config(**SMALL))
    model.save_pretrained(workshop / "model")
    done = cli(
        "run", "--model", "transformers:model", "--seconds", "1,2", "--batch", "4", "--quick", "-o", "run",
        "--set", "samples=3", "--set", "warmup=1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = records(workshop)
    assert [r["status"] for r in found] == ["ok"] * 2, [r["reason"] for r in found]
    cells = {(r["case"]["axes"]["seconds"], r["case"]["axes"]["batch"]): readings(r) for r in found}
    assert cells[2, 4]["audio_seconds.v1", "total"]["values"] == [8.0]
    count = sum(p.numel() for p in model.parameters())
    assert cells[1, 4]["parameters.v1", "total"]["values"] == [count]
    peak = {key: max(cell["memory_cpu_peak.v1", "total"]["values"]) for key, cell in cells.items()}
    assert peak[2, 4] > 1.5 * peak[1, 4]
    stages = {scope for metric, scope in cells[1, 4] if metric == "latency.v1"}
    assert stages == {"total", "stage:load", "stage:features", "stage:copy", "stage:model", "stage:decode"}
    notes = cells[1, 4]["items.v1", "total"]["notes"]["notes"]
    assert notes == ["no tokenizer files: output is token ids"]
    assert "real-time factor" in done.stdout
    assert "peak memory" in done.stdout


def test_an_encoder_decoder_from_a_config_file_pins_its_length(cli, workshop):
    config = {"model_type": "whisper", "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
              "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
              "vocab_size": 60, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 4,
              "num_mel_bins": 80, "suppress_tokens": None, "begin_suppress_tokens": None}  # fmt: skip
    (workshop / "tiny.json").write_text(json.dumps(config))
    done = cli(
        "run", "--model", "transformers:tiny.json", "--quick", "--seconds", "1", "--set", "max_new_tokens=7",
        "-o", "run", "--meters", "latency,flops", "--launcher", "inline",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = records(workshop)
    assert record["status"] == "ok", record["reason"]
    tokens = [(m["scope"], m["values"]) for m in record["measurements"] if m["metric"] == "tokens.v1"]
    assert tokens == [("total", [7.0]), ("stage:model", [7.0])]
    assert readings(record)["flops.v1", "total"]["values"][0] > 0
    notes = readings(record)["items.v1", "total"]["notes"]["notes"]
    assert "output length fixed at 7 tokens" in notes
    assert any(note.startswith("random weights") for note in notes)


def test_a_users_own_module(cli, workshop):
    (workshop / "mymodel.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.conv = torch.nn.Conv1d(1, 4, 400, 160)\n"
        "    def forward(self, x):\n"
        "        assert x.dtype == torch.float32 and x.shape == (2, 16000) and not torch.is_grad_enabled()\n"
        "        return self.conv(x[:, None])\n"
        "def make():\n"
        "    return Net()\n"
    )
    args = ["run", "--model", "python:mymodel.py:make", "--seconds", "1", "--batch", "2", "--quick", "--threads", "1"]
    done = cli(*args, "-o", "run")
    assert done.returncode == 0, done.stderr
    (record,) = records(workshop)
    assert record["status"] == "ok", record["reason"]
    assert readings(record)["parameters.v1", "total"]["values"] == [4 * 400 + 4]
    (environment,) = map(json.loads, (workshop / "run/environments.jsonl").read_text().splitlines())
    assert environment["facts"]["threads"] == {"asked": 1, "OMP_NUM_THREADS": "1", "torch": 1}
    assert environment["fingerprint"] == record["environment"]


def test_cores_are_pinned_and_the_module_may_be_compiled_or_half(cli, workshop):
    (workshop / "net.py").write_text("import torch\ndef make():\n    return torch.nn.Conv1d(1, 4, 400, 160)\n")
    (workshop / "wrapped.py").write_text(
        "import torch\n"
        "class Wrapped(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.net = torch.nn.Conv1d(1, 4, 400, 160)\n"
        "    def forward(self, x):\n"
        "        return self.net(x[:, None])\n"
    )
    done = cli(
        "run", "--model", "python:wrapped.py:Wrapped", "--seconds", "1", "--quick", "--cores", "1",
        "--dtype", "float32,bfloat16", "--meters", "latency,parameters", "-o", "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    single, half = records(workshop)
    assert (single["status"], half["status"]) == ("ok", "ok")
    assert readings(half)["parameter_bytes.v1", "total"]["values"] == [2 * 1604]
    (environment,) = {
        tuple(json.loads(line)["facts"]["cores"]) for line in (workshop / "run/environments.jsonl").open()
    }
    assert len(environment) == 1


def test_log_mel_equals_a_direct_computation():
    import numpy as np
    import torch

    from speechmeter.subjects.mel import mel_bands
    from speechmeter.subjects.zoo.chain import LogMel

    wave = np.random.default_rng(0).standard_normal(4000).astype(np.float32)
    ours = LogMel()(torch.from_numpy(wave)[None])[0].numpy()
    padded = np.pad(wave, 200)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    frames = np.stack([padded[start : start + 400] * window for start in range(0, len(padded) - 399, 160)])
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    np.testing.assert_allclose(ours, np.log(np.array(mel_bands()) @ power.T + 1e-10), rtol=1e-3, atol=1e-3)
