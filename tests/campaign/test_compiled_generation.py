"""Models that generate, compiled in part: the same tokens and sound as without, and a note that names the parts."""

import json

import pytest
import yaml
from tiny_models import entry

pytestmark = pytest.mark.campaign
pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

TINY = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
}  # fmt: skip


def test_compiled_parts_are_named_and_change_nothing(cli, workshop):
    plan = {
        "models": [
            {"name": "whisper", "load": "transformers:whisper", "config": TINY},
            entry("parakeet_rnnt"),
            entry("speecht5", head="s2st", vocoder="random"),
        ],
        "compile": [False, True], "audio": "sample", "seconds": 1, "max_new_tokens": 8, "threads": 1, "rounds": 1,
        "warmup": 0, "samples": 1, "min_samples": 1, "meters": ["latency"], "save_speech": True,
    }  # fmt: skip
    (workshop / "plan.yaml").write_text(yaml.safe_dump(plan))
    done = cli("run", "plan.yaml", "-o", "run", "--launcher", "inline", timeout_s=1500)
    assert done.returncode == 0, done.stderr
    parts, made = {}, {}
    for line in (workshop / "run/records.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert record["status"] == "ok", record["reason"]
        name, case = record["case"]["subject"]["name"], record["case"]
        found = {(m["metric"], m["scope"]): m for m in record["measurements"]}
        if case["axes"]["compile"]:
            told = found["items.v1", "total"]["notes"]["notes"]
            parts[name] = next(note for note in told if note.startswith("torch.compile"))
        texts = workshop / "run/artifacts" / record["id"] / "text.tsv"
        sound = found.get(("audio_made_seconds.v1", "total"), {}).get("values")
        made.setdefault(name, []).append((texts.read_text() if texts.exists() else None, sound))
    assert "encoder and decoder step" in parts["whisper"]
    assert "encoder and vocoder" in parts["speecht5-s2st"]
    assert parts["parakeet_rnnt-natural"].startswith("torch.compile: encoder;")
    assert all(plain == compiled and plain != (None, None) for plain, compiled in made.values())
