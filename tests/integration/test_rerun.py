"""`rerun` on real runs: the verdict, every difference of the environment, and what is refused before anything runs."""

import json

import pytest

FAST = ["--meters", "latency,parameters", "--set", "repeats=3", "--set", "discard=0", "--rounds", "2"]


@pytest.fixture
def made(workshop, cli):
    done = cli("run", "--model", "python:fakes.py:slow", "--seconds", "1,2", *FAST, "-o", "run")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
    return {record["case"]["axes"]["seconds"]: record["id"] for record in records}


def test_a_case_is_measured_again_with_its_own_protocol_and_judged(workshop, cli, made):
    environments = workshop / "run/environments.jsonl"
    facts = json.loads(environments.read_text().splitlines()[0])["facts"]
    changed = environments.read_text().replace(json.dumps(facts["cpu"]), '"an abacus"')
    environments.write_text(changed)
    done = cli("rerun", "run", made[2.0][:6], "--metric", "audio_seconds", "--trust", "-o", "again")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"reproduced: {made[2.0]}" in done.stdout
    assert f"cpu: 'an abacus' in BASE, {facts['cpu']!r} in NEW" in done.stdout
    assert "1 difference between the environments" in done.stdout
    assert "at the time: load " in done.stdout
    assert "NEW / BASE: audio_seconds " in done.stdout.splitlines()[-1]
    lines = [json.loads(line) for line in (workshop / "again/records.jsonl").read_text().splitlines()]
    assert [(line["id"], line["round"]) for line in lines] == [(made[2.0], 0), (made[2.0], 1)]


def test_a_figure_that_does_not_hold_is_exit_1(workshop, cli, made):
    fakes = workshop / "fakes.py"
    fakes.write_text(fakes.read_text().replace("time.sleep(0.1)", "time.sleep(0.3)"))
    done = cli("rerun", "run", made[1.0], "--metric", "latency", "--trust", "-o", "again")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not reproduced" in done.stdout
    assert "SLOWER" in done.stdout


def test_what_cannot_be_repeated_is_refused_and_nothing_is_written(workshop, cli, made):
    before = sorted(workshop.rglob("*"))
    untrusted = cli("rerun", "run", made[1.0], "-o", "again")
    assert (untrusted.returncode, "add --trust" in untrusted.stderr) == (2, True)
    unknown = cli("rerun", "run", "zzz", "--trust", "-o", "again")
    assert (unknown.returncode, made[1.0] in unknown.stderr) == (2, True)
    taken = cli("rerun", "run", made[1.0], "--trust", "-o", "run")
    assert (taken.returncode, "it already exists" in taken.stderr) == (2, True)
    assert sorted(path for path in workshop.rglob("*") if "__pycache__" not in path.parts) == [
        path for path in before if "__pycache__" not in path.parts
    ]
