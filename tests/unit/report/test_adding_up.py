"""Printed rows add up to the last digit: in the terminal, in every file format, in charts and comparisons."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import cache
from pathlib import Path

import pytest
from noisy_profiles import noisy_rounds
from rich.console import Console

from speechmeter.analysis.compare import verdict
from speechmeter.analysis.family import alone
from speechmeter.analysis.module_tree import tree
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.report import choose
from speechmeter.report.comparison import comparison_table
from speechmeter.report.terminal import draw
from speechmeter.report.text import FORMATS
from speechmeter.store.run_dir import RunDir

EXAMPLE = Path(__file__).parents[3] / "examples/runs/h200-conformer-modules"
RUNS = {"noisy": noisy_rounds(), "one round": noisy_rounds(1, seed=2), "h200": RunDir.existing(EXAMPLE).records()}
each_run = pytest.mark.parametrize("run", RUNS)
each_format = pytest.mark.parametrize("format", ["table", *FORMATS])
FACTORS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "%": 1.0, "": 1.0}
WAYS = ("forward", "backward", "recompute")


@cache
def tables(run, word):
    return choose.tables(RUNS[run], word)


class Printed:
    """A number as it is printed: its value, and how far rounding may have moved it."""

    def __init__(self, text):
        digits, unit = re.match(r"([\d.,]+)\s*(s|ms|µs|ns|%)?", text.replace(r"\textmu{}", "µ")).groups()
        decimals = len(digits.partition(".")[2])
        factor = FACTORS[unit or ""]
        self.value = float(digits.replace(",", "")) * factor
        self.off = 0.5 * 10**-decimals * factor * 1.001


def number(text):
    return Printed("0") if text in ("–", "--", "") else Printed(text)


def assert_sum(parts, whole, where):
    off = whole.off + sum(part.off for part in parts)
    assert abs(sum(part.value for part in parts) - whole.value) <= off, where


def printed(shown, format):
    """(table, its rows as labels and cells by column) of every table, read back from what is printed."""
    if format == "table":
        console = Console(file=io.StringIO(), width=400)
        draw(shown, console)
        lines = [line for line in console.file.getvalue().splitlines() if line.startswith("│")]
        cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    elif format == "markdown":
        lines = [line for line in FORMATS[format](shown).splitlines() if line.startswith("| ")]
        split = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
        heads = {(*table.labels, *table.columns) for table in shown}
        cells = [row for row in split if tuple(row) not in heads]
    elif format == "latex":
        text = FORMATS[format](shown).replace(r"\%", "%")
        body = [
            line for part in re.findall(r"\\midrule\n(.*?)\\bottomrule", text, re.DOTALL) for line in part.splitlines()
        ]
        cells = [[cell.strip() for cell in line.removesuffix(r" \\").split(" & ")] for line in body]
    elif format == "json":
        data = json.loads(FORMATS[format](shown))
        cells = [[*row["labels"], *(cell["text"] for cell in row["cells"])] for one in data for row in one["rows"]]
    else:
        found = list(csv.DictReader(io.StringIO(FORMATS[format](shown))))
        texts = iter(found)
        cells = [[*row.labels, *(next(texts)["text"] for _ in row.cells)] for one in shown for row in one.rows]
    rows = iter(cells)
    for table in shown:
        own = [next(rows) for _ in table.rows]
        count = len(table.labels)
        yield table, [(row[:count], dict(zip(table.columns, row[count:], strict=True))) for row in own]


@each_run
@each_format
def test_times_of_modules_and_their_shares_agree(run, format):
    shown = tables(run, "modules")
    assert {table.title.partition(" ")[0] for table in shown} >= {"modules", "rows"}
    for table, rows in printed(shown, format):
        assert rows
        if table.title.startswith("rows"):
            continue
        ways = [way for way in WAYS if way in table.columns]
        if table.title.startswith(("labels", "modules")):  # the tables by class below it are of the same call
            call = number(rows[0][1]["its own"])
        for labels, cells in rows:
            parts = [number(cells[way]) for way in ways]
            share = number(cells["share"])
            seconds, off = sum(p.value for p in parts), sum(p.off for p in parts)
            expected = share.value / 100 * call.value
            slack = off + share.off / 100 * call.value + share.value / 100 * call.off
            assert abs(seconds - expected) <= slack, (labels, cells)
            if labels[0] in ("call", "unattributed"):
                assert_sum(parts, number(cells["its own"]), labels)


@each_run
@each_format
def test_the_rows_of_a_plan_add_up_in_each_direction(run, format):
    shown = [table for table in tables(run, "modules") if table.title.startswith("rows")]
    assert shown
    for table, rows in printed(shown, format):
        for way in (way for way in WAYS if way in table.columns):
            shares = [number(cells[f"share of {way}"]) for _, cells in rows]  # of what is in no row: nothing
            assert_sum(shares, Printed("100"), (table.title, way))


@each_run
@each_format
def test_the_rows_of_a_plan_and_what_is_outside_of_them_are_the_call(run, format):
    shown = [table for table in tables(run, "modules") if table.title.startswith("rows")]
    assert shown
    for table, rows in printed(shown, format):
        assert rows[-1][0] == ["call"]
        assert_sum([number(cells["share of call"]) for _, cells in rows[:-1]], Printed("100"), table.title)


@pytest.mark.parametrize("run", ["noisy", "one round"])
@each_format
@pytest.mark.parametrize("word", ["split", "coverage", "operators", "stages"])
def test_other_tables_add_up_too(run, format, word):
    shown = tables(run, word)
    assert shown
    for table, rows in printed(shown, format):
        assert rows
        for _, cells in rows:
            if word == "split":
                kinds = {kind: number(cells[kind]) for kind in ("kernel", "copies", "runtime", "CPU", "idle")}
                whole = sum(kind.value for kind in kinds.values())
                idle = sum(kinds[kind].value for kind in ("runtime", "CPU", "idle")) / whole
                assert idle == pytest.approx(number(cells["GPU idle"]).value, rel=0.02)
            if word == "coverage":
                assert_sum([number(cells[kind]) for kind in table.columns[1:]], Printed("1.00"), cells)
        if word == "operators":
            shares = [number(cells["share of operator time"]) for _, cells in rows]
            assert_sum(shares, Printed("1.000"), table.title)
        if word == "stages":
            times = {labels[1]: number(cells["latency"]) for labels, cells in rows}
            inside = [times[name] for name in ("features", "model", "decode")]
            assert_sum(inside, times["total"], times)


@each_run
def test_compared_modules_print_the_times_that_show_prints(run):
    for group in by_case(RUNS[run]).values():
        shown = choose.tables(group, "modules", wanted="*")[-1]
        ways = [shown.columns.index(way) for way in WAYS if way in shown.columns]
        cells = {row.labels[0].strip(): row.cells for row in shown.rows}
        lines = [line for line in tree(group) if line.depth == 0 and line.pattern]
        assert lines
        judged = [verdict(group, group, metrics.TIME_GPU, 0.05, together=False, scope=line.scope) for line in lines]
        for line, row in zip(lines, comparison_table(alone(judged), (), "5%").rows, strict=True):
            base, new, ratio = (cell.text() for cell in row.cells[1:4])
            assert (base, ratio) == (new, "1.000")
            assert_sum([number(cells[line.name][way].text()) for way in ways], number(base), line.name)


@each_run
def test_blocks_of_the_chart_lie_inside_the_block_above_and_fill_the_call(run, tmp_path):
    pytest.importorskip("altair", reason="altair is not installed")
    from report_runs import CPU, write

    from speechmeter.report.charts.modules import figures
    from speechmeter.report.sources import read_sources

    path = EXAMPLE if run == "h200" else write(tmp_path / "run", RUNS[run], CPU)
    (source,) = read_sources([str(path)])
    drawn = figures(source)
    assert drawn
    for figure in drawn:
        tops = [row for row in figure.rows if row["depth"] == 0]
        assert sum(row["end"] - row["start"] for row in tops) == pytest.approx(100, rel=1e-4)
        for row in figure.rows:
            around = [one for one in figure.rows if one["depth"] == row["depth"] - 1 and one["way"] == row["way"]]
            inside = [one for one in around if one["start"] - 1e-3 <= row["start"] and row["end"] <= one["end"] + 1e-3]
            assert inside or row["depth"] == 0, row
