"""No operator of a speech architecture is unknown to the FLOP count, and each is counted on shapes alone."""

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from speechmeter.core import plugins  # noqa: E402
from speechmeter.core.types import Spec  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.engine.phases import SHAPES  # noqa: E402

TWO = {"num_hidden_layers": 2}
TWO_EACH = {"encoder_layers": 2, "decoder_layers": 2}
# Two layers stand for all of them; everything else is as the architecture has it by default.
ENCODERS = {
    "audio-spectrogram-transformer": TWO,
    "data2vec-audio": TWO,
    "hubert": TWO,
    "lasr_ctc": {"encoder_config": TWO},
    "lasr_encoder": TWO,
    "sew": TWO,
    "sew-d": TWO,
    "unispeech": TWO,
    "unispeech-sat": TWO,
    "wav2vec2": TWO,
    "wav2vec2-conformer": {**TWO, "vocab_size": 32},
    "wavlm": TWO,
}
# Counted on shapes against a formula, without an unknown operator, in test_flops_truth.py.
WITH_A_FORMULA = ("data2vec-audio", "hubert", "wav2vec2", "wavlm", "whisper")
LIKE_ANOTHER = ("unispeech", "seamless_m4t")  # the layers of unispeech-sat and of seamless_m4t_v2
WITHOUT_CTC = {"audio-spectrogram-transformer", "lasr_encoder"}
A_FEW_WITH_CTC = {
    "wav2vec2",
    "wav2vec2-bert",
    "sew-d",
}  # the head is one layer; the encoders are all counted without it
DECODERS = {
    "moonshine": {"encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2},
    "seamless_m4t": {**TWO_EACH, "speech_encoder_layers": 2, "t2u_encoder_layers": 1, "t2u_decoder_layers": 1},
    "seamless_m4t_v2": {**TWO_EACH, "speech_encoder_layers": 2, "t2u_encoder_layers": 1, "t2u_decoder_layers": 1},
    "speech_to_text": TWO_EACH,
    "speecht5": TWO_EACH,
    "whisper": TWO_EACH,
}


@pytest.fixture(autouse=True)
def as_before():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def counted(source, *, plugin="transformers", head=None, config=None, **axes):
    """The total as a run gets it: the real subject, on shapes alone or, when it refuses, on a real run."""
    options = {"config": config or {}, **({"head": head} if head else {})} if plugin == "transformers" else {}
    subject = Spec(plugin=plugin, name=source, source=source, options=options)
    case = make_case(subject=subject, **axes)
    outcome = measure(
        case, plugins.subject(plugin), plugins.workload("audio"), [plugins.meter("flops")], process=SHAPES
    )
    assert outcome.status == "ok", outcome.reason
    (total,) = [m for m in outcome.measurements if (m.metric, m.scope) == ("flops.v1", "total")]
    return total


def check(total):
    assert total.notes["counted on"] == "shapes alone", total.notes["because"]
    assert total.notes["unknown"] == {}
    assert min(total.values) > 0


def few(sources):
    """The architectures as parameters; those that are counted elsewhere too are for the campaign."""
    elsewhere = {*WITH_A_FORMULA, *LIKE_ANOTHER}
    return [pytest.param(name, marks=pytest.mark.campaign if name in elsewhere else ()) for name in sources]


@pytest.mark.parametrize("source", few(ENCODERS))
def test_an_encoder_has_no_unknown_operator(source):
    check(counted(source, config=ENCODERS[source]))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(name, marks=() if name in A_FEW_WITH_CTC else pytest.mark.campaign)
        for name in ENCODERS
        if name not in WITHOUT_CTC
    ],
)
def test_an_encoder_with_a_ctc_head_has_no_unknown_operator(source):
    check(counted(source, head="ctc", config=ENCODERS[source]))


@pytest.mark.parametrize("source", few(DECODERS))
def test_a_model_that_writes_has_no_unknown_operator(source):
    check(counted(source, config=DECODERS[source], max_new_tokens=3))


def test_the_built_in_front_end_has_no_unknown_operator():
    check(counted("log-mel", plugin="log-mel"))
