"""`compare` on real runs: two subjects side by side, two runs, another interpreter."""

import json
import sys

import pytest

SPIN = """
import time
from speechmeter import Prepared, Stage

def spin(milliseconds):
    def fn(batch):
        end = time.perf_counter() + milliseconds / 1000
        while time.perf_counter() < end:
            pass
    return lambda: Prepared(stages=(Stage(name="model", fn=fn),))

same = spin(40)
twin = spin(40)
slower = spin(48)
"""
FAST = ["--seconds", "1", "--meters", "latency", "--set", "samples=3", "--set", "warmup=0"]


@pytest.fixture
def spin(workshop):
    (workshop / "spin.py").write_text(SPIN)
    return workshop


@pytest.mark.campaign
def test_identical_code_is_the_same_and_a_planted_slowdown_is_found(spin, cli):
    models = [word for name in ("same", "twin", "slower") for word in ("--model", f"python:spin.py:{name}")]
    made = cli("run", *models, *FAST, "--rounds", "16", "-o", "run")
    assert made.returncode == 0, made.stderr
    same = cli("compare", "run@model=spin:same", "run@model=spin:twin", "--min-effect", "10%", "--format", "json")
    assert same.returncode == 0, same.stdout + same.stderr
    (found,) = json.loads(same.stdout)["verdicts"]
    assert (found["verdict"], found["paired"], found["rounds"]) == ("SAME", True, 16)
    slower = cli("compare", "run@model=spin:same", "run@model=spin:slower", "--min-effect", "10%", "--format", "github")
    assert slower.returncode == 1
    assert "**Regression:** spin:slower · cpu · 1 s × 1 latency SLOWER" in slower.stdout
    assert "16 adjacent pairs" in slower.stdout
    shown = json.loads(cli("show", "run", "--metric", "latency", "--format", "json").stdout)
    texts = {table["title"].partition(" ")[0]: table["rows"][0]["cells"][0]["text"] for table in shown}
    assert found["base"]["text"].split(" ±")[0] == texts["spin:same"].split(" ±")[0]
    markdown = cli("compare", "run@model=spin:same", "run@model=spin:slower", "--format", "markdown").stdout
    assert f"| {texts['spin:same']} | {texts['spin:slower']} |" in markdown


def test_one_round_cannot_tell(spin, cli):
    for name in ("a", "b"):
        assert cli("run", "--model", "python:spin.py:same", *FAST, "--quick", "-o", name).returncode == 0
    done = cli("compare", "a", "b")
    assert done.returncode == 3
    assert "CANNOT TELL" in done.stdout
    assert "with only 1 round, there is no interval" in done.stdout


def test_two_runs_are_compared_unpaired_and_parameters_exactly(spin, cli):
    for name in ("a", "b"):
        assert cli("run", "--model", "python:spin.py:same", *FAST, "--rounds", "3", "-o", name).returncode == 0
    done = cli("compare", "a", "b", "--min-effect", "50%", "--format", "json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["verdicts"][0]["paired"] is False
    (spin / "limits.yaml").write_text("latency: 50%\nrtf: 60%\n")
    done = cli("compare", "a", "b", "--thresholds", "limits.yaml", "--format", "json")
    assert [v["metric"] for v in json.loads(done.stdout)["verdicts"]] == ["latency.v1", "rtf.v2"]


def test_a_changed_thread_count_is_refused_with_the_difference(spin, cli):
    for threads in ("1", "2"):
        args = ["--threads", threads, "-o", f"threads{threads}"]
        assert cli("run", "--model", "python:spin.py:same", *FAST, "--rounds", "2", *args).returncode == 0
    refused = cli("compare", "threads1", "threads2")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "threads: 1 in BASE, 2 in NEW" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    allowed = cli("compare", "threads1", "threads2", "--allow-different", "--min-effect", "90%")
    assert allowed.returncode != 2, allowed.stderr  # which verdict it is depends on how busy the machine was
    assert "different: threads: 1 in BASE, 2 in NEW" in allowed.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["absent", "absent"], "absent: there is no such directory"),
        (["run@model=nobody", "run"], "no record has model nobody; the run has only spin:same"),
        (["run@model", "run"], "is not key=value"),
        (["run", "run", "--min-effect", "much"], "--min-effect: 'much' is not a percentage above 0"),
        (["run", "run", "--metric", "latancy"], "did you mean 'latency'?"),
        (["run", "run", "--format", "xml"], "--format"),
        (["run", "run", "--thresholds", "none.yaml"], "none.yaml"),
    ],
)
def test_bad_input(args, words, spin, cli):
    assert cli("run", "--model", "python:spin.py:same", *FAST, "--quick", "-o", "run").returncode == 0
    done = cli("compare", *args)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr


