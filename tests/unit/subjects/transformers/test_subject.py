"""What is refused before anything is started, each in one line with the way out."""

import json

import pytest
from conftest import make_case

pytest.importorskip("transformers", reason="needs transformers")

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Spec
from speechmeter.subjects.transformers import TransformersSubject

TEXT = Spec(plugin="text", name="text")
FEATURES = Spec(plugin="features", name="features")
CASCADE = Spec(plugin="cascade", name="asr")


def features(bands):
    return Spec(plugin="features", name="features", options={"bands": bands})


def case(source, workload=None, axes=(), **options):
    changes = {"workload": workload} if workload else {}
    subject = Spec(plugin="transformers", name="x", source=str(source), options=options)
    return make_case(subject=subject, **changes, **dict(axes))


def refused(*args, **options):
    with pytest.raises(SubjectError) as caught:
        TransformersSubject().check(case(*args, **options))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_directory_without_a_configuration(tmp_path):
    assert "contains no config.json" in refused(tmp_path)


def test_a_model_that_needs_code_of_its_own(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "wav2vec2", "auto_map": {"AutoModel": "x.Y"}}))
    assert "needs remote code" in refused(tmp_path)


def test_a_head_that_the_architecture_has_no_class_for():
    assert refused("whisper", head="tts").endswith("it has: seq2seq, encoder, units, st")


def test_an_architecture_of_another_trade():
    assert "bert is not a speech or translation model" in refused("bert")
    assert "prompt of text and sound" in refused("qwen2_audio")


def test_what_a_model_cannot_take():
    assert "takes text" in refused("marian")
    assert "add `text` to the plan" in refused("vits")
    assert "takes sound" in refused("whisper", TEXT)
    assert "takes spectrograms" in refused("univnet", TEXT)


def test_features_are_taken_past_a_front_end_of_as_many_bands():
    for source in ("speech_to_text", "wav2vec2-bert", "parakeet_ctc"):
        TransformersSubject().check(case(source, FEATURES))
    TransformersSubject().check(case("speech_to_text", features(40), config={"input_feat_per_channel": 40}))
    assert "needs features with 80 bands, but `features` gives 40; feed 80 bands" in refused(
        "speech_to_text", features(40)
    )
    for source in ("wav2vec2", "whisper", "encodec"):
        assert "takes no `features`" in refused(source, FEATURES)
    assert "speecht5 with `head: s2st` computes features from audio itself" in refused(
        "speecht5", FEATURES, head="s2st", vocoder="random"
    )
    assert "takes text" in refused("marian", FEATURES)


def test_inside_a_cascade_nothing_is_known_of_the_input():
    for source in ("marian", "whisper", "univnet"):
        TransformersSubject().check(case(source, CASCADE))


def test_spectrograms_need_a_vocoder(tmp_path):
    assert "add `vocoder: random`" in refused("speecht5", TEXT)
    TransformersSubject().check(case("speecht5", TEXT, vocoder="random"))
    TransformersSubject().check(case("speecht5"))
    assert "contains no config.json" in refused("speecht5", TEXT, vocoder=str(tmp_path))


def test_a_synthesiser_takes_a_threshold_for_the_end_of_speech_alone():
    TransformersSubject().check(case("speecht5", TEXT, vocoder="random", generate={"threshold": 0.3}))
    for given in ({"threshold": 3}, {"threshold": "low"}, {"maxlenratio": 2.0}):
        assert "takes only a threshold from 0 to 1" in refused("speecht5", TEXT, vocoder="random", generate=given)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"stand_in_for": {"path": 5}}, "stand_in_for must be a mapping of names to file names"),
        ({"generate": {"num_beams": 4}}, "use the axis `beam`"),
        ({"generate": {"do_sample": True}}, "never sampled"),
    ],
)
def test_bad_options(options, what):
    assert what in refused("whisper", **options)


def test_axes_that_exclude_each_other():
    assert "max_new_tokens cannot be combined" in refused("whisper", axes={"max_new_tokens": 5, "max_len_a": 1.0})


def test_quantising_and_compiling_have_their_limits():
    subject = TransformersSubject()
    int8 = {"quantize": "int8-dynamic"}
    assert subject.unavailable(case("whisper", axes=int8)) is None
    assert "float32" in str(subject.unavailable(case("whisper", axes={**int8, "dtype": "bfloat16"})))
    assert "CPU only" in str(subject.unavailable(case("whisper", axes={**int8, "device": "cuda"})))
    assert "encodec with `head: codec`" in str(subject.unavailable(case("encodec", axes={"compile": True})))
    assert subject.unavailable(case("whisper", axes={"compile": True})) is None
    assert subject.unavailable(case("wav2vec2", axes={"compile": True})) is None
    assert subject.unavailable(case("vits", TEXT, axes={"dtype": "bfloat16"})) is None
    assert "float32 only" in str(subject.unavailable(case("fastspeech2_conformer", TEXT, {"dtype": "bfloat16"})))
