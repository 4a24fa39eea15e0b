"""What a run would do is found out under the conditions of the run."""

import os
import sys
from pathlib import Path

import pytest

from speechmeter.api import runs, starting
from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options, check_study
from speechmeter.core.errors import InputError
from speechmeter.launch.offline import is_offline
from speechmeter.plan.study import study_from_python


@pytest.mark.parametrize("offline", [False, True])
def test_a_dry_run_keeps_off_the_network_when_told(offline, workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    seen = []
    monkeypatch.setattr(starting, "preflight", lambda *args, **options: seen.append(is_offline()) or [])
    check_study(study_from_python({"models": ["python:fakes.py:nothing"]}), Options(offline=offline))
    assert seen == [offline]
    assert not is_offline()


def test_an_unknown_launcher_is_refused():
    with pytest.raises(InputError, match=r"unknown launcher 'rai'; did you mean 'ray'\?"):
        check_study(study_from_python({"models": ["log-mel"]}), Options(launcher="rai"))


def test_another_interpreter_is_found_in_path_as_preflight_finds_it(workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    folder, name = Path(sys.executable).parent, Path(sys.executable).name
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setattr(runs, "same_code", lambda base, new: "")  # it is this very interpreter
    plan = {"models": ["python:fakes.py:nothing"], "seconds": 1, "meters": ["latency"], "rounds": 1, "samples": 2}
    made = run_study(study_from_python(plan), Options(output=Path("run"), baseline_python=name))
    assert [(r.case.axes["variant"], r.status) for r in made.records] == [("baseline", "ok"), ("this", "ok")]
