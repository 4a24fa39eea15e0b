"""Runs of a folder become series: which runs, cases and machines belong together."""

import shutil

import pytest
from conftest import make_case
from run_histories import write_crash, write_history, write_run

from speechmeter.analysis.history import history_exit
from speechmeter.api.histories import find_runs, history
from speechmeter.core.errors import InputError

LATENCY = {"latency": 0.05}
SLOWER = [0.020] * 5 + [0.026] * 5


def test_a_planted_shift_is_found_at_its_commit(tmp_path):
    write_history(tmp_path, SLOWER)
    (series,) = history(str(tmp_path), LATENCY).series
    assert [level.points[0].commit for level in series.levels] == ["c0ffee01", "c0ffee06"]
    assert series.levels[1].shift.before.commit == "c0ffee05"
    assert series.levels[1].shift.ratio == pytest.approx(1.3)


def test_machines_are_kept_apart(tmp_path):
    write_history(tmp_path / "a", [0.020] * 4)
    write_history(tmp_path / "b", [0.050] * 4, {n: {"host": "server"} for n in range(4)})
    found = history(str(tmp_path), LATENCY)
    assert {one.machine: len(one.levels) for one in found.series} == {"desk": 1, "server": 1}
    assert found.runs == 8


def test_machines_of_one_name_are_told_apart_by_what_they_are(tmp_path):
    write_history(tmp_path / "a", [0.020] * 4)
    write_history(tmp_path / "b", [0.050] * 4, {n: {"cpu": "slide rule"} for n in range(4)})
    assert {one.machine for one in history(str(tmp_path), LATENCY).series} == {
        "desk · abacus · [0]",
        "desk · slide rule · [0]",
    }


def test_one_more_meter_does_not_break_a_series_and_another_protocol_does(tmp_path):
    write_history(tmp_path / "a", [0.020] * 4)
    write_run(tmp_path / "b", 9, [0.02, 0.02], make_case("model", meters=("latency", "memory")))
    write_run(tmp_path / "c", 10, [0.02, 0.02], make_case("model", protocol={"samples": 99}))
    assert sorted(len(one.points) for one in history(str(tmp_path), LATENCY).series) == [1, 5]


def test_a_copy_of_a_run_counts_once(tmp_path):
    write_history(tmp_path, SLOWER)
    shutil.copytree(tmp_path / "run-03", tmp_path / "copies/of-03")
    (series,) = history(str(tmp_path), LATENCY).series
    assert len(series.points) == 10


def test_a_broken_run_is_left_out_by_name_and_the_rest_is_read(tmp_path):
    write_history(tmp_path, SLOWER)
    (tmp_path / "run-02/records.jsonl").write_text("{nonsense\n")
    found = history(str(tmp_path), LATENCY)
    assert len(found.series[0].points) == 9
    assert "run-02" in found.notes[0]


CRASH = "crashed: killed by SIGSEGV, in first call"


def test_runs_that_failed_are_counted_and_the_newest_is_a_regression(tmp_path):
    write_history(tmp_path, [0.020] * 5)
    for day in range(6, 11):
        write_crash(tmp_path / f"run-{day:02d}", day)
    found = history(str(tmp_path), LATENCY)
    (series,) = found.series
    assert (len(series.points), len(series.failing), series.regressed, history_exit([series])) == (5, 5, True, 1)
    assert found.notes == (f"failed: 5 of 10 runs of model · cpu · 1 s × 1, last run-10: {CRASH}",)
    assert found.runs == 10


def test_a_failure_that_was_mended_is_counted_and_no_regression(tmp_path):
    write_history(tmp_path, [0.020] * 5)
    shutil.rmtree(tmp_path / "run-02")
    write_crash(tmp_path / "run-02", 3)
    found = history(str(tmp_path), LATENCY)
    (series,) = found.series
    assert (len(series.failed), series.failing, history_exit([series])) == (1, (), 0)
    assert found.notes[0].startswith("failed: 1 of 5 runs of model")


def test_a_run_of_which_some_rounds_failed_has_a_figure(tmp_path):
    write_history(tmp_path, [0.020] * 5)
    write_crash(tmp_path / "run-04", 5, rounds=2, first=3)
    (series,) = history(str(tmp_path), LATENCY).series
    assert (len(series.points), series.failed) == (5, ())


def test_a_crash_goes_to_the_newest_machine_of_its_name(tmp_path):
    write_history(tmp_path / "a", [0.020] * 4, {n: {"cpu": "slide rule"} for n in range(2)})
    write_crash(tmp_path / "b", 9)
    failed = {one.machine: len(one.failed) for one in history(str(tmp_path), LATENCY).series}
    assert failed == {"desk · slide rule · [0]": 0, "desk · abacus · [0]": 1}


def test_a_case_that_never_worked_has_no_series_and_its_failure_is_told(tmp_path):
    write_crash(tmp_path / "a", 1)
    with pytest.raises(InputError, match=f"no run here has latency; failed: 1 of 1 run .* {CRASH}"):
        history(str(tmp_path), LATENCY)


def test_filters_and_the_newest_runs(tmp_path):
    write_history(tmp_path / "a", SLOWER)
    write_history(tmp_path / "b", [0.1] * 4, case=make_case("other"))
    (series,) = history(f"{tmp_path}@model=model", LATENCY, last=6).series
    assert [point.run for point in series.points] == [f"a/run-{n:02d}" for n in range(4, 10)]


def test_hidden_folders_and_what_is_inside_a_run_are_not_looked_into(tmp_path):
    write_history(tmp_path, [0.02] * 2)
    write_run(tmp_path / ".parts/x", 8, [0.02])
    write_run(tmp_path / "run-00/artifacts/x", 9, [0.02])
    assert [path.name for path in find_runs(tmp_path)] == ["run-00", "run-01"]


@pytest.mark.parametrize(
    ("place", "metric", "words"),
    [
        ("none", "latency", "no such directory"),
        ("empty", "latency", "there is no run in this folder"),
        ("runs/run-00", "latency", "single run"),
        ("runs", "flops", "no run here has flops"),
        ("runs", "latencies", "there is no metric"),
        ("runs", "modules", "modules is a table of several metrics, not one metric"),
        ("runs@model=x", "latency", "no record has model x; the run has only model"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path, place, metric, words):
    (tmp_path / "empty").mkdir()
    write_history(tmp_path / "runs", [0.02] * 2)
    with pytest.raises(InputError, match=words):
        history(str(tmp_path / place), {metric: 0.05})
