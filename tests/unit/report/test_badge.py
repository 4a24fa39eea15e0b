"""A badge: valid SVG with the figure and its interval, whatever the names are."""

import xml.etree.ElementTree as ElementTree

import pytest
import report_runs

from speechmeter.api.pages import write_badge
from speechmeter.core.errors import InputError


def texts(path):
    return [one.text for one in ElementTree.fromstring(path.read_text()).iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture
def run(tmp_path):
    return str(report_runs.write(tmp_path / "run", report_runs.systems(), report_runs.CPU))


def test_a_badge_has_the_first_answer_with_its_interval(run, tmp_path):
    said = write_badge(run, tmp_path / "b.svg")
    name, figure = texts(tmp_path / "b.svg")
    assert name == "exact" and "% WER (" in figure and " to " in figure
    assert said.startswith("exact: ") and "lowest WER of 4 systems" in said


def test_a_badge_of_a_metric_has_the_best_figure_of_it(run, tmp_path):
    write_badge(run, tmp_path / "b.svg", "rtfx")
    name, figure = texts(tmp_path / "b.svg")
    assert "quick" in name and figure.startswith("19.") and "× real time (" in figure


def test_a_badge_of_one_round_says_so_and_hostile_names_are_text(tmp_path):
    records = report_runs.once([record for name in report_runs.HOSTILE for record in report_runs.grid(name)])
    run = report_runs.write(tmp_path / "run", records, report_runs.CPU)
    for metric in (None, "memory"):
        write_badge(str(run), tmp_path / "b.svg", metric, force=True)
        assert texts(tmp_path / "b.svg")[1].endswith("(one round)")


def test_a_badge_that_cannot_be_made_says_why(run, tmp_path):
    with pytest.raises(InputError, match="SVG"):
        write_badge(run, tmp_path / "b.png")
    with pytest.raises(InputError, match="no figure of energy"):
        write_badge(run, tmp_path / "b.svg", "energy")
    write_badge(run, tmp_path / "b.svg")
    with pytest.raises(InputError, match="already exists"):
        write_badge(run, tmp_path / "b.svg")
