"""One damaged line does not cost a run: every command reads the others, and each says what it left out."""

import io
import json
import warnings
from pathlib import Path

import pytest
from conftest import make_case, make_record
from typer.testing import CliRunner

from speechmeter.api.comparing import compare, select
from speechmeter.api.histories import history
from speechmeter.api.runs import Options, load, run_study
from speechmeter.cli.main import app
from speechmeter.cli.printing import print_warnings
from speechmeter.core import metrics
from speechmeter.core.errors import SkippedLinesWarning, StoreError
from speechmeter.core.types import Environment, Measurement
from speechmeter.integrations.pytest.keeping import update_baseline
from speechmeter.plan.study import study_from_python
from speechmeter.report.page.build import page_data
from speechmeter.report.sources import read_sources
from speechmeter.store import lines, run_dir
from speechmeter.store.run_dir import RunDir, RunWriter

HERE = Environment(facts={"host": "pi", "cpu": "A76"})
DAMAGE = {
    "a byte that is no text": lambda line: line.replace(b"latency", b"lat\xffncy", 1),
    "a byte of nothing": lambda line: line.replace(b'"case"', b'"ca\x00e"', 1),
    "half a line": lambda line: line[: len(line) // 2],
    "two lines in one": lambda line: line + line,
    "another shape": lambda line: line.replace(b'"status":"ok"', b'"status":"??"'),
    "no record": lambda line: b"[1, 2]",
    "a number of no number": lambda line: line.replace(b"0.5]", b"NaN]"),
    "text in UTF-16": lambda line: line.decode().encode("utf-16-be") + b"\x00",
}
PLAN = {"models": ["python:fakes.py:nothing"], "seconds": [0.1, 0.2, 0.3], "meters": ["latency"], "rounds": 1}


def run_of(path, count=5, value_s=0.5):
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for round_ in range(count):
            made = Measurement.of(metrics.LATENCY, [value_s + round_ / 1000, 0.5])
            store.append(make_record(make_case(), made, round=round_, sequence=round_, host="pi",
                                     environment=HERE.fingerprint), HERE)  # fmt: skip
    return path


def damage(run, number=2, how="a byte that is no text", name="records.jsonl"):
    held = (run / name).read_bytes().split(b"\n")
    held[number - 1] = DAMAGE[how](held[number - 1])
    (run / name).write_bytes(b"\n".join(held))
    return held[number - 1]


@pytest.fixture
def damaged(tmp_path):
    run = run_of(tmp_path / "run")
    damage(run)
    return run


def invoked(*words):
    with pytest.warns(
        SkippedLinesWarning, match=r"records\.jsonl: 1 of 5 lines cannot be read and was skipped \(line 2"
    ):
        return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


@pytest.mark.parametrize("how", DAMAGE)
def test_the_other_lines_are_read_and_the_damaged_one_is_named(tmp_path, how):
    run = run_of(tmp_path / "run")
    damage(run, 2, how)
    with pytest.warns(SkippedLinesWarning, match=r"line 2: "):
        found = load(run)
    assert [record.round for record in found.records] == [0, 2, 3, 4]
    (one,) = found.skipped
    assert (one.count, list(one.reasons), one.read) == (1, [2], 4)
    assert "line 2" in found.table()


def test_many_damaged_lines_are_counted_and_the_first_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(run_dir, "KEPT", 7)
    run = run_of(tmp_path / "run", 20)
    for number in range(3, 15):
        damage(run, number)
    with pytest.warns(SkippedLinesWarning) as said:
        (found,) = load(run).skipped
    assert (found.count, len(found.reasons)) == (12, 7)
    text = str(said[0].message)
    assert "12 of 20 lines cannot be read and were skipped (line 3:" in text
    assert text.endswith("and 7 more)")
    assert "\n" not in text


def test_a_file_without_a_line_that_can_be_read_is_refused(tmp_path):
    run = run_of(tmp_path / "run", 2)
    (run / "records.jsonl").write_text("not\nours\n")
    with pytest.raises(StoreError, match=r"records\.jsonl:1: not a JSON line .*; no line of this file can be read"):
        RunDir(run).records()


def test_a_line_that_is_too_long_is_passed_over_and_not_held(tmp_path, monkeypatch):
    run = run_of(tmp_path / "run", 3)
    monkeypatch.setattr(lines, "LARGEST_LINE", 4000)
    held = (run / "records.jsonl").read_bytes().splitlines(keepends=True)
    (run / "records.jsonl").write_bytes(held[0] + b"[" * 50_000 + b"\n" + held[1] + b"x" * 20_000)
    with pytest.warns(SkippedLinesWarning, match="line 2: the line is longer than"):
        assert [record.round for record in RunDir(run).records()] == [0, 1]


def test_show_says_it_below_the_table_in_every_format(damaged):
    for format in ("table", "markdown", "latex", "json"):
        shown = invoked("show", damaged, "--format", format)
        assert shown.exit_code == 0
        assert "line 2" in " ".join(shown.stdout.split())
    assert invoked("show", damaged, "--format", "csv").exit_code == 0


def test_query_says_it_below_the_table(damaged):
    pytest.importorskip("duckdb")
    shown = invoked("query", damaged, "SELECT count(*) AS n FROM records")
    assert "line 2" in shown.stdout
    assert json.loads(invoked("query", damaged, "SELECT count(*) AS n FROM records", "--format", "json").stdout) == [
        {"n": 4}
    ]


def test_compare_says_it_in_its_notes(damaged, tmp_path):
    other = run_of(tmp_path / "other")
    shown = invoked("compare", other, damaged)
    assert "line 2" in shown.stdout
    assert any(
        "line 2" in note for note in json.loads(invoked("compare", damaged, other, "--format", "json").stdout)["notes"]
    )


def test_compare_says_when_an_environment_is_lost(tmp_path):
    base, new = run_of(tmp_path / "base"), run_of(tmp_path / "new")
    for name in ("records.jsonl", "environments.jsonl"):
        (new / name).write_text((new / name).read_text().replace(HERE.fingerprint, "0" * 12))
    damage(new, 1, "half a line", "environments.jsonl")
    with pytest.warns(SkippedLinesWarning, match=r"environments\.jsonl: 1 of 1 lines"):
        found = compare(select(str(base)), select(str(new)), {"latency": 0.05})
    assert [note for note in found.notes if note.startswith("NEW was measured in environment 000000000000, which ")]


def test_a_history_says_it_in_its_notes(damaged):
    with pytest.warns(SkippedLinesWarning):
        found = history(str(damaged.parent), {"latency": 0.05})
    assert any("line 2" in note for note in found.notes)


def test_the_page_says_it(damaged):
    with pytest.warns(SkippedLinesWarning):
        data = page_data(read_sources([str(damaged)]), "0")
    assert "line 2" in data["studies"][0]["notes"][0]


def test_merge_keeps_the_sound_lines_and_says_what_it_left(damaged, tmp_path):
    made = invoked("merge", damaged, "-o", tmp_path / "merged")
    assert made.exit_code == 0
    assert [record.round for record in RunDir(tmp_path / "merged").records()] == [0, 2, 3, 4]


def test_rerun_chooses_among_the_sound_lines(damaged):
    with pytest.warns(SkippedLinesWarning):
        assert len(select(str(damaged)).groups[0]) == 4


def test_a_resumed_run_measures_what_was_lost_again_and_keeps_every_byte(workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    options = Options(output=Path("run"), launcher="inline", resume=True)
    begun = run_study(study_from_python(PLAN), options)
    broken = damage(Path("run"), 2)
    held = Path("run/records.jsonl").read_bytes()
    with pytest.warns(SkippedLinesWarning, match="line 2"):
        resumed = run_study(study_from_python(PLAN), options)
    now = Path("run/records.jsonl").read_bytes()
    assert now.startswith(held)
    assert broken in now
    assert len(now.splitlines()) == 4
    lost = json.loads(now.splitlines()[3])
    assert (lost["id"], lost["round"]) == (begun.records[1].case.id, begun.records[1].round)
    assert {record.key for record in resumed.records} == {record.key for record in begun.records}


def test_a_baseline_that_is_written_anew_keeps_the_damaged_file(damaged, tmp_path):
    before = (damaged / "records.jsonl").read_bytes()
    with pytest.warns(SkippedLinesWarning):
        update_baseline(damaged, run_of(tmp_path / "fresh"))
    assert (damaged / "records.jsonl.damaged").read_bytes() == before
    assert len(RunDir(damaged).records()) == 5


def test_the_command_prints_the_warning_once_on_standard_error(capsys, monkeypatch, damaged):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        print_warnings()
        RunDir(damaged).records()
        RunDir(damaged).records()
        warnings.warn(SkippedLinesWarning("steer\x1b[2J"), stacklevel=1)
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 2
    assert printed[0].startswith("speechmeter: warning: ")
    assert "line 2" in printed[0]
    assert printed[1] == "speechmeter: warning: steer\N{REPLACEMENT CHARACTER}[2J"


@pytest.mark.parametrize("size", [0, 1, 5, 2**16 - 1, 2**16, 2**16 + 1, 200_000])
def test_a_torn_last_line_is_cut_however_long_it_is(tmp_path, size):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"whole\n" + b"x" * size)
    assert lines.cut_torn_line(path) == size
    assert path.read_bytes() == b"whole\n"
    path.write_bytes(b"x" * size)
    assert (lines.cut_torn_line(path), path.read_bytes()) == (size, b"")


def test_text_in_utf_16_does_not_carry_control_characters_past_the_search(tmp_path):
    line = json.dumps({"name": "\x1b[2J"}).encode("utf-16-be") + b"\x00\n"
    found = []
    (tmp_path / "x.jsonl").write_bytes(line)
    assert list(lines.read_lines(tmp_path / "x.jsonl", lambda number, reason: found.append(number))) == []
    assert found == [1]
    assert [number for number, _ in lines.whole_lines(io.BytesIO(b"\n \na\nb"))] == [3]
