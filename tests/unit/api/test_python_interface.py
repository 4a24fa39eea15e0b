"""`measure`, `run` and `load`, as the README shows them."""

from pathlib import Path
from time import sleep

import pytest
from conftest import make_case, make_record

import speechmeter
from speechmeter import Profile, Result, Run
from speechmeter.api.profiling.options import PLAIN
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Batch, Environment, Measurement
from speechmeter.store.run_dir import RunDir, RunWriter


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
        ({"second": 2}, "the records have no key 'second'; did you mean 'seconds'?"),
        ({"modell": "small"}, "the records have no key 'modell'; did you mean 'model'?"),
        ({"seconds": 2}, "no record has seconds 2; the run has only 1, 2.5"),
        ({"model": "smal"}, "no record has model smal; the run has only large, small"),
        ({"model": "small", "device": "cuda"}, "no record of model small has device cuda; the run has only cpu"),
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


def values_to_show(tmp_path):
    """A value of each type that the interface returns or takes, most of them with many readings."""
    records = [
        make_record(make_case(), Measurement.of(metrics.LATENCY, [0.5 + n / 100] * 1000), round=n) for n in range(6)
    ]
    for name in ("old", "new"):
        with RunWriter(tmp_path / name) as store:
            for record in records:
                store.append(record)
    stage = speechmeter.Stage(name="model", fn=len)
    run = speechmeter.load(tmp_path / "old")
    comparison = speechmeter.compare(run, str(tmp_path / "new"))
    return [
        run, Result(record=records[0]), Profile("step", PLAIN), comparison, comparison.family,
        comparison.verdicts[0], run.estimates()[0][1], records[0], records[0].case, records[0].measurements[0], stage,
        speechmeter.Prepared(stages=(stage,)), Measurement.absent(metrics.LATENCY, "no\nclock"),
        Batch(data=[[0.0] * 16_000], items=1), Environment(facts={"packages": {"a": "1"}}),
    ]  # fmt: skip


def test_every_value_is_one_short_line(tmp_path):
    for value in values_to_show(tmp_path):
        assert "\n" not in repr(value)
        assert len(repr(value)) < 200
        assert type(value).__name__ in repr(value)


def test_compare_takes_runs_and_paths_and_shows_itself(tmp_path):
    run, *_ = values_to_show(tmp_path)
    found = speechmeter.compare(run, tmp_path / "new", ["latency"], min_effect="10%")
    assert [verdict.word for verdict in found.verdicts] == ["SAME"]
    assert found.exit_code == 0
    assert repr(found) == "Comparison(no regression: 1 verdict)"
    assert "smallest change that counts: 10%" in found.table()
    assert "SAME" in found._repr_html_()
    assert speechmeter.compare(run, run, {"latency": 0.01}).verdicts[0].min_effect == 0.01
    with pytest.raises(InputError, match="there is no format 'xml'"):
        found.table("xml")


def test_a_comparison_names_the_arguments_of_python(tmp_path):
    values_to_show(tmp_path)
    with RunWriter(tmp_path / "more") as store:
        for seconds in (1.0, 2.0):
            store.append(make_record(make_case(seconds=seconds), Measurement.of(metrics.LATENCY, [0.5])))
    table = speechmeter.compare(tmp_path / "more", tmp_path / "old").table()
    assert (
        "no value in NEW (see MISSING in the table); measure again, or use \\`allow_missing\\` to accept that"
    ) in table


def test_a_result_in_a_notebook_begins_with_a_row_of_figures():
    record = make_record(
        make_case("mine"), Measurement.of(metrics.LATENCY, [3.0]), Measurement.of(metrics.PARAMETERS, [7])
    )
    html = Result(record=record)._repr_html_()
    assert html.index("summary") < html.index("3.00 s") < html.index("<details>")


def test_run_takes_a_callable_and_says_where_it_was_measured(tmp_path):
    def double(heard):
        return heard * 2

    plan = {"models": [double, {"name": "again", "load": double}], "seconds": 1, "rounds": 2, "samples": 2}
    run = speechmeter.run({**plan, "meters": "latency"}, output=tmp_path / "run")
    assert [record.status for record in run.records] == ["ok"] * 4
    assert {axes["model"] for axes, _ in run.estimates()} == {"double", "again"}
    assert "measured in the calling program: its rounds share one process" in run.table("latency")
    facts = RunDir(run.path).environments()[run.records[0].environment]["facts"]
    assert facts["launcher"] == "inline"


def test_run_leaves_a_module_as_it_was(tmp_path):
    torch = pytest.importorskip("torch", reason="measures a torch module")
    module = torch.nn.Identity().train()
    plan = {"models": module, "seconds": 1, "rounds": 1, "samples": 2, "meters": "latency", "dtype": "float16"}
    run = speechmeter.run(plan, output=tmp_path / "run")
    assert run.records[0].status == "ok", run.records[0].reason
    assert run.records[0].case.subject.name == "Identity"
    assert module.training


def test_an_object_cannot_be_measured_in_other_processes_or_twice_under_one_name(tmp_path):
    with pytest.raises(InputError, match='`launcher="subprocess"` starts other processes, and the model'):
        speechmeter.run({"models": len}, output=tmp_path / "run", launcher="subprocess")
    with pytest.raises(InputError, match="two models are called 'len'"):
        speechmeter.run({"models": [len, len]}, output=tmp_path / "run")
    with pytest.raises(InputError, match="'len' was an object of a Python program"):
        speechmeter.run({"models": "object:len"}, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_module_that_cannot_be_copied_is_an_error_with_the_way_out(tmp_path):
    torch = pytest.importorskip("torch", reason="measures a torch module")
    module = torch.nn.Identity()
    module.held = torch.ones(1, requires_grad=True) * 2
    run = speechmeter.run({"models": module, "seconds": 1, "rounds": 1, "meters": "latency"}, output=tmp_path / "run")
    assert run.records[0].status == "error"
    assert "cannot be copied" in run.records[0].reason
    assert "give a function that calls it" in run.records[0].reason


def test_plot_draws_a_part_of_a_run_and_refuses_what_it_does_not_have():
    pytest.importorskip("altair", reason="altair is not installed: pip install 'speechmeter[report]'")
    run = speechmeter.load(Path(__file__).parents[3] / "examples/runs/cpu-grid")
    assert "log-mel" in str(run.plot("grid", "rtf", model="log-mel").to_dict()["title"])
    with pytest.raises(InputError, match="no record has model tera; the run has only log-mel, wav2vec2-base"):
        run.plot("grid", model="tera")
    with pytest.raises(InputError, match="there is no kind of chart 'gird'; did you mean 'grid'"):
        run.plot("gird")
