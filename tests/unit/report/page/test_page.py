"""The page's data: escaped, complete, small, with the same digits as the tables."""

import json
import re
from pathlib import Path

import pytest
import report_runs

pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'speechmeter[report]'")

from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report.choose import tables
from speechmeter.report.page.build import build_page, embedded, page_data
from speechmeter.report.sources import read_sources


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return read_sources(map(str, report_runs.full(tmp_path_factory.mktemp("runs"))))


@pytest.fixture(scope="module")
def desk(sources):
    return page_data(sources[:1], "0")


def test_nothing_in_the_data_can_close_its_element(sources):
    page = build_page(sources[:1], "0")
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert "<" not in inside
    names = {row[0][0] for row in json.loads(inside)["table"]["rows"]}
    assert set(report_runs.HOSTILE) <= names


def test_a_hostile_run_name_is_escaped_in_the_title(tmp_path):
    run = report_runs.write(tmp_path / "<b>&run", report_runs.grid("alpha"), report_runs.CPU)
    assert "<title>Speechmeter: &lt;b&gt;&amp;run</title>" in build_page(read_sources([str(run)]), "0")


def test_cells_have_the_digits_of_the_tables(sources, desk):
    place = [column["id"] for column in desk["table"]["columns"]].index("latency.v1")
    page = [row[1][place][0] for row in desk["table"]["rows"] if row[0][-1] != "skipped"]
    table = tables(sources[0].records, "summary")[0]
    column = table.columns.index("latency")
    assert page == [row.cells[column].text() for row in table.rows]


def test_raw_samples_are_kept_to_the_nanosecond(sources, desk):
    record = sources[0].records[0]
    case = next(case for case in desk["cases"] if case["id"] == record.case.id)
    assert case["samples"]["latency.v1"][0] == [round(v * 1e9) for v in record.find("latency.v1").values]


def test_a_value_that_json_does_not_have_becomes_a_word():
    assert embedded({"a": [float("nan"), 1.5, float("inf")]}) == '{"a":["nan",1.5,"inf"]}'


def test_sections_without_records_are_left_out(sources):
    assert [section["id"] for section in page_data(sources[2:3], "0")["sections"]] == ["front"]


def test_every_metric_that_is_shown_is_defined(sources):
    data = page_data([sources[1], *sources[3:]], "0")
    defined = {one[0] for one in data["definitions"]}
    assert {column["id"] for column in data["table"]["columns"]} <= defined
    assert {"module_share.v1", "floor_ratio.v1", "energy_cpu_per_audio_hour.v1"} <= defined


def test_an_empty_run_gives_a_page(tmp_path):
    run = report_runs.write(tmp_path / "run", [], report_runs.CPU)
    data = page_data(read_sources([str(run)]), "0")
    assert data["cases"] == [] and data["sections"] == []


def test_a_run_of_failures_gives_a_table_with_reasons(tmp_path):
    failed = [make_record(make_case(), status="crashed", reason="gone with signal 9", host="desk")]
    data = page_data(read_sources([str(report_runs.write(tmp_path / "run", failed, report_runs.CPU))]), "0")
    assert data["table"]["rows"][0][0][-1] == "crashed"
    assert "crashed: gone with signal 9" in data["shared"]


def test_a_metric_of_a_plug_in_does_not_disturb(tmp_path):
    own = Measurement(metric="plug.v1", unit="x", values=(1.0,))
    record = make_record(make_case(), Measurement.of(metrics.LATENCY, [0.1]), own, host="desk")
    run = report_runs.write(tmp_path / "run", [record], report_runs.CPU)
    assert page_data(read_sources([str(run)]), "0")["table"]["rows"]


def test_a_thousand_records_stay_below_three_megabytes(tmp_path):
    run = report_runs.many(tmp_path / "run", 1000)
    assert len(build_page(read_sources([str(run)]), "0").encode()) < 3e6


def test_the_examples_give_a_page_with_grids_and_the_front():
    runs = sorted(str(path) for path in (Path(__file__).parents[4] / "examples" / "runs").iterdir() if path.is_dir())
    data = page_data(read_sources(runs), "0")
    assert {"grid", "scaling", "cold-start", "front"} <= {section["id"] for section in data["sections"]}
    (front,) = [figure for section in data["sections"] if section["id"] == "front" for figure in section["figures"]]
    assert {"on the front", "not resolvable", "dominated"} >= {
        row["standing"] for row in front["spec"]["data"]["values"]
    }
