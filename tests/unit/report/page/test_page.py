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
from speechmeter.report.page.study import keys_of
from speechmeter.report.page.table import shown_metrics, table_data
from speechmeter.report.sources import Source, read_sources
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


def table(data, study=0):
    return data["studies"][study]["table"]


def column(data, metric, study=0):
    return [one["id"] for one in table(data, study)["columns"]].index(metric)


def every_section(data):
    """(the chart's name, its figures) of every study, those beside the answers included."""
    titles = {chart.title: name for name, chart in CHARTS.items()}
    for study in data["studies"]:
        for one in study["sections"]:
            yield one["id"], one["figures"]
        shows = {finding["section"]: titles.get(finding["evidence"]) for finding in study["findings"]}
        for figure in study["compared"]:
            yield shows.get(figure["id"], "first of all"), [figure]
    for one in data["together"]:
        yield one["id"], one["figures"]


def test_a_run_of_one_round_with_random_weights_says_both_at_its_head(single, desk):
    for study in single["studies"]:
        assert "1 round" in study["about"] and study["notes"] == [report_runs.RANDOM]
        shown = [finding["interval"] for finding in study["findings"]]
        assert shown and all("one round" in text or "95 % interval" in text for text in shown)  # of WER
    assert "3 rounds" in desk["studies"][0]["about"] and desk["studies"][0]["notes"] == []


def test_the_table_promises_intervals_only_where_there_are_some(single, desk):
    assert table(desk)["text"].startswith("Values with their 95 % intervals. Click a value")
    accuracy = [study["name"] for study in single["studies"]].index("accuracy")
    assert table(single, accuracy)["text"].startswith(
        "Values with their 95 % intervals, which need more than one round."
    )


def test_the_table_of_one_round_promises_no_interval(tmp_path):
    run = report_runs.write(tmp_path / "run", report_runs.once(report_runs.grid("alpha")), report_runs.CPU)
    text = table(page_data(read_sources([str(run)]), "0"))["text"]
    assert text.startswith("Values without intervals, because there was one round. Click a value")


def test_a_figure_without_an_interval_says_why(single, desk):
    place = column(desk, "parameters.v1")
    counted = [row[1][place] for row in table(desk)["rows"] if row[1][place][1] is not None]
    assert {(cell[2], cell[5]) for cell in counted} == {("no interval: an exact count", False)}
    place = column(single, "latency.v1")
    timed = [row[1][place] for row in table(single)["rows"] if row[1][place][1] is not None]
    assert {(cell[2], cell[5]) for cell in timed} == {("one round: no interval", False)}


def test_the_details_of_a_case_have_the_notes_of_its_model(single, desk):
    cases = [case for study in single["studies"] for case in study["cases"]]
    told = [[single["shared"][place] for place in case["notes"]] for case in cases]
    assert told and all(notes == [report_runs.RANDOM] for notes in told)
    others = desk["studies"][0]["cases"]
    assert others and all(case["notes"] == [] for case in others)


def interval_is_drawn(figure):
    """Whether a figure holds an interval over rounds or over utterances: an end of one, or a text with its half."""
    fields = ("low", "cost_low", "interval")
    return any(row.get(name) not in (None, "") for row in figure["spec"]["data"]["values"] for name in fields)


def test_no_caption_speaks_of_intervals_that_are_not_there(single, several):
    kinds = set()
    for data in (several, single):
        for name, figures in every_section(data):
            for figure in figures:
                promised = re.sub("there is no interval|Where intervals overlap or are missing", "", figure["caption"])
                if name not in ("frontier", "memory", "modules"):
                    kinds.add((name, interval_is_drawn(figure)))
                    assert ("interval" in promised) == interval_is_drawn(figure), (name, figure["caption"])
    assert {("grid", True), ("grid", False), ("scaling", False), ("energy", False), ("losses", False)} <= kinds


def test_every_figure_of_one_round_with_random_weights_says_both(single, several):
    for name, figures in every_section(single):
        for figure in figures:
            assert any(note.endswith(report_runs.RANDOM) for note in figure["caveats"]), figure["title"]
            counted = name in ("frontier", "memory") or "not sampled" in figure["caption"]
            over_utterances = name == "live" and interval_is_drawn(figure)  # which one round has too
            has_none = not counted and not over_utterances
            assert ("one round: no interval" in figure["caveats"]) == has_none, figure["title"]
    usual = {**several, "studies": [study for study in several["studies"] if study["name"] != "search"]}
    grids = [figure for name, figures in every_section(usual) for figure in figures if name == "grid"]
    assert grids and all(figure["caveats"] == [] for figure in grids)


def test_the_sections_are_the_charts_in_their_order(several):
    for study in several["studies"]:
        names = [one["id"] for one in study["sections"]]
        assert names == [name for name in CHARTS if name in names]
        assert all(one["title"] == CHARTS[one["id"]].title for one in study["sections"])
    assert {name for name, _ in every_section(several)} >= set(CHARTS)
    assert [one["id"] for one in several["together"]] == ["machines"]


def test_a_figure_beside_the_answers_is_not_drawn_again(several):
    assert any(study["compared"] for study in several["studies"])
    for study in several["studies"]:
        below = [figure["title"] for one in study["sections"] for figure in one["figures"]]
        assert not {figure["title"] for figure in study["compared"]} & set(below)
        assert len(study["compared"]) <= 2


def test_every_answer_leads_to_a_place_that_is_there(several):
    for study in several["studies"]:
        places = {"summary", *(one["id"] for one in study["sections"] if one["figures"])}
        places |= {one["id"] for one in study["compared"]}
        assert study["findings"] and {one["section"] for one in study["findings"]} <= places


