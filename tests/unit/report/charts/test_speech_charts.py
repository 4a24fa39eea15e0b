"""Charts of systems that speak: what they draw and say, and that they can be drawn."""

from itertools import pairwise
from pathlib import Path

import pytest
import report_runs

pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'speechmeter[report]'")

from speechmeter.report.plot import COLUMN_MM, encoded, figures_of
from speechmeter.report.sources import read_sources
from speechmeter.report.views import CHARTS


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    path = report_runs.write(folder / "run", report_runs.speech(folder / "spoken"), report_runs.CPU)
    (folder / "spoken").rename(path / "artifacts")
    return read_sources([str(path)])[0]


def figure(source, axis):
    (found,) = figures_of([source], f"speech:{axis}", None)
    return found


@pytest.mark.parametrize("axis", CHARTS["speech"].axes)
def test_every_chart_can_be_drawn(source, axis):
    assert encoded([figure(source, axis)], ".svg", COLUMN_MM).startswith(b"<svg")


def test_the_first_one_says_who_starts_first(source):
    assert "stutters has the lowest first sound" in figure(source, "start").title


def test_one_answer_is_drawn_as_it_came_and_was_played(source):
    rows = figure(source, "answer").rows
    of_one = [row for row in rows if row["lane"] == "stutters"]
    assert [row["kind"] for row in of_one if "end" in row] == [
        "waiting", "silence in the sound", "speech", "pause", "speech"
    ]  # fmt: skip
    assert len([row for row in of_one if "came" in row]) == 4
    spans = [(row["start"], row["end"]) for row in of_one if "end" in row]
    assert all(end == pytest.approx(start) for (_, end), (start, _) in pairwise(spans))
    pause = next(row for row in of_one if row["kind"] == "pause")
    # the sound of three pieces lasts 0.75 s, and the last piece comes 3/16 s and 1.5 s after the first
    assert pause["end"] - pause["start"] == pytest.approx(1.5 + 3 / 16 - 0.75)


def test_pauses_shrink_with_the_prebuffer(source):
    rows = [row for row in figure(source, "underrun").rows if row["line"] == "stutters"]
    sums = [row["value"] for row in rows]
    assert sums[0] == pytest.approx(1.5 + 3 / 16 - 0.75) and sums == sorted(sums, reverse=True) and sums[-1] == 0
    # an answer lasts a second, so playback that waits for all of it never pauses
    assert figure(source, "underrun").title.startswith("With a pre-buffer of 1.00 s no answer has a pause")


def test_texts_that_come_slowly_are_not_compared_with_those_that_come_at_once():
    (paced,) = read_sources([str(Path(__file__).parents[4] / "examples/runs/speech-out")])
    assert figure(paced, "start").title.startswith("espeak · at once has the lowest first sound")
    (only,) = read_sources([str(Path(__file__).parents[4] / "examples/runs/speech-out@text_pace=20")])
    assert figure(only, "start").title.startswith("espeak has the lowest first sound")
