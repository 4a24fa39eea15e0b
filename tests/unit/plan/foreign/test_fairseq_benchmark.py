"""The YAML of fairseq's speech-to-speech benchmark as a plan of ours."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from speechmeter.core.errors import InputError, PlanError
from speechmeter.core.outputs import SpeechFiles
from speechmeter.launch.preflight import preflight
from speechmeter.plan.source import apply, from_flag, from_set
from speechmeter.plan.study import read_plan, study_from_file
from speechmeter.workloads.dataset import DatasetWorkload
from speechmeter.workloads.text import TextWorkload

ONE = """\
general:
  dataset_path: frames.npy
  cpu: True
  model_type: S2T
  dataset_size: 3
stage1:
  task: speech_to_text
  path: best.pt
  max_len_a: 1.5
"""
THREE = """\
general: {dataset_path: frames.npy, cpu: True, model_type: 3StageS2ST, beam: 4, dataset_size: 2}
stage1: {task: speech_to_text, path: asr.pt, max_len_b: 50}
stage2: {task: translation, path: mt.pt, beam: 2}
stage3: {task: text_to_speech, path: tts.pt}
"""
UNITS = """\
general:
  model_type: S2UT
  dataset_size: 2
  dump_speech_waveforms_dir: out
stage1:
  task: speech_to_speech
  target_is_code: True
  target_code_size: 50
  max_target_positions: 300
stage2:
  vocoder: g.pt
  vocoder_cfg: g.json
  dur_prediction: True
