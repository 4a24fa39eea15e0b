"""`speechmeter tune` from the command line and from Python, on models whose speed does not matter."""

import json

import pytest
import yaml
from simulated_tuning import Simulated, tuned, tuning

import speechmeter
from speechmeter.core.errors import InputError
from speechmeter.report.answers import top_of
from speechmeter.report.sources import read_sources

FAKE = "python:tests/fakes/subjects.py"


@pytest.fixture
def model(request):
    folder = request.config.rootpath / "tests" / "fakes"
    (file,) = [one for one in folder.glob("*.py") if "def words()" in one.read_text()]
    return lambda name: f"python:{file}:{name}"


QUICK = {"launcher": "inline", "samples": 2, "min_samples": 1, "warmup": 0, "budget_s": 0.01, "seconds": 1}


def test_a_tuning_has_an_answer_a_plan_and_its_trials(model, tmp_path):
    found = speechmeter.tune(model("words"), batch=[1, 2], output=tmp_path / "run", within=1e-6, **QUICK)
    assert found.words and found.answer.outcome in ("better", "same", "cannot tell")
    chosen = yaml.safe_load(found.plan.read_text())
    assert "tune" not in chosen and chosen["batch"] == [found.answer.answer.values["batch"]]
    data = found.data()
    assert data["trials"] == len(found.run.records) and json.loads(found.json())["answer"] == data["answer"]
    assert found.tables()[0].title == "Tuned for RTFx"
    assert speechmeter.load(tmp_path / "run").tables()[0].title == "Tuned for RTFx"
    top = top_of(read_sources([str(tmp_path / "run")])[0])  # what a page begins with
    assert top.headline.lower() == f"{found.words.lower()}." and any("trials" in line for line in top.doubts)
    again = speechmeter.tune(resume=True, output=tmp_path / "run", launcher="inline", trust=True)
    assert again.data() == {**data, "notes": again.data()["notes"]}


def test_a_model_whose_outputs_cannot_be_compared_keeps_its_default(model, tmp_path, command):
    done = command("tune", "--model", model("nothing"), "--set", "batch=1,2", "--over", "batch", "--launcher", "inline",
                   "--set", "samples=2", "--set", "min_samples=1", "--set", "warmup=0", "--set", "seconds=1",
                   "-o", str(tmp_path / "run"))  # fmt: skip
    assert done.code == 0, done.err
    assert "keep the default" in done.out and "cannot be compared" in " ".join(done.out.split())
    shown = command("show", str(tmp_path / "run"), "--metric", "tune")
    assert shown.code == 0 and "keep the default" in shown.out


def test_a_model_that_fails_has_no_answer_and_exit_code_1(model, tmp_path, command):
    done = command("tune", "--model", model("raiser"), "--set", "batch=1,2", "--over", "batch", "--launcher", "inline",
                   "-o", str(tmp_path / "run"))  # fmt: skip
    assert done.code == 1
    assert "the model is unhappy" in done.out


def test_what_cannot_be_tuned_is_refused_before_anything_is_written(model, tmp_path, command):
    with pytest.raises(InputError, match="reference texts"):
        speechmeter.tune(model("words"), keep="wer<=+1", batch=[1, 2], output=tmp_path / "run", **QUICK)
    with pytest.raises(InputError, match="no model"):
        speechmeter.tune(goal="rtfx")
    done = command("tune", "--model", model("words"), "--keep", "wer<=1", "-o", str(tmp_path / "run"))
    assert done.code == 2 and "relative to the default" in done.err
    assert not (tmp_path / "run").exists()


def test_a_dry_run_lists_the_configurations_and_writes_nothing(model, tmp_path, command):
    done = command("tune", "--model", model("words"), "--set", "batch=1,2", "--set", "threads=2,1", "--dry-run",
                   "--over", "batch,threads", "-o", str(tmp_path / "run"))  # fmt: skip
    assert [line.split("  ")[1] for line in done.out.splitlines()[1:]] == [
        "batch 1, threads 2", "batch 2, threads 2", "batch 1, threads 1", "batch 2, threads 1"
    ]  # fmt: skip
    assert not (tmp_path / "run").exists()


def test_a_run_that_was_not_tuned_has_no_answer(tmp_path, command):
    made = tmp_path / "run"
    tuned(made, Simulated(), tuning())  # its plan does not ask for a tuning
    assert "was not made by" in command("show", str(made), "--metric", "tune").err
