"""`compare --history` as a user runs it."""

import json

import pytest
from run_histories import write_crash, write_history


def test_the_table_names_level_commit_and_what_changed(workshop, cli):
    new = {"packages": {"torch": "3.0"}}
    write_history(workshop / "runs", [0.020, 0.0201] * 3 + [0.026, 0.0261] * 3, dict.fromkeys(range(6, 12), new))
    done = cli("compare", "--history", "runs")
    assert done.returncode == 1, done.stderr
    row = next(line for line in done.stdout.splitlines() if "SLOWER" in line and "│" in line)
    assert all(word in row for word in ("c0ffee07", "26.0 ms", "1.299"))
    assert "the run before the change is c0ffee06 (run-05)" in done.stdout
    assert "packages torch: '2.9' before, '3.0' after" in done.stdout


def test_formats_say_the_same(workshop, cli):
    write_history(workshop / "runs", [0.020] * 5 + [0.026] * 5)
    data = json.loads(cli("compare", "--history", "runs", "--format", "json").stdout)
    (series,) = data["series"]
    shift = series["levels"][1]["shift"]
    assert (shift["commit"], shift["commit_before"], shift["verdict"]) == ("c0ffee06", "c0ffee05", "SLOWER")
    assert len(series["levels"][0]["points"]) == 5
    comment = cli("compare", "--history", "runs", "--format", "github").stdout
    assert comment.startswith("❌ **Regression:** model · cpu · 1 s × 1 latency SLOWER since c0ffee06")
    assert "| model · cpu · 1 s × 1 | latency |" in cli("compare", "--history", "runs", "--format", "markdown").stdout


def test_flat_is_exit_0_and_too_few_runs_exit_3(workshop, cli):
    write_history(workshop / "flat", [0.02] * 4)
    write_history(workshop / "short", [0.02, 0.03])
    flat, short = (cli("compare", "--history", name) for name in ("flat", "short"))
    assert (flat.returncode, "no shift" in flat.stdout) == (0, True)
    assert (short.returncode, "too few runs" in short.stdout) == (3, True)


def test_a_newest_run_that_failed_is_a_regression_in_every_format(workshop, cli):
    write_history(workshop / "runs", [0.02] * 4)
    write_crash(workshop / "runs/run-04", 5)
    done = cli("compare", "--history", "runs")
    assert done.returncode == 1, done.stderr
    assert "2026-05-05 10:00" in next(line for line in done.stdout.splitlines() if "FAILED" in line and "│" in line)
    assert "latency FAILED from run-04 on; the last run that did not fail is c0ffee04 (run-03)" in done.stdout
    comment = cli("compare", "--history", "runs", "--format", "github").stdout
    assert comment.startswith("❌ **Regression:** model · cpu · 1 s × 1 latency FAILED since run-04")
    (series,) = json.loads(cli("compare", "--history", "runs", "--format", "json").stdout)["series"]
    assert [failed["run"] for failed in series["failed"]] == ["run-04"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["runs/run-00"], "two runs are needed; give BASE and NEW, or --history DIR"),
        ([], "two runs are needed; give BASE and NEW, or --history DIR"),
        (["runs/run-00", "runs/run-01", "--history", "runs"], "--history: it cannot be combined with BASE and NEW"),
        (["runs/run-00", "runs/run-01", "--last", "3"], "--last: it needs a history; add --history DIR"),
    ],
)
def test_a_history_and_two_runs_exclude_each_other(workshop, cli, words, told):
    write_history(workshop / "runs", [0.02] * 4)
    done = cli("compare", *words)
    assert (done.returncode, told in done.stderr) == (2, True)
