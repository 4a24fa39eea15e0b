"""Charts of runs as Altair charts: valid, of the metric that was asked for, with the title that was asked for."""

import pytest
import report_runs

pytest.importorskip("altair", reason="altair is not installed: pip install 'speechmeter[report]'")

from speechmeter.api.plotting import chart, source_of
from speechmeter.core.errors import InputError
from speechmeter.report.page.build import page_data
from speechmeter.report.sources import read_sources


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return report_runs.write(tmp_path_factory.mktemp("runs") / "run", report_runs.grid("alpha"), report_runs.CPU)


def test_one_figure_is_a_chart_and_several_are_below_each_other(run):
    one = chart(run, "cold-start", width_mm=85)
    assert one.to_dict()["width"] == pytest.approx(85 / 25.4 * 96)
    several = chart([run], "grid")
    assert len(several.to_dict()["vconcat"]) == 2


@pytest.mark.parametrize("width_mm", [0, 1, 5000, float("nan")])
def test_a_width_that_no_figure_has_is_refused(run, width_mm):
    with pytest.raises(InputError, match="is not a width from 40mm to 500mm"):
        chart(run, "cold-start", width_mm=width_mm)


def test_records_without_a_run_directory_are_drawn():
    assert chart(source_of(report_runs.grid("alpha")), "scaling", metric="memory").to_dict()["layer"]


def test_a_title_replaces_that_of_the_figure_and_none_leaves_it_out(run):
    assert chart(run, "scaling", title="Latency on a laptop").to_dict()["title"]["text"] == ["Latency on a laptop"]
    assert "title" not in chart(run, "scaling", title="none").to_dict()
    with pytest.raises(InputError, match="a title needs one figure, and there are 2"):
        chart(run, "grid", title="Grids")


@pytest.mark.parametrize("kind", ["grid", "cold-start"])
def test_the_chart_of_a_notebook_is_that_of_the_page(run, kind):
    """The same figures with the same texts, drawn by the same marks."""
    (study,) = page_data(read_sources([str(run)]), "1")["studies"]
    section = next(one for one in study["sections"] if one["id"] == kind)
    figures = [*section["figures"], *study["compared"]]
    made = chart(run, kind).to_dict()
    for part in made.get("vconcat", [made]):
        rows = made["datasets"][part["data"]["name"]]
        same = [one for one in figures if texts(one["spec"]["data"]["values"]) == texts(rows)]
        assert same, rows
        assert marks(part) in [marks(one["spec"]) for one in same]


def texts(rows):
    return [(row.get("value"), row.get("low"), row.get("high"), row.get("text")) for row in rows]


def marks(spec):
    return [layer["mark"]["type"] for layer in spec["layer"]]
