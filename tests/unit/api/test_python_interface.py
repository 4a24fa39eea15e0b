"""`measure`, `run` and `load`, as the README shows them."""

from time import sleep

import pytest
from conftest import make_case, make_record

import speechmeter
from speechmeter import Profile, Result, Run
from speechmeter.api.profiling.options import PLAIN
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Measurement


def test_every_public_name_is_there():
    for name in speechmeter.__all__:
        assert getattr(speechmeter, name) is not None
    with pytest.raises(AttributeError):
        _ = speechmeter.nonsense


def test_tab_completion_finds_every_public_name_and_imports_nothing_for_it(monkeypatch):
    def refused(name):
        raise AssertionError(f"{name} was imported")

    monkeypatch.setattr("importlib.import_module", refused)
    assert set(speechmeter.__all__) <= set(dir(speechmeter))


def test_measure_a_callable():
    result = speechmeter.measure(lambda x: sleep(x), 0.02, audio_seconds=0.2, samples=3)
    assert 0.02 <= result.latency_s < 0.04
    assert result.rtf == pytest.approx(result.latency_s / 0.2, rel=1e-6)
    assert result.estimate("latency").samples_per_round == 3
    memory = next(m for m in result.record.measurements if m.metric == "memory_cpu_total.v1")
    assert "needs a separate process" in memory.unavailable
    assert "latency" in result.table("latency")


@pytest.mark.parametrize("word", ["latency", "memory", "energy", "quality", "parameters", "memory_cpu_peak.v1"])
def test_a_result_takes_the_words_that_commands_take(word):
    case = make_case()
    measured = [metrics.LATENCY, metrics.MEMORY_CPU_PEAK, metrics.ENERGY_CPU, metrics.PARAMETERS]
    scored = [metrics.WORD_ERRORS, metrics.REFERENCE_WORDS]
    result = Result(record=make_record(case, *(Measurement.of(metric, [3.0]) for metric in (*measured, *scored))))
    assert result.estimate(word).value == (100.0 if word == "quality" else 3.0)


def test_a_result_refuses_a_metric_that_there_is_not_and_a_table():
    result = Result(record=make_record(make_case(), Measurement.of(metrics.LATENCY, [3.0])))
    assert result.estimate("memory") is None
    with pytest.raises(speechmeter.SpeechmeterError, match=r"there is no metric 'latence'; did you mean 'latency'\?"):
        result.estimate("latence")
    with pytest.raises(speechmeter.SpeechmeterError, match="summary is a table of several metrics, not one metric"):
        result.estimate("summary")
    with pytest.raises(speechmeter.SpeechmeterError, match="there is no format 'cvs'; did you mean 'csv'"):
        result.table("latency", format="cvs")


def small_run(tmp_path):
    """Two models on two devices at two lengths."""
    memory = {"cpu": metrics.MEMORY_CPU_PEAK, "cuda": metrics.MEMORY_CUDA_ALLOCATED}
    records = tuple(
        make_record(
            make_case(name, device=device, seconds=seconds),
            Measurement.of(metrics.LATENCY, [seconds]),
            Measurement.of(memory[device], [seconds]),
            Measurement(metric="depth.v1", unit="m", values=(seconds,)),
        )
        for name, device in (("small", "cpu"), ("large", "cuda"))
        for seconds in (1.0, 2.5)
    )
    return Run(path=tmp_path, records=records)


def test_estimates_take_the_words_that_commands_take_for_each_device(tmp_path):
    found = [
        (axes["model"], figure.metric.name, figure.value) for axes, figure in small_run(tmp_path).estimates("memory")
    ]
    assert found == [
        ("small", "memory_cpu_peak", 1.0),
        ("small", "memory_cpu_peak", 2.5),
        ("large", "memory_cuda_allocated", 1.0),
        ("large", "memory_cuda_allocated", 2.5),
    ]


def test_estimates_take_the_metric_of_a_plug_in_that_is_not_installed(tmp_path):
    assert [figure.value for _, figure in small_run(tmp_path).estimates("depth", model="small")] == [1.0, 2.5]


def test_estimates_of_some_axes(tmp_path):
    run = small_run(tmp_path)
    assert [axes["device"] for axes, _ in run.estimates("latency", seconds=2.5)] == ["cpu", "cuda"]
    assert [axes["seconds"] for axes, _ in run.estimates("latency", model="large", batch=1)] == [1.0, 2.5]
    assert run.estimates("flops", seconds=1) == []


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"second": 2}, "there is no key 'second'; did you mean 'seconds'?"),
        ({"modell": "small"}, "there is no key 'modell'; did you mean 'model'?"),
        ({"seconds": 2}, "no record has seconds 2; there are 1, 2.5"),
        ({"model": "smal"}, "no record has model smal; there are large, small"),
        ({"model": "small", "device": "cuda"}, "no record of model small has device cuda; there is only cpu"),
    ],
)
def test_an_axis_or_a_value_that_no_case_has_is_refused(tmp_path, axes, said):
    with pytest.raises(speechmeter.SpeechmeterError) as refused:
        small_run(tmp_path).estimates("latency", **axes)
    assert str(refused.value) == f"{tmp_path}: {said}"


def test_a_metric_that_there_is_not_is_refused_by_a_run(tmp_path):
    for call in (small_run(tmp_path).estimates, small_run(tmp_path).table):
        with pytest.raises(
            speechmeter.SpeechmeterError, match=r"there is no metric 'latence'; did you mean 'latency'\?"
        ):
            call("latence")
    with pytest.raises(speechmeter.SpeechmeterError, match="there is no format 'tex'; did you mean 'latex'"):
        small_run(tmp_path).table("latency", format="tex")


def test_measure_takes_tuples_and_dicts():
    seen = []
    speechmeter.measure(lambda a, b: seen.append((a, b)), (1, 2), samples=1, min_samples=1)
    speechmeter.measure(lambda a, b: seen.append((a, b)), {"a": 3, "b": 4}, samples=1, min_samples=1)
    assert set(seen) == {(1, 2), (3, 4)}


def test_measure_leaves_a_module_and_torch_as_they_were():
    torch = pytest.importorskip("torch", reason="measures a torch module")
    module = torch.nn.Linear(16, 4).train()
    before = torch.get_num_threads()
    result = speechmeter.measure(module, torch.randn(2, 16), threads=2 if before == 1 else 1, samples=2)
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


@pytest.mark.parametrize(
    "given",
    [{"samples": 0}, {"threads": 0}, {"warmup": -1}, {"audio_seconds": -1}, {"budget_s": 0}, {"samples": "3"}],
)
def test_measure_refuses_a_value_that_means_nothing(given):
    (name,) = given
    with pytest.raises(InputError, match=f"{name} (must be|takes)"):
        speechmeter.measure(lambda: None, (), **given)


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


def test_every_table_refuses_an_unknown_format_in_the_same_words(tmp_path):
    record = make_record(make_case(), Measurement(metric="latency.v1", unit="s", values=(0.1,)))
    profiled = Profile("nothing", PLAIN)
    for made in (Run(path=tmp_path, records=(record,)), Result(record=record), profiled):
        with pytest.raises(InputError, match=r"^`format`: there is no format 'xml'; choose from: table, markdown"):
            made.table(format="xml")
