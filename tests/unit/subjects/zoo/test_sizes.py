"""Parameter counts of the zoo against the implementations that published them."""

import pytest

pytest.importorskip("torch", reason="needs torch")

from speechmeter.core import plugins
from speechmeter.meters.flops.shapes_only import shapes_only
from speechmeter.meters.parameters import count

# Where the numbers come from: s3prl 0.4.18 (`TransformerModel` with the configurations of its pre-training recipes,
# `APC`, `CPCModel`), transformers 5.22 (`HubertModel`, `Wav2Vec2Model`), ESPnet 202511 (`ConformerEncoder` of 12 blocks
# by its recipe for 100 h of LibriSpeech, and a linear layer to 500 tokens): each was built and counted.
# In millions: the published size, where it counts the same thing; for the others see the tests below.
PUBLISHED = {
    "log-mel": (0, 0.0),
    "mockingjay": (85_118_208, None),
    "tera": (21_327_360, 21.3),
    "hubert": (94_371_712, None),
    "wav2vec2": (94_371_712, None),
    "apc": (4_105_296, 4.11),
    "cpc": (1_843_456, 1.84),
    "conformer-ctc": (21_034_996, None),
}


def figures(name, options=None):
    with shapes_only():
        parts = plugins.subject(name).parts(options or {})
        return {(m.metric, m.scope): int(m.values[0]) for m in count({name: parts.model})}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_model_has_its_published_size(name):
    exact, millions = PUBLISHED[name]
    found = figures(name)
    assert found["parameters.v1", "total"] == exact
    assert found["parameters_tied.v1", "total"] == exact
    if millions is not None:
        assert exact / 1e6 == pytest.approx(millions, abs=0.03)


def test_what_training_adds_explains_the_counts_of_fairseq():
    quantizer, projections = 2 * 320 * 128 + (512 * 640 + 640), (256 * 256 + 256) + (768 * 256 + 256)
    assert figures("wav2vec2")["parameters.v1", "total"] + quantizer + projections == 95_044_608
    labels = 504 * 256
    assert figures("hubert")["parameters.v1", "total"] + (768 * 256 + 256) + labels == 94_697_600


def test_the_sizes_of_mockingjays_paper_come_from_its_wider_input():
    layer = (figures("mockingjay")["parameters.v1", "total"] - figures("tera")["parameters.v1", "total"]) / 9
    around = figures("tera")["parameters.v1", "total"] - 3 * layer - 80 * 768
    large, base = around + 3 * 160 * 768 + 12 * layer, around + 160 * 768 + 3 * layer
    assert (round(large / 1e6, 1), round(base / 1e6, 1)) == (85.4, 21.4)


def test_the_vocabulary_is_an_option():
    grown = figures("conformer-ctc", {"vocabulary": 4096})["parameters.v1", "total"]
    assert grown - PUBLISHED["conformer-ctc"][0] == (4096 - 500) * (256 + 1)


def test_parts_of_a_model_have_names_that_read():
    scopes = {scope for metric, scope in figures("hubert") if metric == "parameters.v1"}
    assert {"module:hubert.features", "module:hubert.positions", "module:hubert.layers"} <= scopes
