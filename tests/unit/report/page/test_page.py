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
from speechmeter.report.caveats import ONE_ROUND
from speechmeter.report.choose import tables
from speechmeter.report.page.build import build_page, embedded, page_data
from speechmeter.report.sources import read_sources
from speechmeter.report.views import CHARTS


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return read_sources(map(str, report_runs.full(tmp_path_factory.mktemp("runs"))))


@pytest.fixture(scope="module")
def desk(sources):
    return page_data(sources[:1], "0")


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """The page of runs that fill every section."""
    return page_data(read_sources(map(str, report_runs.full(tmp_path_factory.mktemp("several"), names=()))), "0")


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """The page of the same runs with one round each, and random weights."""
    runs = report_runs.full(tmp_path_factory.mktemp("once"), report_runs.once, names=())
    return page_data(read_sources(map(str, runs)), "0")


def test_a_run_of_one_round_with_random_weights_says_both_at_its_head(single, desk):
    for run in single["runs"]:
        assert run["rounds"] == "1 round"
        assert run["notes"] == [ONE_ROUND, report_runs.RANDOM]
    assert (desk["runs"][0]["rounds"], desk["runs"][0]["notes"]) == ("3 rounds", [])


def test_the_table_promises_intervals_only_where_there_are_some(single, desk):
    assert desk["table"]["text"].startswith("Figures with their 95 % intervals. Select")
    assert single["table"]["text"].startswith(
        "Figures with their 95 % intervals, which need more than one round."
    )  # WER


def test_the_table_of_one_round_promises_no_interval(tmp_path):
    run = report_runs.write(tmp_path / "run", report_runs.once(report_runs.grid("alpha")), report_runs.CPU)
    text = page_data(read_sources([str(run)]), "0")["table"]["text"]
    assert text.startswith("Figures without intervals, because there was one round. Select")


def test_a_figure_without_an_interval_says_why(single, desk):
    place = [column["id"] for column in desk["table"]["columns"]].index("parameters.v1")
    counted = [row[1][place] for row in desk["table"]["rows"] if row[1][place][1] is not None]
    assert {(cell[2], cell[5]) for cell in counted} == {("no interval: an exact count", False)}
    place = [column["id"] for column in single["table"]["columns"]].index("latency.v1")
    timed = [row[1][place] for row in single["table"]["rows"] if row[1][place][1] is not None]
    assert {(cell[2], cell[5]) for cell in timed} == {("one round: no interval", False)}


def test_the_details_of_a_case_have_the_notes_of_its_model(single, desk):
    told = [[single["shared"][place] for place in case["notes"]] for case in single["cases"]]
    assert all(notes == [report_runs.RANDOM] for notes in told)
    assert all(case["notes"] == [] for case in desk["cases"])


def interval_is_drawn(figure):
    """Whether a figure holds an interval over rounds or over utterances: an end of one, or a text with its half."""
    fields = ("low", "cost_low", "interval")
    return any(row.get(name) not in (None, "") for row in figure["spec"]["data"]["values"] for name in fields)


def test_no_caption_speaks_of_intervals_that_are_not_there(single, several):
    kinds = set()
    for data in (several, single):
        for section in data["sections"]:
            for figure in section["figures"]:
                promised = re.sub("there is no interval|Where intervals overlap or are missing", "", figure["caption"])
                if section["id"] not in ("frontier", "memory", "modules"):
                    kinds.add((section["id"], interval_is_drawn(figure)))
                    assert ("interval" in promised) == interval_is_drawn(figure), (section["id"], figure["caption"])
    assert {("grid", True), ("grid", False), ("scaling", False), ("energy", False), ("losses", False)} <= kinds


def test_every_figure_of_one_round_with_random_weights_says_both(single, several):
    for section in single["sections"]:
        for figure in section["figures"]:
            assert any(note.endswith(report_runs.RANDOM) for note in figure["caveats"]), figure["title"]
            counted = section["id"] in ("frontier", "memory") or "not sampled" in figure["caption"]
            assert ("one round: no interval" in figure["caveats"]) == (not counted), figure["title"]
    grids = next(section for section in several["sections"] if section["id"] == "grid")
    assert all(figure["caveats"] == [] for figure in grids["figures"] if not figure["title"].startswith("search"))


def test_the_sections_are_the_charts_in_their_order(several):
    sections = {one["id"]: one["title"] for one in several["sections"]}
    assert sections == {name: chart.title for name, chart in CHARTS.items()}
    assert list(sections) == list(CHARTS)


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
    assert {"module_share.v3", "floor_ratio.v1", "energy_cpu_per_audio_hour.v1"} <= defined


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
