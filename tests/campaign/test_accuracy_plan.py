"""plans/accuracy-vs-cost.yaml with a few of its utterances: scores beside cost of recognisers with real weights."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.campaign
pytest.importorskip("moonshine_voice", reason="needs moonshine-voice")
pytest.importorskip("pocketsphinx", reason="needs pocketsphinx")
pytest.importorskip("jiwer", reason="needs jiwer")

PLAN = Path(__file__).parents[2] / "plans/accuracy-vs-cost.yaml"


def test_scores_and_cost_stand_in_one_table(cli, workshop):
    done = cli("run", str(PLAN), "-o", "run", "--quick", "--set", "data.count=4", "--set", "repeats=1")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
    assert [record["status"] for record in records] == ["ok"] * 4
    for record in records:
        found = {(m["metric"], m["scope"]): m["values"] for m in record["measurements"]}
        assert len(found["word_errors.v1", "total"]) == len(found["reference_words.v1", "total"]) == 4
        assert found["items_refused.v1", "total"] == [0.0]
    lines = (workshop / "run/artifacts" / records[0]["id"] / "utterances.jsonl").read_text().splitlines()
    assert {*json.loads(lines[0])} == {"audio_filepath", "duration", "time", "text", "pred_text"}
    table = json.loads(cli("show", "run", "--metric", "quality", "--format", "json").stdout)
    assert "on the front" in json.dumps(table)
    scored = cli("data", "score", *map(str, (workshop / "run/artifacts").rglob("utterances.jsonl")))
    assert scored.returncode == 0, scored.stderr
    assert "RTFx" in scored.stdout
