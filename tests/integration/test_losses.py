"""Transducer losses as a user runs them: measured, counted, held against the oracle; absent ones with their reason."""

import json

import pytest

pytest.importorskip("torch", reason="needs torch")

SIZES = [(12, 3), (9, 5), (7, 2), (11, 4)]
VOCABULARY, WIDTH = 13, 512
PLAN = f"""
losses: [ours, warp-rnnt]
shapes: {{file: tiny.tsv}}
batch: 2
part: step
vocabulary: {VOCABULARY}
meters: [latency, parameters, flops, agreement]
rounds: 1
repeats: 2
"""


@pytest.fixture
def records(cli, workshop):
    (workshop / "tiny.tsv").write_text("frames\ttokens\n" + "".join(f"{t}\t{u}\n" for t, u in SIZES))
    (workshop / "plan.yaml").write_text(PLAN)
    done = cli("run", "plan.yaml", "-o", "run", "--set", "threads=1")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
    return {line["case"]["subject"]["name"]: line for line in lines}


def test_a_step_is_measured_and_what_is_absent_says_why(records):
    ours = {(m["metric"], m["scope"]): m for m in records["ours"]["measurements"]}
    assert records["ours"]["status"] == "ok", records["ours"]["reason"]
    assert len(ours["latency.v1", "total"]["values"]) == 2
    for stage in ("joiner", "loss", "backward"):
        assert ours["latency.v1", f"stage:{stage}"]["notes"]["clocked"]
    assert not ours["latency.v1", "stage:input"]["notes"]["clocked"]

    batches = [SIZES[:2], SIZES[2:]]
    padded = [2 * max(t for t, _ in b) * (max(u for _, u in b) + 1) for b in batches]
    assert ours["cells_padded.v1", "total"]["values"] == padded
    assert ours["cells.v1", "total"]["values"] == [sum(t * (u + 1) for t, u in b) for b in batches]

    assert ours["parameters.v1", "total"]["values"] == [WIDTH * VOCABULARY + VOCABULARY]
    assert ours["flops.v1", "stage:joiner"]["values"] == [2 * cells * WIDTH * VOCABULARY for cells in padded]
    assert ours["flops.v1", "total"]["notes"]["counted on"] == "a real run"
    assert "lengths" in ours["flops.v1", "total"]["notes"]["because"]

    assert ours["loss_deviation.v1", "total"]["values"][0] <= 1e-6
    assert ours["gradient_deviation.v1", "label:original size"]["values"][0] <= 1e-5
    assert any("keep: none" in note for note in ours["items.v1", "total"]["notes"]["notes"])

    absent = records["warp-rnnt"]
    assert absent["status"] == "unavailable"
    assert "warp_rnnt is not installed: build it from source" in absent["reason"] or "cuda only" in absent["reason"]


def test_a_loss_that_is_unknown_is_refused_before_anything_is_written(cli, workshop):
    (workshop / "plan.yaml").write_text("losses: [our]\nbatch: 2\n")
    done = cli("run", "plan.yaml", "-o", "run")
    assert done.returncode == 2
    assert "plan.yaml:1" in done.stderr
    assert "did you mean 'ours'?" in done.stderr
    assert not (workshop / "run").exists()
