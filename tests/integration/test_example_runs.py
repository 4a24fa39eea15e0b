"""The run directories that ship as examples: small, readable, free of traces of the machine they were made on."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from speechmeter.api.querying import query
from speechmeter.api.runs import load
from speechmeter.report import choose
from speechmeter.report.terminal import draw
from speechmeter.report.text import FORMATS
from speechmeter.store.merge import merge
from speechmeter.store.run_dir import RunDir

EXAMPLES = Path(__file__).parents[2] / "examples/runs"
RUNS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
LARGEST_BYTES = 500_000
NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")
OF_A_MACHINE = re.compile(
    r"(?<![\w.:/])/(tmp|home|root|work|mnt|Users|opt|var)/|\.pyenv|site-packages|@[\w-]+\.(com|org|net)"
)


def named(path):
    return path.name


def test_there_are_examples():
    expected = {"cpu-grid", "accuracy-vs-cost", "h200-losses", "h200-conformer-modules"}
    assert expected <= set(map(named, RUNS))


@pytest.mark.parametrize("run", RUNS, ids=named)
def test_an_example_has_records_and_every_format_of_its_tables(run):
    made = load(run)
    assert any(record.status == "ok" for record in made.records)
    tables = choose.tables(made.records, None)
    assert any(cell.estimate is not None for table in tables for row in table.rows for cell in row.cells)
    assert all(render(tables) for render in FORMATS.values())


@pytest.mark.parametrize("run", RUNS, ids=named)
def test_every_view_of_an_example_keeps_its_numbers_whole_at_80_and_60_columns(run):
    records = load(run).records
    words = [word for word in choose.WORDS if word != "capacity"]  # which needs bounds that no example has
    for table in [table for word in words for table in choose.tables(records, word)]:
        texts = [text for row in table.rows for text in (*row.labels, *(cell.text() for cell in row.cells))]
        wanted = {number for text in texts for number in NUMBER.findall(text)}
        for width in (80, 60):
            console = Console(file=io.StringIO(), width=width)
            draw([replace(table, notes=())], console)
            assert wanted <= set(NUMBER.findall(console.file.getvalue())), (table.title, width)


@pytest.mark.parametrize("run", RUNS, ids=named)
def test_every_record_names_an_environment_that_is_there(run):
    store = RunDir(run)
    measured = {record.environment for record in store.records() if record.status == "ok"}
    assert measured <= set(store.environments())


@pytest.mark.parametrize("run", RUNS, ids=named)
def test_an_example_is_small_and_tells_nothing_of_its_machine_but_what_it_is(run):
    files = [path for path in run.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST_BYTES
    found = {str(path): OF_A_MACHINE.search(path.read_text(errors="replace")) for path in files}
    assert {path: match.group() for path, match in found.items() if match} == {}


def test_all_examples_merge_and_nothing_is_lost(tmp_path):
    made = merge(RUNS, tmp_path / "all")
    assert made.left_out == ()
    assert len(RunDir(tmp_path / "all").records()) == sum(len(RunDir(run).records()) for run in RUNS)
    assert choose.tables(load(tmp_path / "all").records, "summary")[0].rows


def test_the_losses_of_the_study_are_all_ranked_and_over_its_forty_steps():
    records = load(EXAMPLES / "h200-losses").records
    alone, step = choose.tables(records, None)[:2]
    assert (alone.title, step.title) == ("loss alone", "whole step")
    assert len(step.rows) == 16
    assert "–" not in [row.labels[1] for row in step.rows]
    assert {len(record.find("latency.v1").values) for record in records if record.status == "ok"} == {40}


def test_examples_are_asked_together():
    pytest.importorskip("duckdb")
    counted = dict(query(RUNS, "SELECT run, count(*) FROM records GROUP BY run").rows)
    assert counted == {run.name: len(RunDir(run).records()) for run in RUNS}


def test_the_outputs_of_recognisers_are_kept_utterance_by_utterance():
    files = list((EXAMPLES / "accuracy-vs-cost/artifacts").glob("*/utterances.jsonl"))
    assert len(files) == len({record.case.id for record in load(EXAMPLES / "accuracy-vs-cost").records})
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert len(lines) == 28
