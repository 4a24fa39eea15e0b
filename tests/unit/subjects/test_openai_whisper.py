import numpy as np
import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("tiktoken", reason="needs openai-whisper, which needs tiktoken")
whisper = pytest.importorskip("whisper", reason="needs openai-whisper")

from speechmeter.core.errors import InputError  # noqa: E402
from speechmeter.core.types import Batch, Spec  # noqa: E402
from speechmeter.meters.flops.shapes_only import shapes_only  # noqa: E402
from speechmeter.meters.parameters import count  # noqa: E402
from speechmeter.subjects.openai_whisper import SIZES, OpenAIWhisperSubject  # noqa: E402

SOUND = np.random.default_rng(0).standard_normal((2, 31 * 16_000), dtype=np.float32)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A small model in the library's own format, with all of its tokens."""
    torch.manual_seed(0)
    sizes = {"n_mels": 80, "n_audio_ctx": 1500, "n_audio_state": 16, "n_audio_head": 2, "n_audio_layer": 1,
             "n_vocab": 51865, "n_text_ctx": 448, "n_text_state": 16, "n_text_head": 2, "n_text_layer": 2}  # fmt: skip
    model = whisper.model.Whisper(whisper.ModelDimensions(**sizes))
    torch.nn.init.normal_(model.decoder.positional_embedding, std=0.01)
    path = tmp_path_factory.mktemp("whisper") / "small.pt"
    torch.save({"dims": sizes, "model_state_dict": model.state_dict()}, path)
    return path


def case_of(source, options=None, **axes):
    spec = Spec(plugin="openai-whisper", name="m", source=str(source), options=options or {})
    return make_case(subject=spec, **{"beam": 1, "max_new_tokens": None, **axes})


def model_stage(prepared):
    return next(stage for stage in prepared.stages if stage.name == "model")


def tokens_of(prepared, made):
    return model_stage(prepared).tokens(made[prepared.stages.index(model_stage(prepared))])


def outputs(prepared, batch):
    states = [batch]
    for stage in prepared.stages:
        states.append(stage.fn(states[-1]))
    return states[1:]


@pytest.mark.parametrize("size", SIZES)
def test_sizes_have_the_weights_of_the_published_models(size):
    millions = {"tiny": 39, "base": 74, "small": 244, "medium": 769, "large-v2": 1550, "large-v3": 1550}
    transformers = pytest.importorskip("transformers", reason="counts the same model another way")
    width, heads, layers = SIZES[size]
    with shapes_only():
        prepared = OpenAIWhisperSubject().prepare(case_of(size), "cpu")
        ours = {(m.metric, m.scope): m.values for m in count(prepared.modules)}["parameters.v1", "total"]
    config = transformers.WhisperConfig(
        d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width,
        num_mel_bins=128 if size == "large-v3" else 80, vocab_size=51866 if size == "large-v3" else 51865,
    )  # fmt: skip
    with torch.device("meta"):
        theirs = transformers.WhisperForConditionalGeneration(config)
    positions = 1500 * width  # a buffer in the one, a parameter in the other
    assert ours == (sum(p.numel() for p in theirs.parameters()) - positions,)
    assert ours[0] == pytest.approx(millions[size] * 1e6, rel=0.06)
    assert any(note.startswith("random weights") for note in prepared.notes)


@pytest.mark.parametrize("beam", [1, 3])
def test_random_weights_make_exactly_the_tokens_that_are_pinned(checkpoint, beam):
    case = case_of(checkpoint, {"weights": "random"}, beam=beam, max_new_tokens=5, seconds=31.0)
    prepared = OpenAIWhisperSubject().prepare(case, "cpu")
    made = outputs(prepared, Batch(data=SOUND, items=2, lengths=(SOUND.shape[1], 16_000)))
    assert tokens_of(prepared, made) == 3 * 5
    assert model_stage(prepared).pinned_tokens == 2 * 5
    assert len(made[-1]) == 2
    assert "output length fixed at 5 tokens" in prepared.notes


def test_a_checkpoint_decides_its_length_itself(checkpoint):
    prepared = OpenAIWhisperSubject().prepare(case_of(checkpoint, max_new_tokens=5), "cpu")
    assert prepared.data_dependent
    assert model_stage(prepared).pinned_tokens is None
    assert not any("random weights" in note for note in prepared.notes)
    assert tokens_of(prepared, outputs(prepared, Batch(data=SOUND[:1], items=1, lengths=(16_000,)))) <= 5


def test_what_cannot_be_loaded_is_said_in_one_line(tmp_path, checkpoint):
    subject = OpenAIWhisperSubject()
    with pytest.raises(
        InputError, match="'tinny' is neither a model size, such as tiny, nor a file; did you mean 'tiny'"
    ):
        subject.check(case_of("tinny"))
    with pytest.raises(InputError, match="use a checkpoint file that exists"):
        subject.check(case_of("absent.pt"))
    (tmp_path / "bad.pt").write_text("not a checkpoint")
    with pytest.raises(InputError, match=r"cannot load .*bad\.pt"):
        subject.prepare(case_of(tmp_path / "bad.pt"), "cpu")
    with pytest.raises(InputError, match="Unsupported language: klingon"):
        subject.prepare(case_of(checkpoint, {"language": "klingon"}), "cpu")


def test_what_the_library_cannot_do_is_unavailable():
    subject = OpenAIWhisperSubject()
    assert subject.unavailable(case_of("tiny")) is None
    assert subject.unavailable(case_of("tiny", dtype="float16", device="cuda")) is None
    for axes in ({"dtype": "float16"}, {"dtype": "bfloat16", "device": "cuda"}, {"compile": True}):
        assert subject.unavailable(case_of("tiny", **axes))
    assert "at most 444" in subject.unavailable(case_of("tiny", max_new_tokens=445))
