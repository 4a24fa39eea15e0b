"""A model of 1.5 billion parameters, counted from its configuration alone on a small machine."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.campaign
pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

WIDTH, LAYERS, BANDS, VOCABULARY, TOKENS = 1280, 32, 128, 51866, 4
WHISPER_LARGE_V3 = {
    "model_type": "whisper", "d_model": WIDTH, "encoder_layers": LAYERS, "decoder_layers": LAYERS,
    "encoder_attention_heads": 20, "decoder_attention_heads": 20, "encoder_ffn_dim": 4 * WIDTH,
    "decoder_ffn_dim": 4 * WIDTH, "num_mel_bins": BANDS, "vocab_size": VOCABULARY, "pad_token_id": 50256,
    "bos_token_id": 50257, "eos_token_id": 50257, "decoder_start_token_id": 50258, "begin_suppress_tokens": None,
}  # fmt: skip
PARAMETERS = 1_543_490_560
MOST_KIB = 2 * 1024**2
# Runs the command and prints the highest resident size of any process below it, in KiB.
WITNESS = (
    "import resource, subprocess, sys\n"
    "code = subprocess.call(sys.argv[1:], stdout=sys.stderr)\n"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    "sys.exit(code)\n"
)


def encoder_flops():
    """One window of 30 s: two convolutions, then 1500 positions through every layer."""
    positions = 1500
    convolutions = 2 * 3 * WIDTH * (3000 * BANDS + positions * WIDTH)
    layer = 2 * positions * (4 + 2 * 4) * WIDTH**2 + 2 * 2 * positions**2 * WIDTH
    return convolutions + LAYERS * layer


def test_whisper_large_is_counted_in_less_than_two_gigabytes(workshop):
    (workshop / "large.json").write_text(json.dumps(WHISPER_LARGE_V3))
    command = [
        sys.executable, "-m", "speechmeter", "run", "--model", "transformers:large.json", "--meters",
        "flops,parameters", "--seconds", "1", "--set", f"max_new_tokens={TOKENS}", "--quick", "--offline", "-o", "run",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", WITNESS, *command],
        cwd=workshop, env=os.environ, capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = map(json.loads, (workshop / "run/records.jsonl").read_text().splitlines())
    assert record["status"] == "ok", record["reason"]
    found = {(m["metric"], m["scope"]): m for m in record["measurements"]}
    assert found["parameters.v1", "total"]["values"] == [PARAMETERS]
    flops = found["flops.v1", "total"]
    assert flops["notes"]["counted on"] == "shapes alone"
    assert flops["notes"]["unknown"] == {}
    assert found["flops.v1", "module:model.model.encoder"]["values"] == [pytest.approx(encoder_flops(), rel=1e-3)]
    assert flops["values"][0] > found["flops.v1", "module:model.model.encoder"]["values"][0]
    assert int(done.stdout) < MOST_KIB
    assert int(done.stdout) > 200 * 1024  # the measuring process was among them: torch alone is that large
