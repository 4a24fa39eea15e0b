"""What a session holds: nothing of the first call's outputs, which would stand in every reading of memory."""

import sys
import weakref
from types import MappingProxyType, SimpleNamespace

import pytest
from conftest import make_case

from speechmeter.core.protocols import ORDINARY, Phase, Prepared
from speechmeter.core.types import Batch, Stage
from speechmeter.engine.doubts import other_tf32
from speechmeter.engine.measure import measure
from speechmeter.engine.session import open_session


class Output(list):
    """An output that can be watched."""


class Subject:
    def __init__(self, tokens=None, last=len):
        self.made = []
        self._tokens = tokens
        self._last = last

    def _wide(self, batch):
        output = Output([1, 2, 3])
        self.made.append(weakref.ref(output))
        return output

    def prepare(self, case, device):
        stages = (Stage(name="model", fn=self._wide, tokens=self._tokens), Stage(name="decode", fn=self._last))
        return Prepared(stages=stages, modules={})

    def batches(self, case):
        yield Batch(data=None, items=1)


class Looks:
    """A meter that looks which outputs are still alive when it starts."""

    name = "looks"
    metrics = ()
    environ = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.TIMING

    def __init__(self, subject):
        self._subject = subject
        self.alive = None

    def unavailable(self, case):
        return None

    def measure(self, session):
        self.alive = [output for ref in self._subject.made if (output := ref()) is not None]
        return []


def test_outputs_of_the_first_call_are_gone_when_a_meter_starts():
    subject = Subject()
    looks = Looks(subject)
    outcome = measure(make_case(), subject, subject, [looks])
    assert outcome.status == "ok", outcome.reason
    assert len(subject.made) == 1
    assert looks.alive == []


def test_tokens_are_counted_in_the_outputs_of_the_first_call():
    subject = Subject(tokens=len)
    session = open_session(make_case(), subject, subject, lambda what: None)
    assert {(m.metric, m.scope): m.values for m in session.first.made} == {
        ("tokens.v1", "total"): (3.0,),
        ("tokens.v1", "stage:model"): (3.0,),
    }
    assert not session.first.output.is_text


def test_text_is_told_apart():
    subject = Subject(last=lambda output: ["hello"])
    session = open_session(make_case(), subject, subject, lambda what: None)
    assert session.first.output.is_text
    assert session.first.output.lines == ("hello",)


class Fed:
    """A model that remembers what it was fed, and the workload of three unlike batches."""

    def __init__(self):
        self.fed = []

    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=lambda batch: self.fed.append(batch.data)),), modules={})

    def batches(self, case):
        return (Batch(data=data, items=1) for data in "abc")


def test_loading_inside_the_clock_loads_the_batch_of_the_call():
    subject = Fed()
    session = open_session(make_case(boundary="+load"), subject, subject, lambda what: None)
    called = [0, 1, 0, 1, 2, 0, 0, 2, 1]
    for place in called:
        session.call(session.batches[place])
    assert subject.fed == ["a", *("abc"[place] for place in called)]


def test_samples_with_loading_are_those_of_the_batches_in_turn():
    subject = Fed()
    protocol = {"mode": "repeats", "discard": 2, "samples": 6}
    session = open_session(make_case(boundary="+load", protocol=protocol), subject, subject, lambda what: None)
    collected = session.collect(lambda batch: session.call(batch) and 1)
    kept = [data for data, keep in zip(subject.fed[1:], collected.kept, strict=True) if keep]
    assert kept == list("abcabc")


@pytest.mark.parametrize(
    ("asked", "used", "device", "warned"),
    [(False, True, "cuda:0", True), (True, True, "cuda", False), (False, True, "cpu", False)],
)
def test_tf32_switched_by_the_models_own_code_is_a_warning(asked, used, device, warned, monkeypatch):
    products = SimpleNamespace(allow_tf32=used)
    torch = SimpleNamespace(backends=SimpleNamespace(cuda=SimpleNamespace(matmul=products)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    found = other_tf32(make_case(device=device, tf32=asked))
    assert bool(found) == warned
    assert not warned or "switched TF32 on, but the case requests TF32 off" in found[0]
