"""Whatever a case does, it becomes a record, the others are measured, and no process is left."""

import json
import os
from pathlib import Path

import pytest

PLAN = """models: [{}]
seconds: 1
rounds: 1
samples: 2
warmup: 0
meters: [latency]
limits: {{time_s: 6, memory_gib: 1}}
"""
MARK = "STARTED_BY_THE_TEST_IN"
BAD = ["hungry", "segfault", "sleeper", "quitter", "exiting", "raiser", "parent", "not_callable", "loud"]


def records(path):
    lines = [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]
    return {line["case"]["subject"]["name"].partition(":")[2]: line for line in lines}


def leftovers(folder):
    """Processes that were started from a run in this folder: they inherit its mark, whatever they became."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                marked = f"{MARK}={folder}".encode() in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if marked:
                found.append(int(entry.name))
    return found


@pytest.fixture(scope="module")
def run_of_failures(tmp_path_factory):
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("failures")
    fakes = Path(__file__).parents[1] / "fakes" / "fakes.py"
    (folder / "fakes.py").write_text(fakes.read_text())
    names = ["nothing", *BAD, "slow"]
    text = PLAN.format(", ".join(f"'python:fakes.py:{name}'" for name in names))
    (folder / "plan.yaml").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "speechmeter", "run", "plan.yaml", "--trust", "-o", "run"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, MARK: str(folder)},
    )
    return done, records(folder / "run"), leftovers(folder), folder


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("hungry", "oom", "out of memory"),
        ("segfault", "crashed", "SIGSEGV (phase: first call)"),
        ("sleeper", "timeout", "exceeded the limit of 6 s (phase: first call)"),
        ("quitter", "crashed", "ended with exit code 0 (phase: first call)"),
        ("exiting", "error", "SystemExit(3)"),
        ("raiser", "error", "ValueError: the model is unhappy (fakes.py:"),
        ("not_callable", "error", "returned int"),
        ("parent", "ok", "2 process(es) were left running and were killed"),
        ("loud", "ok", ""),
        ("nothing", "ok", ""),
        ("slow", "ok", ""),
    ],
)
def test_each_failure_is_a_record_with_status_and_reason(run_of_failures, name, status, reason):
    _, found, _, _ = run_of_failures
    assert found[name]["status"] == status, found[name]["reason"]
    assert reason in found[name]["reason"]
    assert "\n" not in found[name]["reason"]


def test_the_run_ends_well_with_a_summary(run_of_failures):
    done, found, _, _ = run_of_failures
    assert done.returncode == 0, done.stderr
    assert "1 oom" in done.stdout
    assert "2 crashed" in done.stdout
    assert len(found) == 11
    assert "left" in done.stderr
    assert "left" in done.stderr


def test_no_process_is_left(run_of_failures):
    assert run_of_failures[2] == []


def test_the_output_of_a_failed_case_is_kept_and_no_other(run_of_failures):
    _, found, _, folder = run_of_failures
    kept = {path.name.partition("-")[0] for path in (folder / "run/artifacts").glob("*.log")}
    assert found["slow"]["id"] not in kept
    assert found["loud"]["id"] not in kept
    assert found["sleeper"]["id"] not in kept  # it printed nothing, and neither did the guard


def test_strict_makes_a_failed_case_exit_1(cli):
    models = ["--model", "python:fakes.py:raiser", "--model", "python:fakes.py:nothing"]
    assert cli("run", *models, "--quick", "--meters", "latency", "--strict").returncode == 1


def test_a_measuring_process_has_its_variables_and_the_default_allocator(cli, workshop):
    done = cli(
        "run", "--model", "python:fakes.py:environment", "--quick", "--meters", "latency", "--threads", "1",
        "-o", "run",        MALLOC_MMAP_THRESHOLD_="1",
    )  # fmt: skip
    assert done.returncode == 1
    reason = records(workshop / "run")["environment"]["reason"]
    assert "MALLOC_MMAP_THRESHOLD_=None OMP_NUM_THREADS=1 PYTHONHASHSEED=0" in reason


def test_a_memory_limit_reaches_the_model(cli, workshop):
    done = cli("run", "--model", "python:fakes.py:hungry", "--quick", "--set", "limits.memory_gib=1", "-o", "run")
    assert done.returncode == 1
    assert records(workshop / "run")["hungry"]["status"] == "oom"


def test_a_time_limit_in_the_memory_pass_keeps_the_latency(cli, workshop):
    done = cli("run", "--model", "python:fakes.py:very_slow", "--quick", "--set", "limits.time_s=6", "-o", "run",
               "--set", "samples=2", "--set", "warmup=0")  # fmt: skip
    assert done.returncode == 1
    record = records(workshop / "run")["very_slow"]
    assert record["status"] == "timeout"
    assert "memory pass" in record["reason"]
    assert any(m["metric"] == "latency.v1" and m["values"] for m in record["measurements"])