def test_what_does_not_vary_is_said_once_above_the_table(several):
    desk = next(study for study in several["studies"] if study["name"] == "desk")
    assert ["device", "cpu"] in desk["table"]["constants"]
    assert desk["table"]["labels"] == ["model", "seconds", "batch", "outcome"]
    losses = next(study for study in several["studies"] if study["name"] == "losses")
    assert ["device", "cuda"] in losses["table"]["constants"] and "part" in losses["table"]["labels"]


def test_the_figures_that_matter_are_first(several):
    accuracy = next(study for study in several["studies"] if study["name"] == "accuracy")
    assert [one["title"] for one in accuracy["table"]["columns"]][:2] == ["WER", "real-time factor"]


def test_a_figure_of_few_cases_does_not_come_first():
    scored = [record for record in report_runs.systems() if record.case.subject.name == "exact"]
    for records, first in (([*report_runs.grid("alpha"), *scored], "real-time factor"), (scored, "WER")):
        mixed = Source(name="run", host="desk", records=tuple(records), environments={})
        assert table_data(mixed, shown_metrics(records))["columns"][0]["title"] == first


def test_two_studies_of_one_name_have_ids_of_their_own():
    names = ["CPU grid", "cpu-grid", "语音", "<b>", "cpu-grid"]
    assert keys_of(names) == ["cpu-grid", "cpu-grid-2", "study", "b", "cpu-grid-3"]


def test_nothing_in_the_data_can_close_its_element(sources):
    page = build_page(sources[:1], "0")
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert "<" not in inside
    names = {row[0][0] for row in table(json.loads(inside))["rows"]}
    assert set(report_runs.HOSTILE) <= names


def test_a_hostile_run_name_is_escaped_in_the_title(tmp_path):
    run = report_runs.write(tmp_path / "<b>&run", report_runs.grid("alpha"), report_runs.CPU)
    assert "<title>Speechmeter: &lt;b&gt;&amp;run</title>" in build_page(read_sources([str(run)]), "0")


def test_cells_have_the_digits_of_the_tables(sources, desk):
    place = column(desk, "latency.v1")
    page = [row[1][place][0] for row in table(desk)["rows"] if row[0][-1] != "skipped"]
    shown = tables(sources[0].records, "summary")[0]
    at = shown.columns.index("latency")
    assert page == [row.cells[at].text() for row in shown.rows]


def test_raw_samples_are_kept_to_the_nanosecond(sources, desk):
    record = sources[0].records[0]
    case = next(case for case in desk["studies"][0]["cases"] if case["id"] == record.case.id)
    assert case["samples"]["latency.v1"][0] == [round(v * 1e9) for v in record.find("latency.v1").values]


def test_a_value_that_json_does_not_have_becomes_a_word():
    assert embedded({"a": [float("nan"), 1.5, float("inf")]}) == '{"a":["nan",1.5,"inf"]}'


def test_sections_without_records_are_left_out(sources):
    (study,) = page_data(sources[2:3], "0")["studies"]
    assert [section["id"] for section in study["sections"]] == ["models", "front"]


def test_every_metric_that_is_shown_is_defined(sources):
    data = page_data([sources[1], *sources[3:]], "0")
    defined = {one[0] for one in data["definitions"]}
    assert {one["id"] for study in data["studies"] for one in study["table"]["columns"]} <= defined
    assert {"module_share.v3", "floor_ratio.v1", "energy_cpu_per_audio_hour.v1"} <= defined


def test_an_empty_run_gives_a_page(tmp_path):
    run = report_runs.write(tmp_path / "run", [], report_runs.CPU)
    data = page_data(read_sources([str(run)]), "0")
    (study,) = data["studies"]
    assert study["cases"] == [] and study["sections"] == [] and study["headline"] == "There are no records yet."


def test_a_run_of_failures_gives_a_table_with_reasons(tmp_path):
    failed = [make_record(make_case(), status="crashed", reason="gone with signal 9", host="desk")]
    data = page_data(read_sources([str(report_runs.write(tmp_path / "run", failed, report_runs.CPU))]), "0")
    assert table(data)["rows"][0][0][-1] == "crashed"
    assert data["studies"][0]["headline"] == "Nothing was measured: 1 crashed."
    assert "crashed: gone with signal 9" in data["shared"]


def test_a_metric_of_a_plug_in_does_not_disturb(tmp_path):
    own = Measurement(metric="plug.v1", unit="x", values=(1.0,))
    record = make_record(make_case(), Measurement.of(metrics.LATENCY, [0.1]), own, host="desk")
    run = report_runs.write(tmp_path / "run", [record], report_runs.CPU)
    assert table(page_data(read_sources([str(run)]), "0"))["rows"]


def test_a_thousand_records_stay_below_three_megabytes(tmp_path):
    run = report_runs.many(tmp_path / "run", 1000)
    assert len(build_page(read_sources([str(run)]), "0").encode()) < 3e6


def test_the_examples_give_a_page_with_grids_and_the_front():
    runs = sorted(str(path) for path in (Path(__file__).parents[4] / "examples" / "runs").iterdir() if path.is_dir())
    data = page_data(read_sources(runs), "0")
    assert {"grid", "scaling", "cold-start", "front"} <= {name for name, _ in every_section(data)}
    fronts = [figure for name, figures in every_section(data) if name == "front" for figure in figures]
    assert fronts
    assert {"on the front", "not resolvable", "dominated"} >= {
        row["standing"] for front in fronts for row in front["spec"]["data"]["values"]
    }
