"""The fixture `speechmeter` in a project that is not ours, as its users run it: pytest in a process of its own."""

import itertools
import json
import os
import subprocess
import sys

import pytest

QUICKLY = ["-p", "no:hypothesispytest", "-p", "no:anyio"]
PROJECT = """
import os
import time

import pytest

from speechmeter import Prepared, Stage


def taking(seconds):
    # by its own clock: what a busy machine oversleeps is spun away before the end
    def call(batch):
        end = time.perf_counter() + seconds
        time.sleep(seconds - 0.02)
        while time.perf_counter() < end:
            pass

    return Prepared(stages=(Stage(name="model", fn=call),))


def steady():
    return taking(0.08)


def planted():
    return taking(0.08 * float(os.environ.get("SLOWDOWN", "1")))


CAREFUL = pytest.mark.speechmeter(min_effect="50%", rounds=3)
FEW = {"seconds": 1, "repeats": 3, "discard": 0}


@CAREFUL
def test_identical_code(speechmeter):
    speechmeter.check(steady, **FEW)


@CAREFUL
def test_planted_slowdown(speechmeter):
    speechmeter.check("planted", **FEW)


@CAREFUL
def test_without_a_baseline(speechmeter):
    if "SLOWDOWN" in os.environ:
        speechmeter.check(steady, **FEW)


def test_of_another_kind():
    assert True
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Sessions in a project with a baseline; each session's outcomes by test, and what it printed."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "checks").mkdir()
    (folder / "checks/test_speed.py").write_text(PROJECT)
    (folder / "pytest.ini").write_text("[pytest]\nspeechmeter_baseline = perf/baseline\n")

    def session(*words, **environ):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *QUICKLY, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=900,
            env={**os.environ, **environ},
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    code, printed = session("--speechmeter-update-baseline")
    assert code == 0, printed
    assert "2 updated in the baseline" in printed
    session.folder = folder
    return session


def no_two_tests_overlap(records):
    """Whether the rounds of each test stand together in time."""
    in_time = [record["id"] for record in sorted(records, key=lambda record: record["started"])]
    return len(list(itertools.groupby(in_time))) == len(set(in_time))


@pytest.mark.parametrize(
    "workers", [pytest.param([], id="alone"), pytest.param(["-n", "2"], id="xdist", marks=pytest.mark.campaign)]
)
def test_identical_passes_a_planted_slowdown_fails_and_what_is_undecided_is_skipped(project, workers):
    before = set(project.folder.glob("runs/*"))
    code, printed = project(*workers, SLOWDOWN="4")
    assert code == 1, printed
    assert "PASSED checks/test_speed.py::test_identical_code" in printed
    assert "FAILED checks/test_speed.py::test_planted_slowdown" in printed
    reasons = [line for line in printed.splitlines() if line.startswith("SKIPPED") and "checks/test_speed.py" in line]
    assert len(reasons) == 1
    assert "perf/baseline has no such case; add it with --speechmeter-update-baseline" in reasons[0]
    summary = printed[printed.index("= speechmeter =") :]
    assert [word for word in ("SAME", "SLOWER", "NOT COMPARED") if word not in summary] == []
    (run,) = set(project.folder.glob("runs/*")) - before
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert len({record["id"] for record in records}) == 3
    assert len(records) == 9
    assert no_two_tests_overlap(records)
    assert list(project.folder.glob("runs/.*")) == []


def test_a_suite_that_leaves_it_out_measures_and_writes_nothing(project):
    before = set(project.folder.glob("runs/*"))
    code, printed = project("-m", "not speechmeter")
    assert (code, "1 passed" in printed) == (0, True)
    assert set(project.folder.glob("runs/*")) == before
    assert "= speechmeter =" not in printed


def test_loading_the_plug_in_imports_nothing_heavy():
    code = "import sys, speechmeter.integrations.pytest.plugin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "scipy", "rich", "pydantic", "yaml", "typer", "transformers", "duckdb"}
    assert heavy.isdisjoint(done.stdout.split())
