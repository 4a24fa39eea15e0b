"""Short keys of a plan: cascades, text, features, several kinds of audio."""

import pytest
import soundfile

from speechmeter.core.errors import PlanError
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
            "there is no subject 'nothing'",
        ),
        (
            "cascades:\n  - {name: a, stages: [{name: x, load: log-mel, beam: 2}, {name: y, load: log-mel}]}\n",
            ":2: ",
            "unknown key 'beam'",
        ),
        (
            "cascades:\n  - {name: a, stages: [{name: x, load: log-mel}, {name: y, load: 'python:a.py:b'}]}\n",
            ":2: ",
            "--trust",
        ),
        ("models: [log-mel]\ntext: 3\n", ":2: ", "takes a mapping"),
        ("models: [log-mel]\ntext: {}\nworkload: audio\n", ":2: ", "exclude each other"),
        ("models: [log-mel]\ntext: {words: 3}\n", ":2: ", "unknown key 'words'"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(tmp_path, text, place, what):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(PlanError if "--trust" not in what else Exception, match=what) as refusal:
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
    assert found == [("noise", 1), ("noise", 2), ("sample", 1), ("sample", 2), ("speech", None)]
