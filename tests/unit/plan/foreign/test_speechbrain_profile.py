"""SpeechBrain's profiling recipe as a plan of ours."""

import pytest
import soundfile

from speechmeter.core.errors import PlanError
from speechmeter.plan.source import apply, from_flag
from speechmeter.plan.study import read_plan, study_from_file

RECIPE = """\
folder: models
pretrained_model:
  source: !ref <folder>/french
  type: EncoderASR
profiling_dimensions:
  audio_mockup_secs: [1, 3]
  batch_sizes: [1, 2, 4]
  example_audio: voice.wav
  triangle_only: False
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "models" / "french").mkdir(parents=True)
    soundfile.write(tmp_path / "voice.wav", [0.1] * 1600, 16000)
    return tmp_path


def translated(folder, text, *flags):
    (folder / "profile.yaml").write_text(text)
    return read_plan(folder / "profile.yaml", [from_flag(*flag) for flag in flags])


def test_every_key_finds_its_place(folder):
    found = translated(folder, RECIPE)
    assert found.source.data == {
        "models": [{"name": "french", "load": "speechbrain:models/french", "type": "EncoderASR"}],
        "seconds": [1, 3],
        "batch": [1, 2, 4],
        "triangle": False,
        "audio": "voice.wav",
        "meters": ["latency", "memory", "operators", "split"],
        "markdown": ["rtf", "memory"],
        "schedule": {"wait": 1, "warmup": 2, "active": 7, "repeat": 1},
    }
    assert found.notes == ()
    assert found.source.origin(("models", 0)).where == f"{folder}/profile.yaml:3"
    assert found.source.origin(("models", 0, "type")).where == f"{folder}/profile.yaml:4"
    assert found.source.origin(("batch", 1)).where == f"{folder}/profile.yaml:7"


def test_flat_keys_are_the_same_recipe(folder):
    text = (
        "pretrained_model_source: models/french\npretrained_model_type: VAD\naudio_mockup_secs: [2]\nbatch_sizes: [3]\n"
    )
    data = translated(folder, text + "device: cuda:1\n").source.data
    assert data["models"] == [{"name": "french", "load": "speechbrain:models/french", "type": "VAD"}]
    assert (data["seconds"], data["batch"], data["device"]) == ([2], [3], "cuda:1")


def test_what_is_not_said_is_as_the_recipe_has_it(folder):
    data = translated(folder, "pretrained_model: {source: models/french, type: VAD}\n").source.data
    assert (data["seconds"], data["batch"], data["triangle"], data["audio"]) == ([1, 2], [1, 2], True, "noise")


@pytest.mark.parametrize("nothing", ["None", "null", "~", ""])
def test_no_example_audio_is_noise(folder, nothing):
    data = translated(folder, RECIPE.replace("voice.wav", nothing)).source.data
    assert data["audio"] == "noise"


def test_what_has_no_counterpart_is_a_line_each(folder):
    more = "  export_logs: True\n  save_logs: here\nseed: !apply:torch.manual_seed [1]\n"
    found = translated(folder, RECIPE.replace("voice.wav", "absent.wav") + more)
    place = f"{folder}/profile.yaml"
    assert found.notes == (
        f"{place}:8: example_audio 'absent.wav' was not found: the sample that ships with the package is used instead",
        f"{place}:11: 'save_logs' has no equivalent here and is ignored",
        f"{place}:12: 'seed' has no equivalent here and is ignored",
    )
    assert found.source.data["audio"] == "sample"


def test_exported_logs_are_a_trace(folder):
    (folder / "profile.yaml").write_text(RECIPE + "  export_logs: True\n")
    study = study_from_file(folder / "profile.yaml", [from_flag("models", "log-mel")])
    assert study.plan.trace is True
    assert {case.meters for case in study.cells.cases} == {("latency", "memory", "operators", "split", "trace")}
    assert "trace" not in translated(folder, RECIPE).source.data


def test_a_source_that_is_no_folder_is_a_model_of_the_hub(folder):
    found = translated(folder, "pretrained_model: {source: hub/name, type: VAD}\n")
    assert found.source.data["models"][0]["load"] == "speechbrain:hub/name"
    assert found.notes == ()


def test_a_download_of_the_recipe_is_used(folder):
    (folder / "pretrained_models" / "hub" / "name").mkdir(parents=True)
    found = translated(folder, "pretrained_model: {source: hub/name, type: VAD}\n")
    assert found.source.data["models"][0]["load"] == "speechbrain:pretrained_models/hub/name"
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("pretrained_model:\n  type: VAD\n", ":1: ", "has no model"),
        ("profiling_dimensions: {batch_sizes: [1]}\n", "", "has no model"),
        ("pretrained_model: {source: [a, b]}\n", ":1: ", "source takes a directory, not ['a', 'b']"),
        ("pretrained_model: !new:x.Model {source: a}\n", ":1: ", "'!new:x.Model' is not supported"),
        ("pretrained_model: {source: x}\npretrained_model: {source: y}\n", ":2: ", "appears twice"),
        (RECIPE.replace("[1, 3]", "!range [1, 3]"), ":6: ", "'!range' is not supported"),
        (RECIPE.replace("[1, 3]", "!ref <other>"), ":6: ", "no value that '<other>' refers to"),
    ],
)
def test_what_cannot_be_understood_is_one_line(folder, text, line, what):
    with pytest.raises(PlanError) as refusal:
        translated(folder, text)
    assert what in str(refusal.value)
    assert f"profile.yaml{line}" in str(refusal.value) or not line
    assert refusal.value.fix


@pytest.mark.parametrize(
    ("change", "line", "what"),
    [
        (("[1, 3]", "[1, -3]"), ":6: ", "seconds must be greater than 0"),
        (("[1, 2, 4]", "[1, many]"), ":7: ", "batch takes a whole number"),
        (("triangle_only: False", "triangle_only: half"), ":9: ", "triangle takes true or false"),
        (("triangle_only: False", "export_logs: half"), ":9: ", "trace"),
    ],
)
def test_wrong_values_are_refused_at_their_line(folder, change, line, what):
    (folder / "profile.yaml").write_text(RECIPE.replace(*change))
    with pytest.raises(PlanError) as refusal:
        study_from_file(folder / "profile.yaml", [from_flag("models", "log-mel")])
    assert f"profile.yaml{line}" in str(refusal.value)
    assert what in str(refusal.value)


def test_flags_win_and_stand_in_for_a_model_that_is_not_here(folder):
    (folder / "profile.yaml").write_text(RECIPE.replace("!ref <folder>/french", "hub/name").replace("False", "True"))
    flags = [from_flag("models", "log-mel"), from_flag("batch", "1,2,4,8")]
    study = study_from_file(folder / "profile.yaml", flags)
    assert {case.subject.name for case in study.cells.cases} == {"log-mel"}
    kept = [(case.axes["seconds"], case.axes["batch"]) for case in study.cells.cases]
    skipped = [(skip.case.axes["seconds"], skip.case.axes["batch"]) for skip in study.cells.skipped]
    assert kept == [(1, 1), (1, 2), (1, 4), (1, 8), (3, 1), (3, 2)]
    assert skipped == [(3, 4), (3, 8)]
    assert study.notes == (f"{folder}/profile.yaml:1: 'folder' has no equivalent here and is ignored",)


def test_repeats_take_the_place_of_the_recipes_schedule(folder):
    found = translated(folder, RECIPE, ("models", "log-mel"), ("repeats", "4"))
    assert "schedule" not in apply(found.source, found.overrides).data


def test_the_stored_plan_is_ours_and_says_what_was_lost(folder):
    (folder / "profile.yaml").write_text(RECIPE + "  save_logs: here\n")
    study = study_from_file(folder / "profile.yaml", [from_flag("models", "log-mel")])
    (folder / "plan.yaml").write_text(study.plan_text())
    again = study_from_file(folder / "plan.yaml")
    assert [case.id for case in again.cells.cases] == [case.id for case in study.cells.cases]
    assert study.plan_text().startswith(f"# {folder}/profile.yaml:10: 'save_logs' ")
    assert again.notes == ()
