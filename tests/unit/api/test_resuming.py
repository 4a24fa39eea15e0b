"""What a resumed run says of data that is no longer what it was."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from speechmeter.api import runs
from speechmeter.api.runs import load, run_study
from speechmeter.api.starting import Options, changed_data, check_study
from speechmeter.core.errors import RunDirError
from speechmeter.plan.study import study_from_python
from speechmeter.report.labels import case_labels

PLAN = {"models": ["python:fakes.py:nothing"], "audio": "a.wav", "seconds": 0.1, "meters": ["latency"], "rounds": 1}
RESUMED = Options(output=Path("run"), launcher="inline", resume=True)


def record_sound(value):
    soundfile.write("a.wav", np.full(16_000, value, np.float32), 16_000)


@pytest.fixture
def begun(workshop, monkeypatch):
    """A run of one second of sound that is finished."""
    monkeypatch.chdir(workshop)
    record_sound(0.1)
    return run_study(study_from_python(PLAN), RESUMED)


def test_data_that_did_not_change_is_no_news(begun):
    assert changed_data(study_from_python(PLAN), RESUMED) == []


def test_changed_data_is_told_and_measured_beside_the_old_one(begun):
    record_sound(0.2)
    (line,) = changed_data(study_from_python(PLAN), RESUMED)
    assert line.startswith("a.wav changed since 2")
    assert line.endswith("measured again; the old records are kept")
    made = run_study(study_from_python(PLAN), RESUMED)
    assert len(set(case_labels(made.records).values())) == 2
    assert changed_data(study_from_python(PLAN), RESUMED) == []


def test_a_run_resumed_on_another_machine_has_a_figure_for_each(workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    record_sound(0.1)
    for rounds, host in enumerate(("aa", "bb"), start=1):
        monkeypatch.setenv("SPEECHMETER_HOST", host)
        made = run_study(study_from_python({**PLAN, "rounds": rounds}), RESUMED)
    assert [(axes["host"], figure.rounds) for axes, figure in made.estimates()] == [("aa", 1), ("bb", 1)]
    assert made == load("run")


def test_a_search_is_not_resumed_on_another_machine(workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    plan = {**PLAN, "find": "max-batch", "find_most": 2, "audio": "noise"}
    options = Options(output=Path("run"), resume=True)
    monkeypatch.setenv("SPEECHMETER_HOST", "here")
    run_study(study_from_python(plan), options)
    run_study(study_from_python(plan), options)
    monkeypatch.setenv("SPEECHMETER_HOST", "there")
    with pytest.raises(RunDirError, match="started on here, but this machine is there"):
        run_study(study_from_python(plan), options)


@pytest.mark.parametrize(
    ("begun", "resumed", "words"),
    [
        (sys.executable, None, "started with `baseline_python`; add it, or"),
        (None, sys.executable, "started without `baseline_python`; leave it out, or"),
    ],
    ids=["begun with two", "begun with one"],
)
def test_a_run_of_two_interpreters_is_not_resumed_with_one_nor_the_other_way_round(
    begun, resumed, words, workshop, monkeypatch
):
    monkeypatch.chdir(workshop)
    monkeypatch.setattr(runs, "same_code", lambda base, new: "")  # it is this very interpreter
    study = study_from_python({**PLAN, "audio": "noise"})
    options = Options(output=Path("run"), resume=True, baseline_python=begun)
    made = run_study(study, options)
    assert run_study(study, options).records == made.records
    with pytest.raises(RunDirError, match=words):
        check_study(study, replace(options, baseline_python=resumed))
