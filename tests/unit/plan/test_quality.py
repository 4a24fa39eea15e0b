"""The key `quality`: what it asks for, what it puts into the protocol, what it refuses."""

import pytest
import yaml

from speechmeter.core.errors import InputError, PlanError
from speechmeter.plan.source import from_set
from speechmeter.plan.study import study_from_file, study_from_python, study_of_run

PLAN = {"models": ["log-mel"], "audio": "sample", "meters": ["latency"]}


def protocol(**keys):
    (case,) = study_from_python({**PLAN, **keys}).cells.cases
    return case.meters, case.protocol.quality and case.protocol.quality.to_json()


def test_the_key_asks_for_the_meter_and_defaults_are_written_out():
    basic = {"normaliser": "basic.v2", "scores": ["wer", "cer"]}
    assert protocol() == (("latency",), None)
    assert protocol(meters=["quality"]) == (("quality",), basic)
    assert protocol(quality={"normaliser": "english"}) == (
        ("latency", "quality"),
        {**basic, "normaliser": "english.v2"},
    )
    assert protocol(quality={"normaliser": "basic.v1"})[1] == {**basic, "normaliser": "basic.v1"}
    assert protocol(quality={"scores": "bleu"})[1]["scores"] == ["bleu"]


def test_text_is_scored_as_a_translation(tmp_path):
    study = study_from_python({"models": ["log-mel"], "text": {"count": 1}, "meters": ["quality"]})
    assert study.cells.cases[0].protocol.quality.scores == ("bleu", "chrf")


@pytest.mark.parametrize(
    ("quality", "reason"),
    [
        ({"normaliser": "klingon"}, "quality.normaliser takes 'english', 'basic', 'none',"),
        ({"scores": ["wer", "mos"]}, "not 'mos'"),
        ({"scores": []}, "quality is empty"),
        ({"normalizer": "basic"}, "did you mean 'normaliser'"),
        ({"imports": "x"}, "did you mean 'import'"),
        ("english", "for example `quality:"),
        ({"import": "none.csv"}, "scores cannot be read"),
    ],
)
def test_a_bad_key_is_refused_in_one_line(quality, reason):
    with pytest.raises(InputError) as refusal:
        protocol(quality=quality)
    assert reason in str(refusal.value)


def imported(tmp_path, text, **quality):
    (tmp_path / "scores.csv").write_text(text)
    plan = {**PLAN, "quality": {"import": "scores.csv", **quality}}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    return study_from_file(tmp_path / "plan.yaml")


def test_a_file_of_scores_is_found_beside_the_plan_and_is_part_of_the_case(tmp_path):
    study = imported(tmp_path, "model,wer\nlog-mel,5\n")
    (case,) = study.cells.cases
    assert case.protocol.quality.import_.endswith("scores.csv")
    (other,) = imported(tmp_path, "model,wer\nlog-mel,6\n").cells.cases
    assert case.id != other.id
    again = yaml.safe_load(study.plan_text())
    assert again["quality"]["import"] == case.protocol.quality.import_


@pytest.mark.parametrize(
    ("text", "quality", "reason"),
    [
        ("model,wer\nlogmel,5\n", {}, "has no row for any model of the plan"),
        ("model,device_,wer\nlog-mel,cpu,5\n", {}, "column 'device_' is not an axis; did you mean 'device'"),
        (
            "model,wer\nlog-mel,5\n",
            {"normaliser": "basic"},
            "`import` cannot be combined with `normaliser`",
        ),
    ],
)
def test_a_file_about_something_else_is_refused_at_its_line(text, quality, reason, tmp_path):
    with pytest.raises(PlanError) as refusal:
        imported(tmp_path, text, **quality)
    assert reason in str(refusal.value)
    assert "plan.yaml:" in str(refusal.value)


def test_a_file_given_by_a_flag_starts_from_here(tmp_path, monkeypatch):
    imported(tmp_path, "model,wer\nlog-mel,5\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "scores.csv").write_text("model,wer\nlog-mel,7\n")
    monkeypatch.chdir(tmp_path / "here")
    study = study_from_file(tmp_path / "plan.yaml", [from_set("quality.import=scores.csv")])
    assert study.cells.cases[0].protocol.quality.import_ == "scores.csv"
    study = study_from_file(tmp_path / "plan.yaml")
    assert study.cells.cases[0].protocol.quality.import_ == "../scores.csv"


def test_rows_about_no_cell_of_the_plan_are_told(tmp_path):
    assert imported(tmp_path, "model,wer\nlog-mel,5\n").notes == ()
    assert imported(tmp_path, "model,device,wer\nlog-mel,cpu,5\n").notes == ()
    (line,) = imported(tmp_path, "model,device,wer\nlog-mel,cpu,5\nlog-mel,cuda,6\nother,,7\n").notes
    assert line.endswith("2 of 3 rows match no case of the plan: log-mel, device cuda; other")


@pytest.mark.parametrize(
    ("kept", "meant"),
    [(None, "basic.v1"), ({}, "basic.v1"), ({"normaliser": "english", "scores": None, "import": None}, "english.v1"),
     ({"normaliser": "basic.v2"}, "basic.v2"), ({"normaliser": "basic.v1"}, "basic.v1")],
)  # fmt: skip
def test_a_plan_that_a_run_keeps_means_what_it_meant(tmp_path, kept, meant):
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({**PLAN, "meters": ["latency", "quality"], "quality": kept}))
    (case,) = study_of_run(path).cells.cases
    assert case.protocol.quality.normaliser == meant


def test_a_run_keeps_the_version_of_its_normaliser(tmp_path):
    study = study_from_python({**PLAN, "meters": ["quality"]})
    assert yaml.safe_load(study.plan_text())["quality"]["normaliser"] == "basic.v2"
    (tmp_path / "plan.yaml").write_text(study.plan_text())
    assert study_of_run(tmp_path / "plan.yaml").plan.quality == study.plan.quality
    assert study_of_run(tmp_path / "plan.yaml").cells == study.cells
