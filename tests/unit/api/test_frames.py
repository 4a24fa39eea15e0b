"""Figures as a data frame: a row for each, with both ends of its interval, its unit and the axes of its case."""

import math
import sys

import pytest
from conftest import make_case, make_record

from speechmeter import Result, Run
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Measurement

pytest.importorskip("pandas", reason="pandas is not installed: pip install 'speechmeter[notebook]'")


@pytest.fixture
def run(tmp_path):
    """Two cases in three rounds, one of them with a stage, and one that failed."""
    records = [
        make_record(
            make_case(name, seconds=2.0, threads=2),
            Measurement.of(metrics.LATENCY, [0.5 * (1 + n / 100)]),
            Measurement.of(metrics.AUDIO_SECONDS, [2.0]),
            *([Measurement.of(metrics.LATENCY, [0.1], scope="stage:model")] if name == "a" else []),
            round=n,
        )
        for name in ("a", "b")
        for n in range(3)
    ]
    return Run(path=tmp_path, records=(*records, make_record(make_case("c"), status="oom", reason="too large")))


def test_a_row_is_what_estimates_give(run):
    frame = run.frame("rtf")
    whole = frame[frame.scope == "total"]
    assert list(whole.model) == ["a", "b"]
    for row, (axes, figure) in zip(whole.to_dict("records"), run.estimates("rtf"), strict=True):
        assert (row["value"], row["low"], row["high"]) == (figure.value, figure.low, figure.high)
        assert (row["unit"], row["metric"], row["metric_id"]) == ("1", "rtf", metrics.RTF.id)
        assert (row["rounds"], row["seconds"], row["threads"]) == (3, axes["seconds"], 2)


def test_without_a_metric_there_is_a_row_for_every_figure_of_every_scope(run):
    frame = run.frame()
    assert {"latency", "rtf", "rtfx", "audio_seconds"} <= set(frame.metric)
    latency = frame[frame.metric == "latency"]
    assert list(zip(latency.model, latency.scope, strict=True)) == [
        ("a", "total"), ("a", "stage:model"), ("b", "total"),
    ]  # fmt: skip
    assert not frame.duplicated(["case_id", "metric", "scope"]).any()


def test_figures_are_numbers_and_one_without_an_interval_has_none():
    result = Result(record=make_record(make_case(), Measurement.of(metrics.LATENCY, [0.5])))
    frame = result.frame()
    assert frame.dtypes[["value", "low", "high"]].eq(float).all()
    assert math.isnan(frame.low[0])


def test_a_run_without_figures_is_an_empty_frame_with_the_same_columns(tmp_path, run):
    empty = Run(path=tmp_path, records=run.records[-1:]).frame()
    assert len(empty) == 0
    assert {"model", "metric", "value", "low", "high", "unit"} <= set(empty.columns)


def test_a_metric_or_a_library_that_there_is_not_is_refused(run):
    with pytest.raises(InputError, match="there is no metric 'rft'; did you mean 'rtf'"):
        run.frame("rft")
    with pytest.raises(InputError, match="`library`: there is no library 'panda'; did you mean 'pandas'"):
        run.frame(library="panda")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_not_installed_is_named_with_the_command(run, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        InputError, match=f"a data frame needs {library}, which is not installed; pip install {library}"
    ):
        run.frame(library=library)


def test_polars_has_the_same_rows(run):
    pytest.importorskip("polars", reason="polars is not installed")
    theirs, ours = run.frame(library="polars"), run.frame()
    assert theirs.columns == list(ours.columns)
    assert theirs["value"].to_list() == list(ours.value)
