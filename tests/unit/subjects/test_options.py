"""What a plan may set for each subject is declared: kind, choices and bounds refuse it before anything is loaded."""

import pytest

from speechmeter.core import plugins


def option_of(subject, name):
    (found,) = [option for option in plugins.subject(subject).options if option.name == name]
    return found


@pytest.mark.parametrize("subject", plugins.names(plugins.SUBJECTS))
def test_every_option_says_what_it_takes_and_what_it_is_for(subject):
    for option in plugins.subject(subject).options:
        assert object not in option.kinds, option.name
        assert option.help, option.name
        assert option.check(option.default) is None


@pytest.mark.parametrize(
    ("subject", "name", "good", "bad"),
    [
        ("cascade", "stages", [[]], "asr"),
        ("conformer-ctc", "vocabulary", [2, 500], 1),
        ("conformer-ctc", "vocabulary", [], 2.0),
        ("conformer-ctc", "vocabulary", [], True),
        ("faster-whisper", "language", ["en"], 5),
        ("faster-whisper", "weights", ["auto", "random"], "mine"),
        ("moonshine-voice", "arch", ["tiny", None], "huge"),
        ("moonshine-voice", "update", [0.2, 1], 0),
        ("redecode", "agree", [1, 3], 0),
        ("redecode", "model", [{"language": "en"}], "en"),
        ("onnx", "layout", ["bands-frames", None], "up"),
        ("onnx", "providers", [["CPUExecutionProvider"]], "CPU"),
        ("openai-whisper", "language", ["en"], None),
        ("openai-whisper", "weights", ["auto", "random"], "mine"),
        ("s3prl", "config", [{"encoder_layers": 2}], None),
        ("sherpa-onnx", "model", ["a.onnx"], 1),
        ("sherpa-onnx", "weights", ["auto", "random"], "mine"),
        ("speechbrain", "overrides", [{"num_spks": 2}], "num_spks"),
        ("speechbrain", "type", ["VAD"], 1),
        ("speechbrain", "weights", ["auto", "random"], "mine"),
        ("train", "states", [2], 1),
        ("train", "rows", [{"embed": "encoder"}], ["encoder"]),
        ("train", "published", [{"forward_ms": {"embed": 168}}], 168),
        ("transducer-loss", "states", [2, 5], 1),
        ("transducer-loss", "states", [], True),
        ("transformers", "clusters", [1], 0),
        ("transformers", "config", [{"hidden_size": 8}], "small"),
        ("transformers", "generate", [{"language": "en"}], "en"),
        ("transformers", "head", ["ctc", None], "asr"),
        ("transformers", "stand_in_for", [{"path": "best.pt"}], "best.pt"),
        ("transformers", "vocoder", ["random"], 1),
        ("transformers", "weights", ["auto", "random"], "none"),
    ],
)
def test_a_wrong_value_is_refused_by_name(subject, name, good, bad):
    option = option_of(subject, name)
    assert [option.check(value) for value in good] == [None] * len(good)
    assert name in option.check(bad)
