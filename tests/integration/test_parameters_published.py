"""Published sizes of speech models, built from their configurations without memory, and a quantised one."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
transformers = pytest.importorskip("transformers", reason="needs transformers")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from speechmeter.meters.parameters import count  # noqa: E402


def figures(module):
    return {(m.metric, m.scope): int(m.values[0]) for m in count({"model": module})}


def on_meta(cls, config):
    with torch.device("meta"):
        return cls(config)


def on_fake(cls, config):
    with FakeTensorMode():
        return cls(config)


BASE_ENCODERS = [
    (transformers.Wav2Vec2Model, transformers.Wav2Vec2Config),
    (transformers.HubertModel, transformers.HubertConfig),
]


@pytest.mark.parametrize("build", [on_meta, on_fake])
@pytest.mark.parametrize(("cls", "config"), BASE_ENCODERS)
def test_base_encoders_have_their_published_size(cls, config, build):
    found = figures(build(cls, config()))
    assert found["parameters.v1", "total"] == 94_371_712
    assert found["parameters_tied.v1", "total"] == 94_371_712
    assert found["parameter_bytes.v1", "total"] == 4 * 94_371_712


# width, layers of each half, heads, mel bands, vocabulary, and millions of parameters by OpenAI's model card
WHISPER = {
    "tiny": (384, 4, 6, 80, 51865, 39),
    "base": (512, 6, 8, 80, 51865, 74),
    "small": (768, 12, 12, 80, 51865, 244),
    "medium": (1024, 24, 16, 80, 51865, 769),
    "large": (1280, 32, 20, 80, 51865, 1550),
    "large-v3": (1280, 32, 20, 128, 51866, 1550),
}


def whisper(width, layers, heads, bands, vocabulary):
    config = transformers.WhisperConfig(
        d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width, num_mel_bins=bands,
        vocab_size=vocabulary,
    )  # fmt: skip
    model = on_meta(transformers.WhisperForConditionalGeneration, config)
    model.tie_weights()
    return model


def whisper_elements(width, layers, bands, vocabulary):
    """Term by term from the paper: the tables of positions are 1500 and 448 rows; key projections have no bias."""
    norm = 2 * width
    attention = 4 * width * width + 3 * width
    feed_forward = 2 * (width * 4 * width) + 5 * width
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    convolutions = 3 * bands * width + width + 3 * width * width + width
    encoder = convolutions + 1500 * width + layers * encoder_layer + norm
    decoder = vocabulary * width + 448 * width + layers * decoder_layer + norm
    return encoder + decoder


@pytest.mark.parametrize("name", WHISPER)
def test_whisper_sizes_follow_from_the_configuration_and_show_the_tie(name):
    width, layers, heads, bands, vocabulary, published_millions = WHISPER[name]
    found = figures(whisper(width, layers, heads, bands, vocabulary))
    truth = whisper_elements(width, layers, bands, vocabulary)
    assert found["parameters.v1", "total"] == truth
    assert found["parameters_tied.v1", "total"] == truth + vocabulary * width
    fixed_positions = 1500 * width  # sinusoids, which take no gradient
    assert found["parameters_trainable.v1", "total"] == truth - fixed_positions
    assert truth == pytest.approx(published_millions * 1e6, rel=0.035)  # the card's 39 M is 3.3 % above its own model


def test_whisper_tiny_is_exact():
    width, layers, heads, bands, vocabulary, _ = WHISPER["tiny"]
    found = figures(whisper(width, layers, heads, bands, vocabulary))
    assert found["parameters.v1", "total"] == 37_760_640
    assert found["parameters_tied.v1", "total"] == 57_676_800


def test_a_quantised_model_does_not_lose_its_linear_layers():
    config = transformers.Wav2Vec2Config(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, conv_dim=[32] * 7
    )
    model = transformers.Wav2Vec2Model(config).eval()
    linear = [layer for layer in model.modules() if isinstance(layer, torch.nn.Linear)]
    weights = sum(layer.weight.numel() for layer in linear)
    before = figures(model)
    after = figures(torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8))
    assert after["parameters.v1", "total"] == before["parameters.v1", "total"]
    assert after["parameter_bytes.v1", "dtype:int8"] == weights
    saved = before["parameter_bytes.v1", "total"] - after["parameter_bytes.v1", "total"]
    assert saved == 3 * weights