"""


def translated(folder, text, *sets):
    (folder / "bench.yaml").write_text(text)
    return read_plan(folder / "bench.yaml", [from_set(one) for one in sets])


def plan_of(folder, text, *sets):
    found = translated(folder, text, *sets)
    return apply(found.source, found.overrides).data


def test_one_stage_is_a_model_with_axes(tmp_path):
    found = translated(tmp_path, ONE)
    assert found.source.data == {
        "models": [{"name": "S2T", "load": "transformers:speech_to_text", "stand_in_for": {"path": "best.pt"}}],
        "beam": 5,
        "max_len_a": 1.5,
        "device": "cpu",
        "features": {"count": 3, "frames": [100, 1000], "bands": 80},
        "batch": 1,
        "repeats": 3,
        "discard": 2,
        "boundary": "model",
        "meters": ["latency", "memory", "flops"],
    }
    place = f"{tmp_path}/bench.yaml"
    assert found.notes == (
        f"{place}:6: stage1: transformers:speech_to_text with the size of s2t_transformer_s and random weights; "
        "it replaces path best.pt, which only fairseq can read",
        f"{place}:9: max_len_a, max_len_b: with random weights every text has the greatest length that these allow; "
        "set max_new_tokens for another length",
        f"{place}:2: dataset_path 'frames.npy' is not here. Therefore, 3 synthetic examples are used: "
        "random features of 100 to 1000 "
        "frames",
    )
    assert found.source.origin(("max_len_a",)).where == f"{place}:9"


def test_three_stages_are_a_cascade(tmp_path):
    (entry,) = plan_of(tmp_path, THREE)["models"]
    assert (entry["name"], entry["load"]) == ("3StageS2ST", "cascade")
    assert [(stage["name"], stage["load"], stage.get("head")) for stage in entry["stages"]] == [
        ("s2t", "transformers:speech_to_text", None),
        ("mt", "transformers:marian", "mt"),
        ("tts", "transformers:speecht5", "tts"),
    ]


def test_a_stage_counts_before_general_and_general_before_fairseqs_default(tmp_path):
    stages = plan_of(tmp_path, THREE)["models"][0]["stages"]
    settings = [{key: stage.get(key) for key in ("beam", "max_len_a", "max_len_b")} for stage in stages]
    assert settings == [
        {"beam": 4, "max_len_a": None, "max_len_b": 50},
        {"beam": 2, "max_len_a": None, "max_len_b": None},
        {"beam": None, "max_len_a": None, "max_len_b": None},
    ]


def test_a_flag_counts_only_where_the_file_is_silent(tmp_path):
    found = translated(tmp_path, ONE, "max_len_a=9", "beam=1,7", "device=cuda", "threads=1")
    data = apply(found.source, found.overrides).data
    assert (data["max_len_a"], data["beam"], data["device"], data["threads"]) == (1.5, [1, 7], "cpu", 1)
    unheeded = [note for note in found.notes if "is ignored" in note]
    assert [note.split(": ")[1].split(" is ")[0] for note in unheeded] == ["`max_len_a`", "`device`"]
    assert unheeded[0].startswith(f"{tmp_path}/bench.yaml:9: ")


def test_a_flag_reaches_the_stages_of_a_cascade_that_say_nothing(tmp_path):
    (tmp_path / "bench.yaml").write_text(THREE)
    study = study_from_file(tmp_path / "bench.yaml", [from_set("max_len_b=7"), from_set("beam=9")])
    (case,) = study.cells.cases
    assert [stage.get("max_len_b") for stage in case.subject.options["stages"]] == [50, None, None]
    assert (case.axes["max_len_b"], case.axes["beam"]) == (7, 1)
    assert any("`beam` is ignored" in note for note in study.notes)


def test_a_bound_ends_where_the_positions_end(tmp_path):
    long = ONE + "  max_len_b: 100000\n"
    assert plan_of(tmp_path, long)["max_len_b"] == 1023
    assert plan_of(tmp_path, long + "  max_target_positions: 300\n")["max_len_b"] == 299


def test_a_length_that_a_flag_names_takes_the_place_of_bounds(tmp_path):
    found = translated(tmp_path, ONE, "max_new_tokens=9")
    data = apply(found.source, found.overrides).data
    assert "max_len_a" not in data
    assert data["max_new_tokens"] == 9
    assert any(note.endswith("replaced by max_new_tokens") for note in found.notes)


def test_a_stage_may_say_how_many_bands_it_hears(tmp_path):
    (entry,) = plan_of(tmp_path, ONE.replace("cpu: True", "feat_dim: 40"))["models"]
    assert entry["config"] == {"input_feat_per_channel": 40}


def test_units_get_a_dictionary_and_a_vocoder_of_their_number(tmp_path):
    found = translated(tmp_path, UNITS)
    speak, sing = found.source.data["models"][0]["stages"]
    assert (speak["name"], speak["load"]) == ("s2u", "transformers:speech_to_text")
    assert speak["config"] == {"vocab_size": 54, "decoder_attention_heads": 8, "max_target_positions": 300}
    assert (sing["name"], sing["load"], sing["head"]) == ("vocoder", "transformers:seamless_m4t", "vocoder")
    assert sing["config"]["unit_hifi_gan_vocab_size"] == 54
    assert found.source.data["save_speech"] is True
    assert (
        f"{tmp_path}/bench.yaml:4: dump_speech_waveforms_dir: speech is saved in artifacts/ of the run" in found.notes
    )
    assert "stand_in_for" not in speak
    assert sing["stand_in_for"] == {"vocoder": "g.pt", "vocoder_cfg": "g.json"}
    assert any("replaces vocoder g.pt, vocoder_cfg g.json, which" in note for note in found.notes)


def test_without_a_vocoder_there_is_no_sound(tmp_path):
    found = translated(tmp_path, UNITS[: UNITS.index("stage2")])
    assert found.source.data["models"][0]["name"] == "S2UT"
    assert any(note.endswith("no remaining stage generates speech") for note in found.notes)


@pytest.mark.parametrize(
    ("task", "load", "workload"),
    [
        (
            "speech_to_text",
            "transformers:speech_to_text",
            {"features": {"count": 3, "frames": [100, 1000], "bands": 80}},
        ),
        ("translation", "transformers:marian", {"text": {"vocabulary": 58101, "count": 3}}),
        ("text_to_speech", "transformers:speecht5", {"text": {"vocabulary": 81, "count": 3}}),
        (
            "speech_to_speech",
            "transformers:speecht5",
            {"audio": "noise", "workload": {"name": "audio", "count": 3, "shortest": 1.0, "longest": 10.0}},
        ),
    ],
)
def test_each_task_is_fed_what_it_takes(tmp_path, task, load, workload):
    data = plan_of(tmp_path, ONE.replace("speech_to_text", task).replace("S2T", "MT"))
    assert data["models"][0]["load"] == load
    assert {key: data[key] for key in ("audio", "workload", "seconds", "text", "features") if key in data} == workload


def test_a_stage_that_stands_twice_is_named_with_both_lines(tmp_path):
    with pytest.raises(PlanError) as refusal:
        translated(tmp_path, THREE.replace("stage3:", "stage2:"))
    assert str(refusal.value) == (
        f"{tmp_path}/bench.yaml:4: stage2 appears twice, on lines 3 and 4; YAML would keep only the second; "
        "rename the one on line 4 to stage3"
    )


def test_the_chain_ends_before_a_task_that_nothing_stands_in_for(tmp_path):
    found = translated(tmp_path, THREE.replace("translation", "language_modeling"))
    (entry,) = found.source.data["models"]
    assert (entry["name"], entry["load"]) == ("3StageS2ST", "transformers:speech_to_text")
    assert found.notes[0] == (
        f"{tmp_path}/bench.yaml:3: stage2: the task 'language_modeling' is not supported; "
        "this stage and those after it are left out"
    )


def test_keys_without_a_counterpart_are_a_line_each(tmp_path):
    found = translated(tmp_path, ONE + "  sacrebleu: True\nextra: 1\n")
    left_out = [note for note in found.notes if note.endswith("is ignored")]
    assert left_out == [
        f"{tmp_path}/bench.yaml:10: 'sacrebleu' has no equivalent here and is ignored",
        f"{tmp_path}/bench.yaml:11: 'extra' has no equivalent here and is ignored",
    ]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (ONE.replace("speech_to_text", "masked_lm"), ":7: ", "the task 'masked_lm' is not supported; known are"),
        (ONE.replace("task", "tusk"), ":6: ", "stage1 has no task"),
        (ONE.replace("S2T", "S2X"), ":4: ", "there is no model_type 'S2X'"),
        (ONE.replace("S2T", "[a]"), ":4: ", "there is no model_type"),
        (ONE.replace("S2T", "2StageS2ST"), ":6: ", "stage2 is missing; 2StageS2ST has 2 stages"),
        (ONE.replace("stage1", "stage2"), ":6: ", "stage1 is missing"),
        ("general: {cpu: True}\n", ":1: ", "stage1 is missing"),
        ("general: [1]\nstage1: {task: translation}\n", ":1: ", "general takes a mapping"),
        ("stage1: translation\n", ":1: ", "stage1 takes a mapping"),
        (ONE.replace("dataset_size: 3", "dataset_size: -3"), ":5: ", "dataset_size takes a whole number from 1 on"),
        (ONE.replace("cpu: True", "feat_dim: many"), ":3: ", "feat_dim takes a whole number from 1 on"),
        (ONE.replace("cpu: True", "cpu: maybe"), ":3: ", "cpu takes true or false"),
        (ONE.replace("1.5", "-1"), ":9: ", "max_len_a must be at least 0"),
        (THREE.replace("beam: 2", "beam: two"), ":3: ", "beam takes a whole number"),
        (ONE.replace("best.pt", "!!python/object/apply:os.system [touch pwned]"), ":8: ", "remove YAML tags"),
        (ONE + "  path: other.pt\n", ":10: ", "appears twice"),
        (ONE + "  eos_prob_threshold: 2\n", ":10: ", "eos_prob_threshold takes a number from 0 to 1, not 2"),
        (UNITS.replace("dataset_size: 2", "target_sr: fast"), ":3: ", "save_speech.rate takes a whole number"),
    ],
)
def test_what_cannot_be_understood_is_one_line(tmp_path, monkeypatch, text, line, what):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.yaml").write_text(text)
    with pytest.raises(InputError) as refusal:
        study_from_file(tmp_path / "bench.yaml")
    assert f"bench.yaml{line}" in str(refusal.value)
    assert what in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert [path.name for path in tmp_path.iterdir()] == ["bench.yaml"]


class _Trap:
    def __reduce__(self):
        return (open, ("pwned", "w"))


def test_a_pickle_is_never_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "frames.npy").write_bytes(pickle.dumps(_Trap()))
    (tmp_path / "best.pt").write_bytes(pickle.dumps(_Trap()))
    for kind in ("npy", "raw"):
        (tmp_path / "bench.yaml").write_text(ONE.replace("cpu: True", f"cpu: True\n  dataset_type: {kind}"))
        assert len(study_from_file(tmp_path / "bench.yaml").cells.cases) == 1
    assert not (tmp_path / "pwned").exists()


def sounds(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        soundfile.write(folder / name, [0.1] * 1600, 16000)


RAW = ONE.replace("frames.npy", "list.tsv\n  dataset_type: raw")


@pytest.mark.parametrize("root", ["speech", "{folder}/speech"])
def test_a_manifest_whose_files_are_here_is_a_dataset_of_them(tmp_path, root):
    sounds(tmp_path, "speech/a.wav", "speech/c.wav")
    lines = [root.format(folder=tmp_path), "a.wav\t1600", "missing.wav\t16", "c.wav\t1600", "b.wav\t1600"]
    (tmp_path / "list.tsv").write_text("\n".join(lines) + "\n")
    data = plan_of(tmp_path, RAW)
    assert data["data"] == {"manifest": f"{tmp_path}/list.tsv", "format": "fairseq", "count": 3}
    assert data["repeats"] == 3
    assert "seconds" not in data
    assert "audio" not in data
    (case,) = study_from_file(tmp_path / "bench.yaml").cells.cases
    batches = DatasetWorkload().batches(case)
    assert [batch.ids for batch in batches] == [("a",), ("c",)]
    assert batches.left_out.count == 1


@pytest.mark.parametrize("content", [None, "", "nowhere\na.wav\t5\n", "\x00\x01"])
def test_a_manifest_without_files_leaves_synthetic_data(tmp_path, content):
    if content is not None:
        (tmp_path / "list.tsv").write_text(content)
    found = translated(tmp_path, RAW)
    assert found.source.data["features"]["count"] == 3
    assert any("lists no file that exists. Therefore, 3 synthetic examples are used" in note for note in found.notes)


def test_sound_that_a_flag_names_takes_the_place_of_the_data(tmp_path):
    assert plan_of(tmp_path, ONE, "seconds=2")["seconds"] == 2
    assert "audio" not in plan_of(tmp_path, ONE, "seconds=2")
    assert plan_of(tmp_path, ONE, "audio=sample")["audio"] == "sample"


def test_the_files_of_the_original_are_part_of_the_case_and_nothing_else_changes(tmp_path):
    (tmp_path / "bench.yaml").write_text(ONE)
    (case,) = study_from_file(tmp_path / "bench.yaml").cells.cases
    assert case.subject.options == {"stand_in_for": {"path": "best.pt"}}
    (tmp_path / "bench.yaml").write_text(ONE.replace("  path: best.pt\n", ""))
    (without,) = study_from_file(tmp_path / "bench.yaml").cells.cases
    assert without.subject.options == {}
    assert without == replace(case, subject=replace(case.subject, options={}))


def samples(path, *arrays):
    items = np.empty(len(arrays), dtype=object)
    for place, array in enumerate(arrays):
        inputs = {"src_tokens": array, "src_lengths": np.array([array.shape[1]])}
        items[place] = {"id": place, "net_input": inputs}
    np.save(path, items, allow_pickle=True)


def test_a_list_of_samples_that_is_here_is_what_is_fed(tmp_path):
    samples(tmp_path / "frames.npy", *(np.ones((1, frames, 80), np.float32) for frames in (5, 9, 7, 8)))
    found = translated(tmp_path, ONE)
    assert found.source.data["data"] == {"manifest": f"{tmp_path}/frames.npy", "format": "npy", "count": 3}
    assert found.source.data["repeats"] == 3
    assert not any("dataset_path" in note or "synthetic examples" in note for note in found.notes)
    (case,) = study_from_file(tmp_path / "bench.yaml").cells.cases
    assert preflight([case]) == []
    assert [batch.data.shape for batch in DatasetWorkload().batches(case)] == [(1, 5, 80), (1, 9, 80), (1, 7, 80)]


def test_without_a_dataset_size_every_sample_is_fed_once(tmp_path):
    samples(tmp_path / "frames.npy", *(np.ones((1, frames, 80), np.float32) for frames in (5, 9)))
    data = plan_of(tmp_path, ONE.replace("  dataset_size: 3\n", ""))
    assert data["data"] == {"manifest": f"{tmp_path}/frames.npy", "format": "npy"}
    assert data["repeats"] == 1  # samples are whole passes over the items


def test_samples_of_token_ids_are_fed_to_a_model_that_reads(tmp_path):
    samples(tmp_path / "frames.npy", np.array([[4, 5, 6]]), np.array([[7, 8]]))
    assert plan_of(tmp_path, ONE.replace("speech_to_text", "translation").replace("S2T", "MT"))["text"] == {
        "ids": f"{tmp_path}/frames.npy",
        "count": 3,
    }
    (case,) = study_from_file(tmp_path / "bench.yaml").cells.cases
    assert [batch.data for batch in TextWorkload().batches(case)] == [((4, 5, 6),), ((7, 8),)]


@pytest.mark.parametrize("task", ["speech_to_text", "translation"])
def test_a_list_that_is_none_is_refused_before_anything_runs(tmp_path, monkeypatch, task):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "frames.npy").write_bytes(pickle.dumps(_Trap()))
    (tmp_path / "bench.yaml").write_text(ONE.replace("speech_to_text", task))
    with pytest.raises(InputError, match=r"frames\.npy"):
        preflight(study_from_file(tmp_path / "bench.yaml").cells.cases)
    assert not (tmp_path / "pwned").exists()


def test_features_for_a_model_that_hears_sound_alone_are_refused_beforehand(tmp_path):
    samples(tmp_path / "frames.npy", np.ones((1, 5, 80), np.float32))
    (tmp_path / "bench.yaml").write_text(ONE.replace("speech_to_text", "speech_to_speech").replace("S2T", "S2S"))
    with pytest.raises(InputError, match=r"speecht5 with `head: .*` computes features from audio itself"):
        preflight(study_from_file(tmp_path / "bench.yaml").cells.cases)


def test_dumped_sound_has_the_prefix_and_the_rate_of_the_file(tmp_path):
    text = UNITS.replace("dataset_size: 2", "dump_waveform_file_prefix: dev\n  target_sr: 22050")
    (tmp_path / "bench.yaml").write_text(text)
    assert study_from_file(tmp_path / "bench.yaml").plan.speech_files() == SpeechFiles(prefix="dev", rate=22050)
    found = translated(tmp_path, text.replace("  dump_speech_waveforms_dir: out\n", ""))
    assert "save_speech" not in found.source.data
    assert sum("ignored without dump_speech_waveforms_dir" in note for note in found.notes) == 2


def test_a_threshold_for_the_end_of_speech_is_handed_to_the_stage_that_has_one(tmp_path):
    stages = plan_of(tmp_path, THREE.replace("beam: 4,", "beam: 4, eos_prob_threshold: 0.3,"))["models"][0]["stages"]
    assert [stage.get("generate") for stage in stages] == [None, None, {"threshold": 0.3}]
    found = translated(tmp_path, ONE + "  eos_prob_threshold: 0.3\n")
    assert "generate" not in found.source.data["models"][0]
    assert any("eos_prob_threshold: ignored, because no stage" in note for note in found.notes)


def test_a_model_that_a_flag_names_takes_the_place_of_the_stages(tmp_path):
    (tmp_path / "bench.yaml").write_text(ONE.replace("speech_to_text", "masked_lm"))
    study = study_from_file(tmp_path / "bench.yaml", [from_flag("models", "log-mel")])
    assert [case.subject.name for case in study.cells.cases] == ["log-mel"]
    (tmp_path / "bench.yaml").write_text(ONE)
    study = study_from_file(tmp_path / "bench.yaml", [from_flag("models", "log-mel")])
    assert [case.workload.options["count"] for case in study.cells.cases] == [3]
    assert preflight(study.cells.cases) == []


def test_the_stored_plan_gives_the_same_cases(tmp_path):
    (tmp_path / "bench.yaml").write_text(THREE)
    study = study_from_file(tmp_path / "bench.yaml")
    (tmp_path / "plan.yaml").write_text(study.plan_text())
    again = study_from_file(tmp_path / "plan.yaml")
    assert [case.id for case in again.cells.cases] == [case.id for case in study.cells.cases]
    assert study.plan_text().count("# ") == len(study.notes)
