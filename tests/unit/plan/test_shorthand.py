"""Short keys of a plan: cascades, text, features, several kinds of audio."""

import pytest
import soundfile
import yaml

from speechmeter.core import plugins
from speechmeter.core.errors import PlanError
from speechmeter.plan.shorthand import spelt_out
from speechmeter.plan.source import Source, from_set
from speechmeter.plan.study import study_from_file, study_from_python

STAGES = [{"name": "asr", "load": "transformers:whisper"}, {"name": "mt", "load": "transformers:marian"}]


def test_a_cascade_is_a_model_with_the_axes_of_its_stages():
    study = study_from_python({"models": ["log-mel"], "cascades": [{"name": "two", "stages": STAGES}]})
    first, second = study.cells.cases
    assert (first.subject.plugin, second.subject.plugin) == ("log-mel", "cascade")
    assert second.subject.options == {"stages": STAGES}
    assert "max_new_tokens" in second.axes
    assert "max_new_tokens" not in first.axes


def test_the_stored_plan_gives_the_same_cases(tmp_path):
    study = study_from_python({"cascades": [{"name": "two", "stages": STAGES}], "seconds": [1]})
    (tmp_path / "plan.yaml").write_text(study.plan_text())
    again = study_from_file(tmp_path / "plan.yaml", trust=True)
    assert [case.id for case in again.cells.cases] == [case.id for case in study.cells.cases]


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("cascades: {}\n", ":1: ", "takes a list"),
        ("cascades:\n  - {name: a}\n", ":2: ", "at least two stages"),
        ("cascades:\n  - {name: a, stages: [{name: x, load: log-mel}]}\n", ":2: ", "at least two stages"),
        (
            "cascades:\n  - {name: a, stages: [{name: x, load: log-mel}, {name: y, load: nothing}]}\n",
            ":2: ",
            "there is no model 'nothing'",
        ),
        (
            "cascades:\n  - {name: a, stages: [{name: x, load: log-mel, beam: 2}, {name: y, load: log-mel}]}\n",
            ":2: ",
            "unknown key 'beam'",
        ),
        (
            "cascades:\n  - {name: a, stages: [{name: x, load: log-mel}, {name: y, load: 'python:a.py:b'}]}\n",
            ":2: ",
            "add `trust`",
        ),
        ("models: [log-mel]\ntext: 3\n", ":2: ", "takes a mapping"),
        ("models: [log-mel]\ntext: {}\nworkload: audio\n", ":2: ", "cannot be combined"),
        ("models: [log-mel]\ntext: {words: 3}\n", ":2: ", "unknown key 'words'"),
        ("models: [log-mel]\ndata: 3\n", ":2: ", "takes a mapping"),
        ("models: [log-mel]\ndata: {file: a.tsv}\n", ":2: ", "unknown key 'file'"),
        ("models: [log-mel]\nshapes: 3\n", ":2: ", "takes a mapping"),
        ("models: [log-mel]\nshapes: {rows: 3}\n", ":2: ", "unknown key 'rows'"),
        ("models: [log-mel]\nshapes: {}\npairing: rows\n", ":3: ", "pairing takes one of utterance, columns"),
        ("models: [log-mel]\nshapes: {}\nsubsampling: 3\n", ":3: ", "subsampling takes one of 4, 8"),
        ("models: [log-mel]\ndata: a.tsv\nsort: random\n", ":3: ", "sort takes one of none, ascending"),
        ("models: [log-mel]\ndata: a.tsv\nbatch_seconds: 0\n", ":3: ", "greater than 0"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(tmp_path, text, place, what):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(PlanError if "add `trust`" not in what else Exception, match=what) as refusal:
        study_from_file(path)
    assert f"{path}{place}" in str(refusal.value)


def test_text_is_a_workload_with_its_own_axes():
    study = study_from_python({"models": ["log-mel"], "text": {"vocabulary": 100}, "length": [8, 16]})
    assert [case.axes["length"] for case in study.cells.cases] == [8, 16]
    assert "seconds" not in study.cells.cases[0].axes
    assert study.cells.cases[0].workload.options == {"vocabulary": 100}


def test_several_kinds_of_audio_make_cases_of_their_own(tmp_path):
    folder = tmp_path / "speech"
    folder.mkdir()
    soundfile.write(folder / "a.wav", [0.0] * 1600, 16000)
    study = study_from_python({"models": ["log-mel"], "audio": ["noise", "sample", str(folder)], "seconds": [1, 2]})
    found = [(case.workload.name, case.axes.get("seconds")) for case in study.cells.cases]
    assert found == [("noise", 1), ("sample", 1), ("speech", None), ("noise", 2), ("sample", 2)]


@pytest.mark.parametrize("written", ["set.tsv", "{manifest: set.tsv}"])
def test_data_is_a_workload_whose_list_starts_from_the_plan(tmp_path, monkeypatch, written):
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans/set.tsv").write_text("/data\na.flac\t160\n")
    (tmp_path / "plans/plan.yaml").write_text(f"models: [log-mel]\ndata: {written}\nsort: [none, ascending]\n")
    monkeypatch.chdir(tmp_path)
    first, second = study_from_file(tmp_path / "plans/plan.yaml").cells.cases
    assert (first.workload.plugin, first.workload.name) == ("data", "set.tsv")
    assert first.workload.source == first.workload.options["manifest"] == "plans/set.tsv"
    assert (first.axes["sort"], second.axes["sort"]) == ("none", "ascending")
    assert "seconds" not in first.axes
    (tmp_path / "plans/set.tsv").write_text("/data\nb.flac\t160\n")
    assert study_from_file(tmp_path / "plans/plan.yaml").cells.cases[0].id != first.id


def test_a_list_that_a_flag_names_starts_from_here(tmp_path, monkeypatch):
    (tmp_path / "plans").mkdir()
    for place in ("plans/set.tsv", "set.tsv"):
        (tmp_path / place).write_text("/data\na.flac\t160\n")
    (tmp_path / "plans/plan.yaml").write_text("models: [log-mel]\ndata: {manifest: set.tsv, count: 3}\n")
    monkeypatch.chdir(tmp_path)
    (case,) = study_from_file(tmp_path / "plans/plan.yaml", [from_set("data.manifest=set.tsv")]).cells.cases
    assert case.workload.options["manifest"] == "set.tsv"
    assert case.workload.options["count"] == 3


def test_a_shape_file_is_known_by_its_content_and_found_beside_the_plan(tmp_path):
    plan, table = tmp_path / "plan.yaml", tmp_path / "a.tsv"
    plan.write_text("models: [log-mel]\nshapes: a.tsv\n")
    ids = set()
    for text in ("frames\ttokens\n5\t1\n", "frames\ttokens\n6\t1\n"):
        table.write_text(text)
        (case,) = study_from_file(plan).cells.cases
        assert case.workload.plugin == "shapes"
        assert (tmp_path / "a.tsv").samefile(case.workload.options["file"])
        assert (case.axes["batch"], case.axes["pairing"], case.axes["max_frames"]) == (30, "utterance", None)
        ids.add(case.id)
    assert len(ids) == 2


@pytest.mark.parametrize("key", ["data", "text", "features", "shapes"])
def test_the_example_for_a_wrong_value_is_a_right_one(key):
    with pytest.raises(PlanError) as caught:
        spelt_out(Source(data={key: ["a", "b"]}, origins={}, base=None))
    example = yaml.safe_load(caught.value.fix.partition("`")[2].partition("`")[0])
    workload = spelt_out(Source(data=example, origins={}, base=None)).data["workload"]
    assert workload["name"] == key
    assert ("manifest" in workload) is (key == "data")  # the one option that must be given
    assert {*workload} - {"name"} <= {option.name for option in plugins.workload(key).options}


def test_two_things_cannot_be_fed_at_once():
    with pytest.raises(PlanError, match="data and audio cannot be combined"):
        spelt_out(Source(data={"data": "a.tsv", "audio": "sample"}, origins={}, base=None))


def test_an_axis_of_another_workload_is_told_from_a_misspelt_one():
    with pytest.raises(PlanError, match=r"seconds is an axis of `audio:`.*batch_seconds, sort, batch"):
        study_from_python({"models": ["log-mel"], "data": "a.tsv", "seconds": 5})
