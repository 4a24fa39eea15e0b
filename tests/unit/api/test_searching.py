"""A plan that asks for a search: what it becomes, and what of it is refused before anything is written."""

import pytest

import speechmeter
from speechmeter.api.runs import Options, check_study
from speechmeter.api.searching import check_search, search_of
from speechmeter.core.errors import InputError
from speechmeter.plan.study import study_from_python

MODEL = "python:fakes.py:nothing"


@pytest.fixture(autouse=True)
def in_the_workshop(workshop, monkeypatch):
    monkeypatch.chdir(workshop)


def search(**keys):
    study = study_from_python({"models": MODEL, **keys})
    return search_of(study, check_study(study, Options()))


REFUSED = {
    "unknown": ({"find": "max-bath"}, "there is no search 'max-bath'; did you mean 'max-batch'?"),
    "no such axis": ({"find": "max-frames"}, "the axis max_frames, which `audio:` does not have; use max-batch or max"),
    "several starts": (
        {"find": "max-batch", "batch": [1, 2]},
        "`find` searches batch, so it takes one value to start from, not 2",
    ),
    "a cap below the start": ({"find": "max-batch", "batch": 8, "find_most": 4}, "less than the 8 that the search"),
    "a cap alone": ({"find_most": 4}, "find_most applies to a search only, and this plan has none; add `find`"),
    "a share alone": ({"find_within": "1%"}, "find_within applies to a search only, and this plan has none"),
    "a margin of all": (
        {"find": "max-batch", "find_margin": "100%"},
        "find_margin takes a fraction of at least 0 and below 1",
    ),
    "a start above the usual cap": (
        {"find": "max-batch", "batch": 100_000},
        "find_most 65,536 is less than the 100,000",
    ),
    "a batch by seconds": (
        {"find": "max-batch", "data": {"manifest": "list.tsv"}, "batch_seconds": 60},
        "`find` searches batch, so batch_seconds cannot be set; drop batch_seconds",
    ),
    "a triangle": ({"find": "max-batch", "triangle": True}, "`triangle` and `find` cannot be combined"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_searched_is_refused_before_anything_is_written(workshop, name):
    keys, said = REFUSED[name]
    with pytest.raises(InputError) as error:
        speechmeter.run({"models": MODEL, **keys}, output="run")
    assert said in str(error.value)
    assert not (workshop / "run").exists()


def test_inline_on_the_cpu_a_cluster_and_two_interpreters_are_refused():
    study = study_from_python({"models": MODEL, "find": "max-batch"})
    with pytest.raises(InputError, match="kills the calling process"):
        check_study(study, Options(launcher="inline"))
    with pytest.raises(InputError, match="it cannot use `launcher: ray`"):
        check_search(study, "ray", clients=False, two_interpreters=False)
    with pytest.raises(InputError, match="cannot compare two interpreters"):
        check_study(study, Options(baseline_python="python3"))


def test_a_trial_is_one_call_of_time_and_memory_whatever_else_the_plan_asks_for():
    (line,) = search(find="max-batch", meters=["flops", "memory", "parameters"], samples=50).lines
    assert line.meters == ("memory",)
    assert (line.protocol.mode, line.protocol.samples, line.protocol.readings) == ("repeats", 1, 1)
    (line,) = search(find="max-batch", meters=["flops"]).lines
    assert line.meters == ("latency",)


def test_the_limit_and_the_margin_stand_in_every_trial():
    (line,) = search(find="max-batch", limits={"memory_gib": 1.5}, find_margin="10%").lines
    assert (line.protocol.memory_gib, line.protocol.margin) == (1.5, 0.1)


def test_the_value_of_the_plan_is_where_a_search_starts():
    assert [line.axes["batch"] for line in search(find="max-batch", batch=64, seconds=[1, 10]).lines] == [64, 64]
    assert [line.axes["seconds"] for line in search(find="max-seconds", seconds=2.57).lines] == [2.5]


@pytest.mark.parametrize("subject", [{"losses": "ours"}, {"train": "conformer-transducer"}])
def test_a_loss_and_a_step_of_training_are_fed_one_batch(subject):
    pytest.importorskip("torch", reason="losses and training steps need torch")
    study = study_from_python({**subject, "find": "max-frames"})
    (line,) = search_of(study, check_study(study, Options())).lines
    assert line.workload.options["steps"] == 1
    assert line.axes["max_frames"] == 1000


def test_the_stored_plan_is_the_same_search(tmp_path):
    import yaml

    study = study_from_python({"models": MODEL, "find": "max-batch", "batch": 4, "find_most": 99, "find_within": "2%"})
    again = study_from_python(yaml.safe_load(study.plan_text()))
    assert search_of(again, check_study(again, Options())) == search_of(study, check_study(study, Options()))


def test_seconds_are_searched_in_tenths_up_to_the_cap():
    plan = {"models": MODEL, "meters": "latency", "find": "max-seconds", "find_most": 20, "seconds": 7}
    made = speechmeter.run(plan, output="run")
    assert [record.case.axes["seconds"] for record in made.records] == [7.0, 14.0, 20.0]
