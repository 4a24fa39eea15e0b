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
