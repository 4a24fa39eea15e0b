"""Figures of a run in trackers: the values and the ends of their intervals that `show` prints, read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import foreign_results
import pytest

from speechmeter.api.figures import ExportedCase, ExportedFigure, exported_cases
from speechmeter.api.importing import import_results
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.integrations.trackers import openmetrics
from speechmeter.integrations.trackers.exporting import export_run
from speechmeter.store.run_dir import RunDir

RUN = Path(__file__).parents[3] / "examples/runs/accuracy-vs-cost"


@pytest.fixture(scope="module")
def cases() -> list[ExportedCase]:
    return exported_cases(RunDir.existing(RUN).records())


def _latency(cases: list[ExportedCase], model: str) -> ExportedFigure:
    case = next(one for one in cases if one.settings["model"] == model)
    return next(one for one in case.figures if one.metric == metrics.LATENCY)


def test_a_figure_has_three_names_and_one_without_an_interval_one() -> None:
    figure = ExportedFigure(metric=metrics.LATENCY, scope="stage:a→b@c", value=2.0, low=1.0, high=3.0)
    assert figure.values == {
        "latency/stage:a_b_c": 2.0,
        "latency/stage:a_b_c_low": 1.0,
        "latency/stage:a_b_c_high": 3.0,
    }
    assert ExportedFigure(metric=metrics.LATENCY, scope="total", value=2.0).values == {"latency": 2.0}


def test_metrics_and_parts_are_chosen() -> None:
    records = RunDir.existing(RUN).records()
    only = exported_cases(records, ["latency"])
    assert {one.metric for case in only for one in case.figures} == {metrics.LATENCY}
    assert {one.scope for case in only for one in case.figures} == {"total"}
    parts = exported_cases(records, ["latency"], every_scope=True)
    assert any(one.scope.startswith("stage:") for case in parts for one in case.figures)
    with pytest.raises(InputError, match="there is no metric 'latancy'"):
        exported_cases(records, ["latancy"])


def test_openmetrics_is_read_by_its_own_parser(tmp_path: Path, cases: list[ExportedCase]) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="pip install prometheus-client")
    assert export_run(RUN, "openmetrics", str(tmp_path / "a.prom")) == f"written: {tmp_path / 'a.prom'}"
    families = {one.name: one for one in parser.text_string_to_metric_families((tmp_path / "a.prom").read_text())}
    wanted = _latency(cases, "sphinx")
    for name, value in (("", wanted.value), ("_low", wanted.low), ("_high", wanted.high)):
        family = families[f"speechmeter_latency{name}_seconds"]
        assert (family.type, family.unit) == ("gauge", "seconds")
        assert [one.value for one in family.samples if one.labels["model"] == "sphinx"] == [value]


def test_names_of_strangers_cannot_break_a_line() -> None:
    figure = ExportedFigure(metric=metrics.LATENCY, scope="total", value=2.0)
    settings: dict[str, Any] = {"model": 'a"} 1\n# EOF\\', "1 axis": "x", "case": "other"}
    case = ExportedCase(id="c", name="c", started="", settings=settings, figures=(figure,))
    text = list(openmetrics.lines([case], "r"))
    assert text[-2] == (
        'speechmeter_latency_seconds{model="a\\"} 1\\n# EOF\\\\",_1_axis="x",case="c",run="r",scope="total"} 2.0'
    )
    assert text[-1] == "# EOF"


def test_parquet_has_the_rows_of_the_query(tmp_path: Path, cases: list[ExportedCase]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install pyarrow")
    export_run(RUN, "parquet", str(tmp_path / "a.parquet"))
    rows = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    wanted = _latency(cases, "sphinx")
    (row,) = [one for one in rows if (one["subject"], one["metric"], one["scope"]) == ("sphinx", "latency.v1", "total")]
    assert (row["value"], row["low"], row["high"]) == (wanted.value, wanted.low, wanted.high)


def test_the_summary_of_a_sweep_has_a_flat_point_a_case(tmp_path: Path, cases: list[ExportedCase]) -> None:
    said = export_run(RUN, "vllm", str(tmp_path / "sweep"))
    assert said.startswith(f"written: {tmp_path / 'sweep/summary.json'}, 4 points")
    points = json.loads((tmp_path / "sweep/summary.json").read_text())
    (point,) = [one for one in points if one["model_id"] == "sphinx"]
    wanted = _latency(cases, "sphinx")
    assert [point[name] for name in ("latency", "latency_low", "latency_high")] == [
        wanted.value, wanted.low, wanted.high
    ]  # fmt: skip
    assert point["latency_p50"] <= point["latency_p95"]
    assert len({frozenset(one.keys() & {"run_number", "model", "batch", "host", "case"}) for one in points}) == 1
    assert not any(isinstance(value, dict | list) for one in points for value in one.values())
    assert not any(name.endswith("_ms") or name == "request_throughput" for one in points for name in one)
    with pytest.raises(InputError, match="already exists"):
        export_run(RUN, "vllm", str(tmp_path / "sweep/summary.json"))


def test_imported_results_of_vllm_have_its_keys_again(tmp_path: Path) -> None:
    given = [foreign_results.vllm(), foreign_results.vllm(rtfx=8.0)]
    run = import_results([foreign_results.write(tmp_path / "v.json", *given)], tmp_path / "run").path
    export_run(run, "vllm", str(tmp_path / "sweep"))
    points = json.loads((tmp_path / "sweep/summary.json").read_text())
    assert [one["run_number"] for one in points] == [0, 1]
    same = ("mean_ttft_ms", "median_ttft_ms", "p99_e2el_ms", "std_e2el_ms", "request_throughput", "output_throughput",
            "rtfx", "completed", "max_concurrency", "request_rate", "model_id")  # fmt: skip
    for point, data in zip(points, given, strict=True):
        assert [point[name] for name in same] == [pytest.approx(data[name]) for name in same]


def test_mlflow_holds_figures_settings_and_units(tmp_path: Path, cases: list[ExportedCase]) -> None:
    mlflow = pytest.importorskip("mlflow", reason="pip install mlflow")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    assert export_run(RUN, "mlflow", uri) == "4 runs in the MLflow experiment accuracy-vs-cost"
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("accuracy-vs-cost")
    runs = {one.data.params["model"]: one for one in client.search_runs([experiment.experiment_id])}
    wanted, found = _latency(cases, "sphinx"), runs["sphinx"]
    read = [found.data.metrics[name] for name in ("latency", "latency_low", "latency_high")]
    assert read == [wanted.value, wanted.low, wanted.high]
    assert found.data.tags["unit.latency"] == "s" and found.info.status == "FINISHED"


def test_tensorboard_holds_figures_and_bands(tmp_path: Path, cases: list[ExportedCase]) -> None:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="pip install tensorboard"
    )
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata

    export_run(RUN, "tensorboard", str(tmp_path / "logs"))
    (folder,) = (tmp_path / "logs").glob("sphinx_*")
    events = accumulator.EventAccumulator(str(folder)).Reload()
    wanted = _latency(cases, "sphinx")
    for tag, value in (("latency", wanted.value), ("latency_low", wanted.low), ("latency_high", wanted.high)):
        (scalar,) = events.Scalars(tag)
        assert scalar.value == pytest.approx(value, rel=1e-6)
    (layout,) = events.Tensors(metadata.CONFIG_SUMMARY_TAG)
    drawn = layout_pb2.Layout.FromString(layout.tensor_proto.string_val[0])
    assert "latency [s]" in [chart.title for chart in drawn.category[0].chart]


def test_wandb_is_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="pip install wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    said = export_run(RUN, "wandb", str(tmp_path), metrics=["latency"])
    assert "offline" in said
    assert len(list((tmp_path / "wandb").glob("offline-run-*/run-*.wandb"))) == 4


@pytest.mark.parametrize(
    ("to", "options", "said"),
    [
        ("mlfow", {}, "did you mean 'mlflow'"),
        ("openmetrics", {"metrics": ["latancy"]}, "there is no metric"),
        ("parquet", {"metrics": ["latency"]}, "has all figures"),
    ],
)
def test_what_cannot_be_exported_is_refused(tmp_path: Path, to: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        export_run(RUN, to, str(tmp_path / "a"), **options)


def test_a_tracker_that_is_not_installed_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("speechmeter.integrations.trackers.exporting.find_spec", lambda name: None)
    with pytest.raises(InputError, match="mlflow is not installed; pip install mlflow"):
        export_run(RUN, "mlflow")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("no such\nstore"), r"`output`: mlflow: no such store; check the target"),
        (PermissionError(13, "Permission denied"), r"runs cannot be written: Permission denied"),
    ],
)
def test_a_target_that_a_tracker_cannot_write_to_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def write(*given: Any) -> str:
        raise error

    monkeypatch.setattr("speechmeter.integrations.trackers.exporting.find_spec", lambda name: name)
    monkeypatch.setattr("speechmeter.integrations.trackers.exporting.import_module", lambda name: Mock(write=write))
    with pytest.raises(InputError, match=said):
        export_run(RUN, "mlflow", "runs")


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        export_run(RUN, "openmetrics", str(tmp_path / "a.prom"))
    assert (tmp_path / "a.prom").read_text() == "mine"
