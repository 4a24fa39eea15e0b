"""`measure`, `run` and `load`, as the README shows them."""

from time import sleep

import pytest

import speechmeter


def test_every_public_name_is_there():
    for name in speechmeter.__all__:
        assert getattr(speechmeter, name) is not None
    with pytest.raises(AttributeError):
        _ = speechmeter.nonsense


def test_measure_a_callable():
    result = speechmeter.measure(lambda x: sleep(x), 0.02, audio_seconds=0.2, samples=3)
    assert 0.02 <= result.latency_s < 0.04
    assert result.rtf == pytest.approx(result.latency_s / 0.2, rel=1e-6)
    assert result.estimate("latency").samples_per_round == 3
    memory = next(m for m in result.record.measurements if m.metric == "memory_cpu_peak.v1")
    assert "process of its own" in memory.unavailable
    assert "latency" in result.table("latency")


def test_measure_takes_tuples_and_dicts():
    seen = []
    speechmeter.measure(lambda a, b: seen.append((a, b)), (1, 2), samples=1, min_samples=1)
    speechmeter.measure(lambda a, b: seen.append((a, b)), {"a": 3, "b": 4}, samples=1, min_samples=1)
    assert set(seen) == {(1, 2), (3, 4)}


def test_measure_leaves_a_module_and_torch_as_they_were():
    torch = pytest.importorskip("torch", reason="measures a torch module")
    module = torch.nn.Linear(16, 4).train()
    before = torch.get_num_threads()
    result = speechmeter.measure(module, torch.randn(2, 16), threads=1, samples=2)
    assert result.record.status == "ok", result.record.reason
    assert module.training
    assert torch.get_num_threads() == before
    assert torch.is_grad_enabled()
    assert result.estimate("parameters").value == 68
    assert result.record.case.axes["dtype"] == "float32"


def test_measure_keeps_the_reason_of_a_failure():
    result = speechmeter.measure(lambda x: 1 / x, 0)
    assert result.record.status == "error"
    assert "ZeroDivisionError" in result.record.reason
    assert result.latency_s is None


def test_measure_refuses_an_axis_it_cannot_apply():
    with pytest.raises(speechmeter.SpeechmeterError, match="did you mean 'samples'"):
        speechmeter.measure(len, "x", sample=3)


def test_run_and_load(workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    plan = {"models": "python:fakes.py:slow", "seconds": [1, 2], "meters": "latency", "rounds": 2, "samples": 2}
    run = speechmeter.run(plan, output="run")
    assert len(run.records) == 4
    assert run.failed == ()
    again = speechmeter.load("run")
    assert again.records == run.records
    ((axes, figure),) = again.estimates("rtf", seconds=2.0)
    assert axes["model"] == "fakes:slow"
    assert 0.05 <= figure.value < 0.1
    assert "| 2 s |" in again.table("rtf")


def test_load_of_nothing(tmp_path):
    with pytest.raises(speechmeter.SpeechmeterError, match="no such directory"):
        speechmeter.load(tmp_path / "absent")
