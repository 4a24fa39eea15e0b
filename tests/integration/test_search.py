"""`run --find` as a user runs it: what fits under a limit on memory, resumed, refused, and shown."""

import json
import math

MODEL = "python:fakes.py:by_the_item"
LIMIT = ("--set", "limits.memory_gib=0.5", "--meters", "latency", "--seconds", "1")


def records(path):
    return [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]


def test_the_batch_found_is_the_largest_that_fits_and_is_found_in_few_processes(cli, workshop):
    done = cli("run", "--model", MODEL, *LIMIT, "--find", "max-batch", "-o", "found")
    assert done.returncode == 0, done.stderr
    trials = records(workshop / "found")
    found = max(r["case"]["axes"]["batch"] for r in trials if r["status"] == "ok")
    assert {r["status"] for r in trials} == {"ok", "oom"}

    grid = ("--batch", f"{found},{found + 1}", "--rounds", "1", "--set", "repeats=1")
    assert cli("run", "--model", MODEL, *LIMIT, *grid, "-o", "edge").returncode == 0
    edge = {r["case"]["axes"]["batch"]: r["status"] for r in records(workshop / "edge")}
    assert edge == {found: "ok", found + 1: "oom"}
    assert 8 < found < 16  # 0.5 GiB hold less than sixteen times 32 MiB
    assert len(trials) <= 2 * math.log2(found) + 3 < found

    shown = cli("show", "found", "--format", "json").stdout
    (table,) = json.loads(shown)
    assert [cell["value"] for cell in table["rows"][0]["cells"][:2]] == [found, found + 1]
    assert "0.5 GiB of memory" in shown
    _resumed_and_refused(cli, workshop, len(trials))


def _resumed_and_refused(cli, workshop, trials):
    """A finished search is not made again, nor one under another limit mixed into it."""
    assert cli("run", "--resume", "-o", "found", "--trust").returncode == 0
    assert len(records(workshop / "found")) == trials
    other = cli("run", "--model", MODEL, *LIMIT, "--set", "limits.memory_gib=1", "--find", "max-batch", "--resume",
                "-o", "found")  # fmt: skip
    assert other.returncode == 2 and "limits: " in other.stderr


def test_an_error_is_no_answer_and_is_told_as_what_it_is(cli, workshop):
    done = cli("run", "--model", "python:fakes.py:by_the_item_or_not", *LIMIT, "--find", "max-batch", "-o", "run")
    assert done.returncode == 0
    assert "≥ 4" in done.stdout
    assert "batch 8 failed for another reason than memory: error: ValueError: at most four" in done.stdout
    assert [r["case"]["axes"]["batch"] for r in records(workshop / "run")] == [1, 2, 4, 8]
    assert cli("run", "--resume", "-o", "run", "--trust", "--strict").returncode == 1


def test_a_flag_that_is_wrong_is_named_and_nothing_is_written(cli, workshop):
    done = cli("run", "--model", MODEL, "--find", "max-batch", "--batch", "8", "--find-most", "4", "-o", "run")
    assert done.returncode == 2
    assert "--find-most: find_most 4 is less than the 8 that the search starts from" in done.stderr
    assert not (workshop / "run").exists()


def test_a_dry_run_lists_the_lines_and_writes_nothing(cli, workshop):
    done = cli("run", "--model", MODEL, "--seconds", "1,10", "--find", "max-batch", "--find-most", "64", "--dry-run")
    assert done.returncode == 0
    assert done.stdout.count("search for the largest batch between 1 and 64") == 2
    assert not (workshop / "runs").exists()
