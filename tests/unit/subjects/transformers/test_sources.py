"""What transformers has, as read from its files: the library itself must agree."""

import subprocess
import sys

import pytest

transformers = pytest.importorskip("transformers", reason="needs transformers")

from speechmeter.subjects.transformers.sources import (  # noqa: E402
    FRAMES,
    HEADS,
    SOUND,
    TEXT,
    class_name,
    heads_of,
    is_prompted,
    model_types,
    natural_head,
    takes,
)


def test_the_catalogue_agrees_with_the_library():
    from transformers.models.auto import modeling_auto

    assert {kind for kind in model_types() if class_name("ctc", kind)} == set(modeling_auto.MODEL_FOR_CTC_MAPPING_NAMES)
    for kind, name in modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES.items():
        assert class_name("seq2seq", kind) == (None if is_prompted(kind) else name)
    assert not is_prompted("seamless_m4t")
    assert not is_prompted("marian")
    assert is_prompted("voxtral")


def test_every_class_that_is_named_here_exists():
    named = {name for head in HEADS.values() for name in head.classes.values()} - {"SeamlessM4Tv2CodeHifiGan"}
    assert [name for name in sorted(named) if not hasattr(transformers, name)] == []
    from transformers.models.seamless_m4t_v2 import modeling_seamless_m4t_v2 as hidden

    assert hasattr(hidden, "SeamlessM4Tv2CodeHifiGan")


@pytest.mark.parametrize(
    ("kind", "fed", "head"),
    [
        ("wav2vec2", SOUND, "encoder"),
        ("whisper", SOUND, "seq2seq"),
        ("parakeet_ctc", SOUND, "ctc"),
        ("parakeet_tdt", SOUND, "tdt"),
        ("speecht5", SOUND, "seq2seq"),
        ("speecht5", TEXT, "tts"),
        ("seamless_m4t", TEXT, "mt"),
        ("marian", TEXT, "mt"),
        ("vits", TEXT, "tts"),
        ("encodec", SOUND, "codec"),
        ("encodec", TEXT, "vocoder"),
        ("speecht5_hifigan", FRAMES, "vocoder"),
        ("bert", TEXT, None),
    ],
)
def test_the_natural_head_follows_from_the_architecture_and_what_it_is_fed(kind, fed, head):
    assert natural_head(kind, fed=fed) == head


def test_the_class_that_was_trained_says_what_it_is_for():
    assert natural_head("wav2vec2", ["Wav2Vec2ForCTC"], SOUND) == "ctc"
    assert natural_head("speecht5", ["SpeechT5ForSpeechToSpeech"], SOUND) == "s2st"


def test_models_that_do_not_hear_are_no_encoders():
    assert heads_of("t5") == ["mt"]
    assert "encoder" not in heads_of("univnet")
    assert takes("vocoder", "univnet") == FRAMES
    assert takes("vocoder", "mimi") == TEXT


def test_looking_it_up_imports_nothing_heavy():
    code = (
        "import sys; from speechmeter.subjects.transformers import sources; sources.natural_head('whisper');"
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
