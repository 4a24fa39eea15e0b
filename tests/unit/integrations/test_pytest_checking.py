"""The fixture itself, what it measures with being replaced."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from conftest import make_case
from run_histories import write_run

from speechmeter.api.runs import load
from speechmeter.api.starting import check_output
from speechmeter.core.types import Spec
from speechmeter.integrations.pytest import checking
from speechmeter.integrations.pytest.checking import Speechmeter
from speechmeter.integrations.pytest.keeping import put_together
from speechmeter.integrations.pytest.settings import Settings
from speechmeter.store.run_dir import RunDir


@pytest.fixture
def settings(tmp_path):
    return Settings(
        root=tmp_path, run=tmp_path / "runs/now", baseline=None, baseline_python=None, update_baseline=False
    )


@pytest.fixture
def measure(settings, monkeypatch):
    """One check of `log-mel` in a test of that name, which takes so many seconds."""

    def measure(test, latency_s, name=None):
        def run_study(study, options, watch):
            check_output(options.output, study, options)
            subject = Spec(plugin="log-mel", name=study.cells.cases[0].subject.name, source="")
            write_run(options.output, 1, [latency_s], make_case(subject=subject))
            return load(options.output)

        monkeypatch.setattr(checking, "run_study", run_study)
        monkeypatch.setattr(checking, "turn", nullcontext)
        return fixture(settings, test).measure("log-mel", name=name)

    return measure


def fixture(settings, test, **mark):
    """What a test of that name, marked so, is given."""
    marks = [pytest.mark.speechmeter(**mark).mark]
    node = SimpleNamespace(name=test, iter_markers=lambda name: marks, user_properties=[])
    request = SimpleNamespace(path=settings.root / "test_a.py", cls=None, node=node, module=None)
    return Speechmeter(request, settings, print)


def kept(settings):
    put_together(settings.parts, settings.run)
    return {r.case.subject.name: r.measurements[0].values[0] for r in RunDir(settings.run).records()}


def test_two_tests_that_give_the_same_name_do_not_contradict_each_other(measure, settings):
    measure("test_a", 1.0, "encoder")
    measure("test_b", 2.0, "encoder")
    assert kept(settings) == {"test_a.py::test_a::encoder": 1.0, "test_a.py::test_b::encoder": 2.0}


def test_of_a_test_that_is_run_again_the_last_measurement_is_kept(measure, settings):
    measure("test_a", 1.0)
    measure("test_a", 2.0)
    assert kept(settings) == {"test_a.py::test_a": 2.0}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": 3}, "argument 'name': the name must be a string, not 3; such as name='encoder'"),
        ({"models": ["log-mel"]}, "argument 'models': the first argument is the model; remove it"),
        ({"find": "max-batch"}, "argument 'find': a test cannot search for the largest input; remove this argument"),
        ({"find_most": 4}, "argument 'find_most': a test cannot search for the largest input"),
    ],
)
@pytest.mark.parametrize("way", ["check", "measure"])
def test_arguments_that_have_no_place_in_a_test_are_refused(settings, monkeypatch, way, given, words):
    monkeypatch.setattr(checking, "run_study", None)
    with pytest.raises(pytest.fail.Exception) as failed:
        getattr(fixture(settings, "test_a"), way)("log-mel", **given)
    assert str(failed.value).startswith(f"test_a.py::test_a REFUSED: {words}")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("latencyy", "there is no metric 'latencyy'; did you mean 'latency'?"),
        (["latency", "modules"], "modules is a table of several metrics, not one metric; use speechmeter show"),
    ],
)
def test_a_metric_that_cannot_be_judged_is_refused_before_anything_is_measured(settings, monkeypatch, metric, words):
    monkeypatch.setattr(checking, "run_study", None)
    with pytest.raises(pytest.fail.Exception) as failed:
        fixture(settings, "test_a", metric=metric).check("log-mel", seconds=1)
    assert f"REFUSED: @pytest.mark.speechmeter metric: {words}" in str(failed.value)