def other_python(folder):
    """An interpreter with code of its own: one more module, which it imports when it starts."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("")
    (folder / "python").write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
    (folder / "python").chmod(0o755)
    return str(folder / "python")


def test_another_interpreter_is_measured_side_by_side(spin, cli):
    args = [
        "run",
        "--model",
        "python:spin.py:same",
        *FAST,
        "--rounds",
        "4",
        "--baseline-python",
        other_python(spin / "other"),
        "-o",
        "run",
    ]
    made = cli(*args)
    assert made.returncode == 0, made.stderr
    records = [json.loads(line) for line in (spin / "run/records.jsonl").read_text().splitlines()]
    assert [r["case"]["axes"]["variant"] for r in records] == ["baseline", "this", "this", "baseline"] * 2
    done = cli("compare", "run@variant=baseline", "run@variant=this", "--min-effect", "50%", "--format", "json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["verdicts"][0]["paired"] is True
    assert cli(*args, "--resume").returncode == 0
    refused = cli(*args[:-4], "--baseline-python", "/no/python", "-o", "refused")
    assert refused.returncode == 2
    assert "--baseline-python: cannot start /no/python" in refused.stderr
    empty = cli(*args[:-4], "--baseline-python", "/bin/false", "-o", "refused")
    assert "cannot import Speechmeter" in empty.stderr
    assert not (spin / "refused").exists()


@pytest.mark.campaign
def test_adaptive_rounds_go_on_where_the_spread_is(workshop, cli):
    (workshop / "noise.py").write_text(
        "import time\n"
        "from pathlib import Path\n"
        "from speechmeter import Prepared, Stage\n"
        "def chain(pause):\n"
        "    return Prepared(stages=(Stage(name='model', fn=lambda batch: time.sleep(pause)),))\n"
        "def quiet():\n    return chain(0.1)\n"
        "def wild():\n"  # every process takes another time, whatever it is started for
        "    turns = Path('turns')\n"
        "    before = turns.read_text() if turns.exists() else ''\n"
        "    turns.write_text(before + 'x')\n"
        "    return chain((0.02, 0.3, 0.07, 0.2, 0.03)[len(before) % 5])\n"
    )
    (workshop / "plan.yaml").write_text(
        "models: [python:noise.py:quiet]\nmax_rounds: 8\nprecision: 30%\nmeters: [latency]\nsamples: 2\nwarmup: 0\n"
    )
    assert cli("run", "plan.yaml", "--trust", "-o", "quiet").returncode == 0
    done = cli("run", "plan.yaml", "--trust", "--model", "python:noise.py:wild", "-o", "wild")
    assert done.returncode == 0, done.stderr
    counts = {name: len((workshop / name / "records.jsonl").read_text().splitlines()) for name in ("quiet", "wild")}
    assert counts == {"quiet": 6, "wild": 8}
    before = (workshop / "wild/records.jsonl").read_bytes()
    again = cli("run", "plan.yaml", "--trust", "--model", "python:noise.py:wild", "-o", "wild", "--resume")
    assert again.returncode == 0, again.stderr
    assert (workshop / "wild/records.jsonl").read_bytes() == before
    budget = ["--set", "limits.run_s=0.1", "-o", "budget"]
    assert cli("run", "plan.yaml", "--trust", "--model", "python:noise.py:wild", *budget).returncode == 0
    assert len((workshop / "budget/records.jsonl").read_text().splitlines()) == 5
