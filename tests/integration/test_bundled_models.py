"""Models whose weights come with their package, through the command: real text, real refusals, no figure invented."""

import itertools
import json
import sys

import pytest

QUICK = ("--audio", "sample", "--quick", "--threads", "1", "--set", "repeats=2", "-o", "run")
NETWORK_FLOPS = 2 * (
    4 * 258 * 256 + 4 * 128 * 129 * 3 + 2 * 64 * 128 * 3 + 64 * 64 * 3 + 128 * 64 * 3 + 512 * 256 + 128
)
"""Silero VAD on one window of 512 samples: transform, four convolutions, an LSTM cell, a projection."""


def records(workshop):
    return [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]


def readings(record):
    return {(m["metric"], m["scope"]): m for m in record["measurements"]}


def missing(table, model):
    """The second cell of a model's row, whose text may be folded, without its spaces."""
    rows = [[cell.strip() for cell in line.split("│")] for line in table.splitlines() if line.startswith("│")]
    start = next(index for index, row in enumerate(rows) if row[1] == model)
    folded = itertools.takewhile(lambda row: not row[1], rows[start + 1 :])
    return "".join("".join(row[2].split()) for row in [rows[start], *folded])


@pytest.mark.parametrize(
    ("model", "package"), [("moonshine-voice", "moonshine_voice"), ("pocketsphinx", "pocketsphinx")]
)
def test_a_recogniser_outside_torch_is_timed_and_its_inside_is_unavailable(cli, workshop, model, package):
    pytest.importorskip(package, reason=f"needs {package}")
    done = cli(
        "run", "--model", model, "--seconds", "2", "--dtype", "float32,bfloat16",
        "--meters", "latency,parameters,flops", *QUICK,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    by_dtype = {record["case"]["axes"]["dtype"]: record for record in records(workshop)}
    assert by_dtype["bfloat16"]["status"] == "unavailable"
    assert "not bfloat16" in by_dtype["bfloat16"]["reason"]
    record = by_dtype["float32"]
    assert record["status"] == "ok", record["reason"]
    found = readings(record)
    assert min(found["latency.v1", "total"]["values"]) > 0
    for metric in ("parameters.v1", "parameter_bytes.v1", "flops.v1"):
        assert found[metric, "total"]["values"] == []
        assert "torch" in found[metric, "total"]["unavailable"]
    assert "element_ops.v1" not in {metric for metric, _ in found}


def test_silero_counts_its_network_and_keeps_the_threads_asked_for(cli, workshop):
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("silero_vad", reason="needs silero-vad")
    quick = [part if part != "1" else "2" for part in QUICK]
    done = cli("run", "--model", "silero-vad", "--seconds", "0.32", "--batch", "2",
               "--meters", "latency,parameters,flops", *quick)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = records(workshop)
    assert record["status"] == "ok", record["reason"]
    found = readings(record)
    assert found["parameters.v1", "total"]["values"] == [243_585]
    assert found["flops.v1", "total"]["values"] == [2 * 10 * NETWORK_FLOPS]
    stages = {scope for metric, scope in found if metric == "latency.v1"}
    assert stages == {"total", "stage:load", "stage:copy", "stage:model", "stage:decode"}
    threads = [json.loads(line)["facts"]["threads"] for line in (workshop / "run/environments.jsonl").open()]
    assert {(fact["asked"], fact["torch"]) for fact in threads} == {(2, 2)}


@pytest.mark.parametrize(
    ("model", "package", "extra"),
    [
        ("moonshine-voice", "moonshine_voice", "moonshine"),
        ("pocketsphinx", "pocketsphinx", "pocketsphinx"),
        ("silero-vad", "silero_vad", "silero-vad"),
    ],
)
def test_a_missing_package_is_named_with_the_way_to_get_it(cli, workshop, monkeypatch, model, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    done = cli("run", "--model", model, "-o", "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{package} is not installed: pip install 'speechmeter[{extra}]'" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (workshop / "run").exists()
    assert missing(cli("models").stdout, model) == f"{package}isnotinstalled:pipinstall'speechmeter[{extra}]'"


def test_a_wrong_model_directory_is_refused_before_anything_is_written(cli, workshop):
    pytest.importorskip("moonshine_voice", reason="needs moonshine-voice")
    done = cli("run", "--model", "moonshine-voice:nowhere", "--threads", "1", "-o", "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no directory 'nowhere'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (workshop / "run").exists()
