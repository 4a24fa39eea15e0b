"""Models that other interpreters measure, beside those of this one: in one run, with a reason for each that fails."""

import json
import shutil

import pytest
import yaml
from other_interpreters import environment, install, old_python, site_of

from speechmeter.plan.study import study_from_python

MODELS = {
    "toolkit.py": "VERSION = 'of that environment'\ndef answer(lines):\n    return list(lines)\n",
    "noisy.py": "print('imported', flush=True)\ndef answer(lines):\n    return list(lines)\n",
    "broken.py": "raise RuntimeError('wants another version')\n",
    "deadly.py": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
}
CHAIN = """
from speechmeter import Prepared, Stage

def make():
    {0}
    return Prepared(stages=(Stage(name="model", fn=lambda batch: {1}(batch.data)),))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An environment with packages that this one lacks."""
    python = environment(tmp_path_factory.mktemp("envs") / "toolkits")
    for file, source in MODELS.items():
        install(python, file.removesuffix(".py"), source, "1.2")
    return python


@pytest.fixture
def plan(workshop):
    """A plan of text, which needs no numpy; each model has its factory in a file of its own."""
    (workshop / "lines.txt").write_text("one line\nanother\n")
    (workshop / "here.py").write_text(CHAIN.format("pass", "list"))
    for name in ("toolkit", "noisy", "broken", "deadly", "lacking"):
        (workshop / f"{name}_model.py").write_text(CHAIN.format(f"import {name}", f"{name}.answer"))

    def write(models, **keys):
        text = {
            "models": models, "text": {"lines": "lines.txt"}, "meters": ["latency"], "rounds": 1, "warmup": 1,
            "samples": 2, "limits": {"time_s": 300}, **keys,
        }  # fmt: skip
        (workshop / "plan.yaml").write_text(yaml.safe_dump(text))
        return "plan.yaml"

    return write


def entry(name, python):
    return {"name": name, "load": f"python:{name}_model.py:make", "interpreter": str(python)}


def records(workshop, run="out"):
    return [json.loads(line) for line in (workshop / run / "records.jsonl").read_text().splitlines()]


def test_every_interpreter_that_fails_is_a_record_and_the_rest_is_measured(cli, workshop, plan, made, tmp_path):
    old = old_python(tmp_path / "python3.7", (3, 7, 17))
    path = plan([
        {"name": "here", "load": "python:here.py:make"}, entry("toolkit", made.parents[1]), entry("noisy", made),
        entry("broken", made), entry("deadly", made), entry("lacking", made),
        {**entry("toolkit", old), "name": "old"}, {**entry("toolkit", "no/such/python"), "name": "nowhere"},
    ])  # fmt: skip
    done = cli("run", path, "--trust", "-o", "out")
    assert done.returncode == 0, done.stderr
    found = {record["case"]["subject"]["name"]: record for record in records(workshop)}
    assert {name: record["status"] for name, record in found.items()} == {
        "here": "ok", "toolkit": "ok", "noisy": "ok", "broken": "error", "deadly": "crashed", "lacking": "error",
        "old": "unavailable", "nowhere": "unavailable",
    }  # fmt: skip
    assert "wants another version" in found["broken"]["reason"]
    assert "killed by SIGKILL" in found["deadly"]["reason"]
    assert "No module named 'lacking'" in found["lacking"]["reason"]
    assert "is Python 3.7.17" in found["old"]["reason"] and "`runner:`" in found["old"]["reason"]
    assert "cannot start the interpreter" in found["nowhere"]["reason"]
    known = [json.loads(line) for line in (workshop / "out" / "environments.jsonl").read_text().splitlines()]
    facts = {one["fingerprint"]: one["facts"] for one in known}
    there, here = (facts[found[name]["environment"]] for name in ("toolkit", "here"))
    assert there["interpreter"] == str(made) and "interpreter" not in here
    assert there["packages"] == {"speechmeter": here["packages"]["speechmeter"], "toolkit": "1.2"}
    assert not list(site_of(made).glob("speechmeter*"))


def test_the_path_of_the_interpreter_is_no_part_of_a_case():
    def cases(**keys):
        return study_from_python({"models": [{"name": "a", "load": "log-mel", **keys}]}).cells.cases

    assert [case.id for case in cases(interpreter="x/python")] == [case.id for case in cases()]


@pytest.mark.campaign
def test_a_run_is_resumed_with_the_same_interpreter(cli, workshop, plan, made):
    models = [entry("toolkit", made), {"name": "here", "load": "python:here.py:make"}]
    assert cli("run", plan(models), "--trust", "-o", "a").returncode == 0
    moved = workshop / "elsewhere"
    shutil.copytree(made.parents[1], moved, symlinks=True)
    models[0] = entry("toolkit", moved)
    assert cli("run", plan(models), "--trust", "-o", "b").returncode == 0
    assert [one["id"] for one in records(workshop, "a")] == [one["id"] for one in records(workshop, "b")]
    resumed = cli("run", "plan.yaml", "--trust", "-o", "a", "--resume")
    assert resumed.returncode == 2
    assert f"'toolkit' was measured by another interpreter when this run was started: {made}" in resumed.stderr


def test_an_interpreter_that_a_plan_names_needs_trust(cli, plan, made):
    done = cli("run", plan([{"name": "here", "load": "espeak", "interpreter": str(made)}]), "-o", "out")
    assert done.returncode == 2
    assert f"'here' is measured by a program that the plan names: {made}" in done.stderr
    assert "add --trust" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--launcher", "inline"), "is measured by another interpreter, which --launcher inline cannot start"),
        (("--baseline-python", "python3"), "is measured by an interpreter of its own"),
    ],
)
def test_what_cannot_be_combined_is_refused(options, message, cli, plan, made):
    done = cli("run", plan([entry("toolkit", made)]), "--trust", "-o", "out", *options)
    assert done.returncode == 2 and message in done.stderr


def test_models_are_listed_by_another_interpreter(cli, made):
    done = cli("models", "--interpreter", str(made.parents[1]))
    assert done.returncode == 0, done.stderr
    assert f"models by {made.parents[1]} (Python 3." in done.stdout.replace("\n", "")
    refused = cli("models", "--interpreter", "no/such/python")
    assert refused.returncode == 2
    assert "cannot start the interpreter" in refused.stderr and "use the path of a Python interpreter" in refused.stderr


@pytest.mark.campaign
def test_a_case_is_measured_again_by_its_interpreter(cli, workshop, plan, made):
    assert cli("run", plan([entry("toolkit", made)]), "--trust", "-o", "out").returncode == 0
    case = records(workshop)[0]["id"]
    assert "runs code that the record names" in cli("rerun", "out", case, "-o", "again").stderr
    done = cli("rerun", "out", case, "-o", "again", "--trust", "--rounds", "2")
    assert done.returncode in (0, 3), done.stderr
    assert all(one["status"] == "ok" for one in records(workshop, "again"))
