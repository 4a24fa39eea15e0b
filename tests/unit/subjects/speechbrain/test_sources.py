"""What can be told of a SpeechBrain model without building it."""

import json

import pytest
from conftest import make_case
from speechbrain_models import MODELS, speechbrain_case

from speechmeter.core.errors import SubjectError
from speechmeter.subjects.speechbrain import SpeechBrainSubject
from speechmeter.subjects.speechbrain.sources import TYPES, interface_type


def written(directory, text):
    (directory / "hyperparams.yaml").write_text(text)
    return directory


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_found_in_the_file(kind):
    SpeechBrainSubject().check(speechbrain_case(MODELS / kind))
    assert interface_type(speechbrain_case(MODELS / kind)) == kind


def test_an_option_goes_before_the_file_and_the_file_before_config_json(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"speechbrain_interface": "VAD"}))
    written(tmp_path, "modules: {}\n")
    assert interface_type(speechbrain_case(tmp_path)) == "VAD"
    written(tmp_path, "type: EncoderASR\nmodules: {}\n")
    assert interface_type(speechbrain_case(tmp_path)) == "EncoderASR"
    assert interface_type(speechbrain_case(tmp_path, type="SNREstimator")) == "SNREstimator"


def test_checking_builds_nothing(tmp_path):
    written(tmp_path, "type: EncoderASR\nboom: !apply:os._exit [3]\nmodules:\n  encoder: !new:os.abort\n")
    SpeechBrainSubject().check(speechbrain_case(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modules: {}\n", "does not name its interface"),
        ("type: EncoderClasifier\nmodules: {}\n", "did you mean 'EncoderClassifier'"),
        ("type: VAD\n", "has no section `modules`"),
        (
            "type: VAD\nmodules: {cnn: 1, rnn: 2}\n",
            "has no compute_features, mean_var_norm, dnn in its section `modules`, which VAD needs",
        ),
        ("type: VAD\nmodules: [\n", "is not YAML"),
        ("- 1\n", "does not contain a mapping"),
        (
            "type: EndToEndSLU\nasr_model_source: speechbrain/asr\nmodules: {slu_enc: 1, beam_searcher: 2}\n",
            "set asr_model_source to its folder",
        ),
    ],
)
def test_a_file_that_cannot_be_a_model_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(SubjectError) as refused:
        SpeechBrainSubject().check(speechbrain_case(written(tmp_path, text)))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unknown_interface_is_refused():
    with pytest.raises(SubjectError, match="no interface 'ASR'"):
        SpeechBrainSubject().check(speechbrain_case(MODELS / "VAD", type="ASR"))


def test_a_directory_without_the_file_is_refused(tmp_path):
    with pytest.raises(SubjectError, match=r"contains no hyperparams\.yaml"):
        SpeechBrainSubject().check(speechbrain_case(tmp_path))


def test_half_precision_is_refused():
    assert "float32" in SpeechBrainSubject().unavailable(make_case(dtype="bfloat16"))
