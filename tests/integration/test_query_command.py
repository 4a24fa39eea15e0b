"""`query` and `merge` as commands, on the runs that ship as examples."""

import json
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

EXAMPLE = str(Path(__file__).parents[2] / "examples/runs/accuracy-vs-cost")


def test_a_query_prints_what_show_prints(cli):
    sql = "SELECT subject, value, low, high FROM estimates WHERE metric = 'wer.v1' ORDER BY value"
    asked = cli("query", EXAMPLE, sql, "--format", "json")
    assert asked.returncode == 0, asked.stderr
    rows = json.loads(asked.stdout)
    shown = json.loads(cli("show", EXAMPLE, "--metric", "quality", "--format", "json").stdout)[0]
    cells = {row["labels"][0].split(" · ")[0]: row["cells"][shown["columns"].index("WER")] for row in shown["rows"]}
    assert {row["subject"]: [row["value"], row["low"], row["high"]] for row in rows} == {
        name: [cell["value"], cell["low"], cell["high"]] for name, cell in cells.items()
    }


def test_without_a_query_the_columns_are_listed(cli):
    listed = cli("query", EXAMPLE)
    assert listed.returncode == 0
    assert all(word in listed.stdout for word in ("records", "measurements", "estimates", "environments", "case_id"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((EXAMPLE, "SELECT nope FROM records"), "nope"),
        ((EXAMPLE, "DROP TABLE records"), "one SELECT"),
        (("SELECT 1 AS x",), "no run is named"),
        (("absent", "SELECT 1 AS x"), "no such directory"),
        ((EXAMPLE, "SELECT 1 AS x", "--format", "tabel"), "did you mean 'table'"),
        ((EXAMPLE, "-o", "x.csv"), "there is no query to write"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(cli, words, said):
    refused = cli("query", *words)
    assert (refused.returncode, len(refused.stderr.strip().splitlines())) == (2, 1)
    assert said in refused.stderr


def test_a_run_merged_with_itself_is_itself(workshop, cli):
    merged = cli("merge", EXAMPLE, EXAMPLE, "-o", "both")
    assert merged.returncode == 0, merged.stderr
    assert "12 duplicates left out" in merged.stdout
    assert cli("show", "both", "--format", "csv").stdout == cli("show", EXAMPLE, "--format", "csv").stdout
    again = cli("merge", EXAMPLE, "-o", "both")
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
