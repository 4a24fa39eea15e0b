"""Our wav2vec 2.0 and HuBERT give what transformers' models give with the same weights."""

import pytest

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

import torch
import transformers

from speechmeter.subjects.zoo.transformer import WaveEncoder, frames_of

# transformers' name → ours
OUTSIDE = {
    "masked_spec_embed": "masked_frame",
    "feature_projection.layer_norm": "projection.0",
    "feature_projection.projection": "projection.1",
    "encoder.pos_conv_embed.conv": "positions.convolution",
    "encoder.layer_norm": "norm",
    **{f"feature_extractor.conv_layers.{place}.conv": f"features.{place}.0" for place in range(7)},
    "feature_extractor.conv_layers.0.layer_norm": "features.0.1",
}
INSIDE = {
    "attention.q_proj": "attention.query",
    "attention.k_proj": "attention.key",
    "attention.v_proj": "attention.value",
    "attention.out_proj": "attention.output",
    "layer_norm": "attention_norm",
    "feed_forward.intermediate_dense": "feed_forward.0",
    "feed_forward.output_dense": "feed_forward.2",
    "final_layer_norm": "feed_forward_norm",
}
NAMES = OUTSIDE | {
    f"encoder.layers.{layer}.{theirs}": f"layers.{layer}.{ours}"
    for layer in range(12)
    for theirs, ours in INSIDE.items()
}
TAILS = ("", ".weight", ".bias", ".parametrizations.weight.original0", ".parametrizations.weight.original1")


def translated(weights):
    ours = {theirs + tail: ours + tail for theirs, ours in NAMES.items() for tail in TAILS}
    return {ours[name]: value for name, value in weights.items()}


@pytest.fixture(scope="module", params=["Wav2Vec2", "Hubert"])
def pair(request):
    torch.manual_seed(0)
    config = getattr(transformers, f"{request.param}Config")()
    theirs = getattr(transformers, f"{request.param}Model")(config).eval()
    ours = WaveEncoder().eval()
    ours.load_state_dict(translated(theirs.state_dict()))
    return theirs, ours


def test_the_output_is_the_same(pair):
    theirs, ours = pair
    samples = torch.randn(1, 6400)
    with torch.inference_mode():
        expected = theirs(samples)[0]
        torch.testing.assert_close(ours(samples), expected, rtol=0, atol=1e-4)
    assert expected.shape == (1, 19, 768)


def test_padding_is_masked_in_the_same_way(pair):
    theirs, ours = pair
    lengths = torch.tensor([6400, 4000])
    samples = torch.randn(2, 6400)
    mask = (torch.arange(6400) < lengths[:, None]).long()
    with torch.inference_mode():
        expected = theirs(samples, attention_mask=mask)[0]
        found = ours(samples, lengths)
        unmasked = ours(samples)
    for item, frames in enumerate(frames_of(lengths).tolist()):
        torch.testing.assert_close(found[item, :frames], expected[item, :frames], rtol=0, atol=1e-4)
    assert not torch.allclose(unmasked[1, :12], expected[1, :12], atol=1e-2)


def test_every_parameter_has_its_counterpart(pair):
    theirs, ours = pair
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters()) == 94_371_712
