"""Killing a run loses at most the case under way."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ARGS = ["run", "--model", "python:fakes.py:slow", "--seconds", "1,2,3", "--meters", "latency",
        "--rounds", "2", "--set", "samples=2", "-o", "run"]  # fmt: skip
TOTAL = 6


def start(workshop):
    return subprocess.Popen(
        [sys.executable, "-m", "speechmeter", *ARGS], cwd=workshop, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def lines(workshop):
    path = workshop / "run/records.jsonl"
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def wait_for_records(workshop, count, process):
    deadline = time.monotonic() + 60
    while len(lines(workshop)) < count:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)


def marked(workshop):
    """Processes of this workshop's run that are still alive."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                inside = (entry / "cwd").readlink() == workshop.resolve()
            except OSError:
                continue
            if inside:
                found.append(int(entry.name))
    return found


def gone(workshop):
    deadline = time.monotonic() + 5
    while marked(workshop) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not marked(workshop)


LONG = pytest.mark.campaign


@pytest.mark.parametrize(
    "stop", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=LONG), pytest.param(signal.SIGTERM, marks=LONG)]
)
def test_a_run_has_one_writer_and_once_stopped_is_resumed_where_it_was(stop, workshop, cli):
    process = start(workshop)
    wait_for_records(workshop, 1, process)
    second = cli(*ARGS, "--resume")
    assert second.returncode == 2
    assert "another run is writing" in second.stderr
    wait_for_records(workshop, 2, process)
    time.sleep(0.3)
    process.send_signal(stop)
    _, errors = process.communicate(timeout=120)
    if stop is signal.SIGINT:
        assert process.returncode == 130
        assert b"interrupted" in errors
        assert b"Traceback" not in errors
    assert gone(workshop)
    before = lines(workshop)
    assert 2 <= len(before) < TOTAL

    with (workshop / "run/records.jsonl").open("ab") as file:
        file.write(b'{"schema":1,"torn')
    done = cli(*ARGS, "--resume")
    assert done.returncode == 0, done.stderr
    after = lines(workshop)
    assert after[: len(before)] == before
    keys = [(r["id"], r["round"]) for r in map(json.loads, after)]
    assert len(keys) == len(set(keys)) == TOTAL
    sequences = [json.loads(line)["sequence"] for line in after]
    assert sequences == list(range(TOTAL))
    assert f"/{TOTAL - len(before)}]" in done.stderr


def test_a_finished_run_is_not_measured_again(workshop, cli):
    args = ["run", "--model", "python:fakes.py:nothing", "--quick", "--meters", "latency", "-o", "run"]
    assert cli(*args).returncode == 0
    before = lines(workshop)
    assert cli(*args, "--resume").returncode == 0
    assert lines(workshop) == before


def test_failed_cases_are_kept_and_repeated_only_when_asked(workshop, cli):
    args = ["run", "--model", "python:fakes.py:raiser", "--quick", "--meters", "latency", "-o", "run", "--resume"]
    assert cli(*args).returncode == 1
    assert cli(*args).returncode == 1
    assert len(lines(workshop)) == 1
    assert cli(*args, "--retry-failed").returncode == 1
    assert len(lines(workshop)) == 2
    assert "1 error" in cli("run", *args[1:]).stdout


def test_the_stored_plan_is_enough_to_resume(workshop, cli):
    (workshop / "plan.yaml").write_text("models: [python:fakes.py:nothing]\nmeters: [latency]\nrounds: 1\n")
    assert cli("run", "plan.yaml", "--trust", "-o", "run").returncode == 0
    refused = cli("run", "-o", "run", "--resume")
    assert (refused.returncode, "--trust" in refused.stderr) == (2, True)
    more = cli("run", "-o", "run", "--resume", "--trust", "--rounds", "2")
    assert more.returncode == 0, more.stderr
    assert len(lines(workshop)) == 2


def test_another_plan_cannot_be_resumed(workshop, cli):
    base = ["run", "--model", "python:fakes.py:nothing", "--quick", "--meters", "latency", "-o", "run"]
    assert cli(*base).returncode == 0
    other = cli(*base, "--resume", "--seconds", "3")
    assert other.returncode == 2
    assert "a different plan (seconds: [5.0] at the start, [3.0] now)" in other.stderr


def test_an_existing_run_is_refused_unless_replaced(workshop, cli):
    args = ["run", "--model", "python:fakes.py:nothing", "--quick", "--meters", "latency", "-o", "run"]
    assert cli(*args).returncode == 0
    before = lines(workshop)
    refused = cli(*args)
    assert refused.returncode == 2
    assert "use --resume to continue it, --force to replace it" in refused.stderr
    assert lines(workshop) == before
    assert cli(*args, "--force").returncode == 0
    assert len(lines(workshop)) == 1
    assert lines(workshop) != before
    (workshop / "mine").mkdir()
    (workshop / "mine/thesis.tex").write_text("precious")
    refused = cli(*args[:-1], "mine", "--force")
    assert refused.returncode == 2
    assert [path.name for path in (workshop / "mine").iterdir()] == ["thesis.tex"]


def test_a_guard_that_is_killed_leaves_nothing_behind(workshop):
    args = ["run", "--model", "python:fakes.py:sleeper", "--quick", "--meters", "latency", "-o", "run"]
    process = subprocess.Popen(
        [sys.executable, "-m", "speechmeter", *args], cwd=workshop, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    guard = None
    deadline = time.monotonic() + 30
    while guard is None and time.monotonic() < deadline:
        time.sleep(0.2)
        for pid in marked(workshop):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"guard.py" in command and len(marked(workshop)) == 3:
                guard = pid
    assert guard is not None
    time.sleep(0.5)
    os.kill(guard, signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode == 1
    assert gone(workshop)
    assert json.loads(lines(workshop)[0])["status"] == "crashed"
