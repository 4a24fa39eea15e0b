"""Runs as sources: machines apart, names told apart, parts of runs."""

import json

import pytest
import report_runs
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.errors import InputError, RunDirError
from speechmeter.core.types import Measurement
from speechmeter.report.charts import lists
from speechmeter.report.sources import by_machine, read_sources
from speechmeter.store.merge import merge


def test_machines_of_one_run_are_sources_of_their_own(tmp_path):
    both = [*report_runs.grid("alpha"), *report_runs.grid("alpha", 0.05, host="cluster")]
    run = report_runs.write(tmp_path / "both", both, report_runs.CPU)
    found = read_sources([str(run)])
    assert [source.name for source in found] == ["both · desk", "both · cluster"]
    assert [len(source.records) for source in found] == [12, 12]


def test_what_a_driver_left_out_is_no_source_of_its_own(tmp_path):
    left_out = make_record(make_case("beta"), status="unavailable", host="laptop", sequence=99)
    run = report_runs.write(tmp_path / "run", [*report_runs.grid("alpha"), left_out], report_runs.CPU)
    (source,) = read_sources([str(run)])
    assert (source.host, len(source.records)) == ("desk", 13)


def test_runs_of_one_name_are_told_apart(tmp_path):
    runs = [report_runs.write(tmp_path / place / "run", report_runs.grid("alpha"), report_runs.CPU) for place in "ab"]
    assert [source.name for source in read_sources(map(str, runs))] == ["run (1)", "run (2)"]


def test_a_part_of_a_run_can_be_asked_for(tmp_path):
    run = report_runs.write(tmp_path / "run", [*report_runs.grid("alpha"), *report_runs.grid("beta")], report_runs.CPU)
    (source,) = read_sources([f"{run}@model=beta,batch=1"])
    assert {record.case.subject.name for record in source.records} == {"beta"}
    with pytest.raises(InputError, match="alpha, beta"):
        read_sources([f"{run}@model=gamma"])


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunDirError, match="nothing: there is no such directory; use a directory that"):
        read_sources([str(tmp_path / "nothing")])


def test_two_runs_on_one_machine_stay_apart(tmp_path):
    runs = [report_runs.write(tmp_path / name, report_runs.grid("alpha"), report_runs.CPU) for name in ("old", "new")]
    assert list(by_machine(read_sources(map(str, runs)))) == ["Some CPU 3000 · old", "Some CPU 3000 · new"]


def test_a_record_without_environment_is_named_by_its_host(tmp_path):
    record = make_record(make_case(), Measurement.of(metrics.LATENCY, [0.1]), host="elsewhere")
    run = report_runs.write(tmp_path / "run", [], report_runs.CPU)
    (run / "records.jsonl").write_text(json.dumps(record.to_json()) + "\n")
    assert list(by_machine(read_sources([str(run)]))) == ["elsewhere"]


def test_what_was_not_measured_is_of_the_machine_that_measured_the_rest(tmp_path):
    """A record that is `unavailable` has no environment, and its host is no device to filter by."""
    measured = make_record(make_case(), Measurement.of(metrics.LATENCY, [0.1]), host="vm")
    run = report_runs.write(tmp_path / "run", [measured], report_runs.CPU)
    absent = make_record(make_case("absent"), host="vm", status="unavailable", reason="not installed", sequence=1)
    with (run / "records.jsonl").open("a") as file:
        file.write(json.dumps(absent.to_json()) + "\n")
    (source,) = read_sources([str(run)])
    assert len({source.device(record) for record in source.records}) == 1
    assert source.device(source.records[0]) != "vm"


def test_what_an_unfinished_run_lacks_is_known(tmp_path):
    run = report_runs.write(tmp_path / "run", report_runs.grid("alpha"), report_runs.CPU)
    assert read_sources([str(run)])[0].unfinished == ""
    cases = sorted({record.case.id for record in report_runs.grid("alpha")})
    (run / "planned.json").write_text(json.dumps({"rounds": 1, "cases": [*cases, "0" * 16]}))
    (source,) = read_sources([f"{run}@seconds=1"])  # also where a part of it is asked for
    assert source.unfinished == f"1 of {len(cases) + 1} cases has no record"


def test_a_merged_run_compares_its_machines_cell_by_cell(tmp_path):
    pytest.importorskip("altair", reason="altair is not installed: pip install 'speechmeter[report]'")
    desk, cluster, *_ = report_runs.full(tmp_path)
    merge([desk, cluster], tmp_path / "merged")
    (figure,) = lists.machines(read_sources([str(tmp_path / "merged")]))
    ratios = {row["label"]: row["ratio"] for row in figure.rows if row["series"] == "NVIDIA H200"}
    assert set(ratios) == {"1 s × 1", "1 s × 4", "5 s × 1"}
    assert all(text.startswith("0.05 [") for text in ratios.values())
