"""The chains around the zoo's models: their stages, on real numbers and on shapes alone."""

import flop_formulas as formulas
import numpy as np
import pytest
from conftest import make_case

pytest.importorskip("torch", reason="needs torch")

import torch

from speechmeter.core import plugins
from speechmeter.core.errors import SubjectError
from speechmeter.core.stages import run_chain
from speechmeter.core.types import Batch, Spec
from speechmeter.meters.flops.count import count
from speechmeter.meters.flops.shapes_only import shapes_only

ON_LOG_MEL, ON_WAVEFORM = ("mockingjay", "tera", "apc", "conformer-ctc"), ("hubert", "wav2vec2", "cpc", "log-mel")


def case_of(name, **changes):
    options = changes.pop("options", {})
    source = changes.pop("source", "")
    return make_case(subject=Spec(plugin=name, name=name, source=source, options=options), **changes)


def batch_of(*lengths):
    data = np.random.default_rng(0).standard_normal((len(lengths), max(lengths)), dtype=np.float32)
    for row, length in zip(data, lengths, strict=True):
        row[length:] = 0
    return Batch(data=data, items=len(lengths), lengths=lengths)


def prepared(name, **changes):
    return plugins.subject(name).prepare(case_of(name, **changes), "cpu")


def test_stages_are_those_a_model_has():
    names = {name: [stage.name for stage in prepared(name).stages] for name in ("tera", "cpc", "conformer-ctc")}
    assert names["tera"] == ["features", "copy", "model"]
    assert names["cpc"] == ["copy", "model"]
    assert names["conformer-ctc"] == ["features", "copy", "model", "decode"]


@pytest.mark.parametrize("name", [*ON_LOG_MEL, *ON_WAVEFORM])
@pytest.mark.parametrize("lengths", [(16000, 16000), (16000, 9000)], ids=["alike", "padded"])
def test_a_chain_runs_on_shapes_alone(name, lengths):
    with shapes_only() as mode:
        chain = prepared(name)
        mode.building = False
        outputs = [batch_of(*lengths)]
        counts = {}
        for stage in chain.stages:
            mode.writing = stage.name == "decode"
            counts[stage.name] = count(lambda stage=stage: outputs.append(stage.fn(outputs[-1])), chain.modules)
    assert all(part.unknown() == {} for part in counts.values())
    assert counts["model"].forward > 0
    assert set(counts["model"].by_module()) >= {name}
    if name in ON_LOG_MEL:
        assert counts["features"].forward == pytest.approx(2 * formulas.log_mel(16000).forward, rel=1e-3)


def test_features_of_a_padded_item_are_those_it_has_alone():
    features = prepared("tera").stages[0].fn
    together = features(batch_of(8000, 4000))
    alone = features(Batch(data=batch_of(8000, 4000).data[1:, :4000], items=1, lengths=(4000,)))
    assert together.lengths.tolist() == [51, 26]
    assert alone.lengths is None
    torch.testing.assert_close(together.data[1, :26], alone.data[0], rtol=0, atol=1e-5)
    assert not together.data[1, 26:].any()
    torch.testing.assert_close(alone.data[0].mean(dim=0), torch.zeros(80), rtol=0, atol=1e-4)
    torch.testing.assert_close(alone.data[0].std(dim=0, correction=0), torch.ones(80), rtol=0, atol=1e-3)


def test_the_waveform_is_levelled_over_its_true_length():
    features = prepared("hubert").stages[0].fn
    made = features(batch_of(8000, 4000))
    assert made.lengths.tolist() == [8000, 4000]
    assert made.data[1, :4000].std(correction=0).item() == pytest.approx(1, abs=1e-3)
    assert not made.data[1, 4000:].any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_reaches_the_model_and_not_the_features(dtype):
    features, copied, output = run_chain(prepared("tera", dtype=dtype).stages, batch_of(1600))
    assert features.data.dtype is torch.float32
    assert copied.data.dtype is output.dtype is getattr(torch, dtype)
    assert output.isfinite().all()


def test_the_seed_decides_the_weights():
    first, again = (prepared("cpc").modules["cpc"].context.weight_hh_l0 for _ in range(2))
    other = prepared("cpc", protocol={"seed": 1}).modules["cpc"].context.weight_hh_l0
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_source_is_refused_in_one_line():
    with pytest.raises(SubjectError, match="nothing can follow tera, but tera:base was given; write only tera"):
        plugins.subject("tera").check(case_of("tera", source="base"))


@pytest.mark.parametrize(
    ("name", "least"), [("wav2vec2", 0.025), ("cpc", 0.01), ("conformer-ctc", 0.06), ("apc", 0.001)]
)
def test_the_shortest_audio_runs_and_shorter_is_unavailable(name, least):
    subject = plugins.subject(name)
    assert subject.unavailable(case_of(name, seconds=least)) is None
    output = run_chain(prepared(name).stages, batch_of(round(least * 16000)))[-1]
    assert len(output if name == "conformer-ctc" else output[0]) >= 1
    if subject.shortest_s:
        assert f"needs at least {least:g} s" in subject.unavailable(case_of(name, seconds=least - 0.005))


@pytest.mark.parametrize("name", ["tera", "apc", "cpc", "conformer-ctc"])
def test_a_quantised_model_holds_int8_and_says_nearly_the_same(name):
    plain, quantised = (prepared(name, **changes) for changes in ({}, {"quantize": "int8-dynamic"}))
    kinds = {type(module).__module__ for module in quantised.modules[name].modules()}
    assert any("quantized.dynamic" in kind for kind in kinds)
    layers = (torch.nn.Linear, torch.nn.LSTM, torch.nn.GRU)
    left = [module for module in quantised.modules[name].modules() if type(module) in layers]
    assert not left
    values = []
    for made in (plain, quantised):
        chain = [stage for stage in made.stages if stage.name != "decode"]
        found = run_chain(chain, batch_of(16000, 9000))[-1]
        values.append(found[0] if isinstance(found, tuple) else found)
    apart = (values[0] - values[1]).norm() / values[0].norm()
    assert 0 < apart < 0.2


def test_int8_needs_the_cpu_and_float32():
    subject = plugins.subject("hubert")
    assert subject.unavailable(case_of("hubert", quantize="int8-dynamic")) is None
    assert "CPU only" in subject.unavailable(case_of("hubert", quantize="int8-dynamic", device="cuda"))
    assert "needs `dtype: float32`" in subject.unavailable(case_of("hubert", quantize="int8-dynamic", dtype="bfloat16"))
