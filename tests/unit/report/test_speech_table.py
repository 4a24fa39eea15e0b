"""The tables of systems that speak, and the page's samples of speech."""

import pytest
import report_runs

from speechmeter.report.choose import tables
from speechmeter.report.page.players import players
from speechmeter.report.sources import read_sources


def run(tmp_path):
    path = report_runs.write(tmp_path / "run", report_runs.speech(tmp_path / "spoken"), report_runs.CPU)
    (tmp_path / "spoken").rename(path / "artifacts")
    return read_sources([str(path)])[0]


def cells(table, column):
    place = table.columns.index(column)
    return [row.cells[place] for row in table.rows]


def test_a_run_of_voices_opens_with_their_tables(tmp_path):
    found = tables(run(tmp_path).records, None)
    assert [table.title for table in found] == ["speech: start", "speech: playback", "speech: sound"]
    assert [row.labels for row in found[0].rows] == [("smooth", "at once", "1"), ("stutters", "at once", "1")]
    first = [cell.estimate.value for cell in cells(found[0], "first sound p50")]
    assert first == [0.465, 0.365]  # 0.2 s and 0.1 s, 0.065 s in the middle of both rounds, and 0.2 s of silence
    cold = [cell.estimate.value for cell in cells(found[0], "cold")]
    assert cold == pytest.approx([(0.4 * 0.405) ** 0.5, (0.3 * 0.305) ** 0.5])


def test_pauses_are_shown_with_the_prebuffer_that_they_depend_on(tmp_path):
    table = tables(run(tmp_path).records, "speech")[1]
    assert [cell.estimate.value for cell in cells(table, "underruns")] == [0.0, 1.0]
    assert any("playback starts when 100 ms of sound have arrived" in note for note in table.notes)


def test_the_round_trip_is_that_of_the_pair(tmp_path):
    table = tables(run(tmp_path).records, "speech")[2]
    assert all(30 < cell.estimate.value < 40 for cell in cells(table, "round-trip WER"))
    assert "round-trip WER: includes the errors of the recogniser (ear), not only those of the voice." in table.notes


def test_samples_are_in_the_page_only_where_asked_for(tmp_path):
    source = run(tmp_path)
    assert players(source, 0) == []
    found = players(source, 5)
    assert [(one["name"], [sample["title"] for sample in one["samples"]]) for one in found] == [
        ("smooth", ["text-1", "text-2"]), ("stutters", ["text-1", "text-2"])
    ]  # fmt: skip
    assert found[0]["samples"][0]["text"] == "Sentence number 1."
    assert found[0]["samples"][0]["sound"].startswith("data:audio/flac;base64,")


def test_samples_that_are_too_long_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("speechmeter.report.page.players.MOST_BYTES", 10)
    assert players(run(tmp_path), 5) == []
