"""Counting by hand beside the parameters meter."""

import pytest
from conftest import make_case

from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters.parameters import ParametersMeter

torch = pytest.importorskip("torch", reason="counts parameters of torch modules")


def count(modules):
    class Subject:
        def prepare(self, case, device):
            return Prepared(stages=(Stage(name="model", fn=lambda batch: None),), modules=modules)

        def batches(self, case):
            yield Batch(data=None, items=1)

    outcome = measure(make_case(), Subject(), Subject(), [ParametersMeter()])
    return {(m.metric, m.scope): m for m in outcome.measurements}


def test_a_tie_is_counted_once_and_twice():
    embedding, head = torch.nn.Embedding(100, 8), torch.nn.Linear(8, 100, bias=False)
    head.weight = embedding.weight
    found = count({"model": torch.nn.Sequential(embedding, head)})
    assert found["parameters.v1", "total"].values == (800,)
    assert found["parameters_tied.v1", "total"].values == (1600,)
    assert found["parameter_bytes.v1", "total"].values == (3200,)
    assert found["parameters.v1", "module:model.0"].values == (800,)


def test_a_tie_between_two_modules_is_counted_once():
    shared = torch.nn.Linear(4, 4)
    found = count({"asr": shared, "tts": shared})
    assert found["parameters.v1", "total"].values == (20,)
    assert found["parameters.v1", "module:asr"].values == (20,)


def test_half_precision_halves_the_bytes():
    found = count({"model": torch.nn.Linear(10, 10).half()})
    assert found["parameter_bytes.v1", "total"].values == (220,)


def test_without_modules_it_says_why():
    found = count({})
    assert found["parameters.v1", "total"].values == ()
    assert "no torch module" in found["parameters.v1", "total"].unavailable


def test_trainable_parameters_are_those_that_take_a_gradient():
    model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.Linear(10, 1))
    model[0].requires_grad_(False)
    found = count({"model": model})
    assert found["parameters_trainable.v1", "total"].values == (11,)
    assert found["parameters.v1", "total"].values == (121,)


def test_buffers_are_counted_apart():
    found = count({"model": torch.nn.BatchNorm1d(8)})
    assert found["parameters.v1", "total"].values == (16,)
    assert found["buffers.v1", "total"].values == (8 + 8 + 1,)
    assert found["buffer_bytes.v1", "total"].values == (2 * 8 * 4 + 8,)


def test_bytes_are_split_by_dtype():
    model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.Linear(10, 10).bfloat16())
    found = count({"model": model})
    assert found["parameter_bytes.v1", "dtype:float32"].values == (440,)
    assert found["parameter_bytes.v1", "dtype:bfloat16"].values == (220,)
    assert found["parameter_bytes.v1", "total"].values == (660,)


def test_something_that_cannot_be_counted_makes_the_total_unavailable():
    found = count({"asr": torch.nn.Linear(4, 4), "voice": object()})
    assert found["parameters.v1", "total"].values == ()
    assert "'voice' is a object" in found["parameters.v1", "total"].unavailable


def test_a_module_that_only_packs_weights_has_its_row():
    model = torch.nn.Sequential(torch.nn.Linear(16, 4), torch.nn.ReLU())
    quantised = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    found = count({"model": quantised})
    assert found["parameters.v1", "module:model.0"].values == (16 * 4 + 4,)
    assert ("parameters.v1", "module:model.1") not in found
