"""Golden files for every format, and the same digits in all of them."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest
import report_runs
from conftest import make_case, make_record
from golden_files import check_golden
from rich.console import Console

from speechmeter.analysis.compare import verdict
from speechmeter.analysis.estimate import STATISTICS
from speechmeter.analysis.family import alone
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Measurement
from speechmeter.engine.measure import NOT_COLD
from speechmeter.report import choose
from speechmeter.report.comparison import comparison_json, comparison_table, github
from speechmeter.report.escaping import latex_text
from speechmeter.report.grids import grids
from speechmeter.report.terminal import draw
from speechmeter.report.text import FORMATS, formatted, latex

GOLDEN = Path(__file__).parent / "golden"


def measured(seconds, batch, round=0, scale=1.0, samples=3, **axes):
    case = make_case("wav2vec2-base", seconds=seconds, batch=batch, meters=("latency", "memory", "parameters"), **axes)
    time = 0.1 * seconds * batch * scale
    return make_record(
        case,
        Measurement.of(metrics.LATENCY_LOAD, [2.5], notes={"notes": ["synthetic: random weights"]}),
        Measurement.of(metrics.LATENCY_FIRST, [time * 2]),
        Measurement.of(metrics.LATENCY, [time, time * 1.1, time * 1.2][:samples], notes={"stop": "samples"}),
        Measurement.of(metrics.LATENCY, [time * 0.9], scope="stage:model"),
        Measurement.of(metrics.LATENCY, [0.001], scope="stage:copy", notes={"clocked": False}),
        Measurement.of(metrics.AUDIO_SECONDS, [seconds * batch]),
        Measurement.of(metrics.ITEMS, [batch]),
        Measurement.of(metrics.MEMORY_CPU_TOTAL, [(560 + 34.1 * seconds * batch) * 2**20]),
        Measurement.of(metrics.MEMORY_CPU_LOAD, [548 * 2**20]),
        Measurement.of(metrics.MEMORY_CPU_PEAK, [34.1 * 2**20 * seconds * batch]),
        Measurement.of(metrics.PARAMETERS, [94371712]),
        Measurement.of(metrics.PARAMETERS_TIED, [94371712]),
        Measurement.of(metrics.PARAMETER_BYTES, [377486848]),
        round=round,
    )


def ended(seconds, batch, status, reason):
    case = make_case("wav2vec2-base", seconds=seconds, batch=batch, meters=("latency", "memory", "parameters"))
    return make_record(case, status=status, reason=reason)


RECORDS = [
    measured(1.0, 1),
    measured(1.0, 1, 1, scale=1.05),
    measured(1.0, 1, 2, scale=0.98),
    measured(1.0, 8),
    measured(32.0, 1, samples=2),
    ended(32.0, 4, "oom", "can't allocate memory"),
    ended(32.0, 8, "skipped", "excluded by `triangle`, which skips long audio with a large batch"),
    ended(1.0, 4, "timeout", "over the limit of 60 s, in load"),
]


def render(format, metric, sci=False):
    tables = choose.tables(RECORDS, metric)
    return formatted(tables, format, sci=sci)


@pytest.mark.parametrize("metric", [None, "rtf", "cold-start", "stages", "frontier", "growth"])
def test_golden(metric):
    check_golden(GOLDEN / f"{metric or 'default'}.json", render("json", metric, sci=metric == "rtf"))


def test_latex_names_its_packages_and_has_powers_of_ten():
    assert latex([]).startswith("% needs \\usepackage{booktabs,textcomp}")
    assert latex_text("9.53e-05 ±3%") == r"$9.53\times10^{-5}$ $\pm$3\%"
    assert latex_text("1.23E-01 name-1e-05x v2.1e-05.a") == "1.23E-01 name-1e-05x v2.1e-05.a"


@pytest.mark.parametrize("format", ["table", "markdown", "csv", "latex"])
def test_golden_of_a_format(format):
    check_golden(GOLDEN / f"default.{format}.txt", render(format, None))


def digits(text):
    return re.findall(r"\d\.\d\dE[+-]\d\d", text)


def test_all_formats_show_the_same_digits():
    shown = {format: digits(render(format, "rtf", sci=True)) for format in FORMATS}
    assert len(set(map(tuple, shown.values()))) == 1, shown
    assert shown["csv"]
    assert digits(render("table", "rtf", sci=True)) == shown["csv"]


def test_memory_leads_with_the_whole_process_and_shows_the_growth_second():
    total, growth = choose.tables(RECORDS, "memory")
    assert (total.metric, growth.metric) == (metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK)
    assert any("after loading, before the first call: 548 MiB." in note for note in total.notes)
    shown = [table.metric for table in choose.tables(RECORDS, None)]
    assert metrics.MEMORY_CPU_TOTAL in shown
    assert metrics.MEMORY_CPU_PEAK not in shown


def test_statistics_on_request():
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](choose.tables(RECORDS, "latency", "mean-sd")))))
    samples_ms = [100 * scale * factor for scale in (1, 1.05, 0.98) for factor in (1, 1.1, 1.2)]
    assert rows[0]["text"] == f"{mean(samples_ms):.0f} ms ± {stdev(samples_ms):.2f} ms"
    assert "mean ± standard deviation" in rows[0]["table"]
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](choose.tables(RECORDS, "latency", "p95")))))
    assert rows[0]["text"] == "too few (n=9)"
    assert "p95 needs 59 samples, but there are 9; measure more rounds" in rows[0]["reason"]


def test_compare_shows_the_digits_of_show():
    base, new = [measured(1.0, 1, n, scale=1 + n / 50) for n in range(4)], [measured(1.0, 8, n) for n in range(4)]
    found = verdict(base, new, metrics.LATENCY, 0.05, together=False)
    family = alone([found])
    table = comparison_table(family, [], "5%")
    shown = [choose.tables(records, "latency")[0].rows[0].cells[0].text() for records in (base, new)]
    assert [cell.text() for cell in table.rows[0].cells][1:3] == shown
    data = json.loads(comparison_json(family, []))["verdicts"][0]
    assert [data["base"]["text"], data["new"]["text"]] == shown
    assert all(text in github(table, family) for text in shown)


def test_a_cell_that_failed_says_so():
    rows = list(csv.DictReader(io.StringIO(render("csv", "rtf"))))
    words = {(row["row"], row["column"]): row["text"] for row in rows}
    assert words["32 s", "4"] == "oom"
    assert words["32 s", "8"] == "skipped"
    assert words["1 s", "4"] == "timeout"
    assert words["32 s", "1"].endswith("(n=2)")


def test_json_holds_the_figure_behind_the_text():
    (table,) = json.loads(render("json", "rtf"))
    cell = table["rows"][0]["cells"][0]
    assert cell["value"] == pytest.approx(0.11 * (1.05 * 0.98) ** (1 / 3))
    assert cell["low"] < cell["value"] < cell["high"]
    assert cell["verdict"] == "real-time"


def test_names_are_escaped():
    record = make_record(make_case("a|b_50% [red]x[/red]"), Measurement.of(metrics.LATENCY, [1.0]))
    tables = choose.tables([record], "latency")
    assert r"b\_50\%" in FORMATS["latex"](tables)
    console = Console(file=io.StringIO(), width=140)
    draw(tables, console)
    assert "[red]x[/red]" in console.file.getvalue()


def test_other_varying_axes_make_grids_of_their_own():
    records = [measured(1.0, 1, threads=threads) for threads in (1, 2)]
    titles = [table.title for table in choose.tables(records, "rtf")]
    assert titles == [
        "wav2vec2-base · cpu · threads 1: real-time factor",
        "wav2vec2-base · cpu · threads 2: real-time factor",
    ]


def test_cuda_records_have_grids_of_allocated_and_reserved():
    case = make_case("m", device="cuda", meters=("memory",))
    record = make_record(
        case,
        Measurement.of(metrics.MEMORY_CUDA_ALLOCATED, [2**30]),
        Measurement.of(metrics.MEMORY_CUDA_RESERVED, [2**31]),
    )
    tables = choose.tables([record], "memory")
    assert [t.title for t in tables] == ["m · cuda: peak allocated", "m · cuda: peak reserved"]
    assert [t.rows[0].cells[0].text() for t in tables] == ["1.00 GiB", "2.00 GiB"]


def test_an_unknown_metric_names_the_nearest():
    with pytest.raises(InputError, match="did you mean 'latency'"):
        choose.tables(RECORDS, "latancy")


def test_a_metric_of_an_absent_plug_in_is_shown_from_the_record():
    record = make_record(make_case(), Measurement(metric="depth.v1", unit="m", values=(3.0,)))
    (table,) = choose.tables([record], "depth")
    assert table.rows[0].cells[0].text() == "3.00 m"


def test_a_metric_measured_by_stage_only_has_a_grid_for_each():
    record = make_record(
        make_case("m"), Measurement.of(metrics.LATENCY_FIRST_ITEM, [0.5], scope="stage:decode"), status="ok"
    )
    (table,) = choose.tables([record], "latency_first_item")
    assert table.title == "m · cpu: time to first item, decode"
    assert table.rows[0].cells[0].text() == "500 ms"


@pytest.mark.parametrize("width", [200, 44, 20])
def test_narrow_terminals_fold_tables_without_breaking_a_number(width):
    console = Console(file=io.StringIO(), width=width)
    draw([replace(table, notes=(), caveats=()) for table in choose.tables(RECORDS, "parameters")], console)
    assert max(map(len, console.file.getvalue().splitlines())) <= width
    assert "94,371,712" in console.file.getvalue()


def test_notes_are_one_line_in_a_file_and_wrapped_in_a_terminal():
    (table,) = choose.tables(RECORDS, "parameters")
    file, terminal = (Console(file=io.StringIO(), width=60, force_terminal=forced) for forced in (False, True))
    for console in (file, terminal):
        draw([table], console)
    assert f"  {table.notes[0]}\n" in file.file.getvalue()
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.file.getvalue()).splitlines()
    assert max(map(len, lines)) <= 60
    assert table.notes[0] in " ".join(line.strip() for line in lines)


def test_rows_of_cases_that_differ_in_another_axis_are_told_apart():
    records = [measured(1.0, 1, boundary=boundary) for boundary in ("model", "+features")]
    (table,) = choose.tables(records, "cold-start")
    assert [row.labels[0] for row in table.rows] == [
        "wav2vec2-base · cpu · boundary model · 1 s × 1",
        "wav2vec2-base · cpu · boundary +features · 1 s × 1",
    ]


def test_the_cold_start_lists_the_cases_that_were_started_anew_and_says_so():
    forked = [Measurement.absent(metric, NOT_COLD) for metric in (metrics.LATENCY_LOAD, metrics.LATENCY_FIRST)]
    new = [Measurement.of(metrics.LATENCY_LOAD, [2.0]), Measurement.of(metrics.LATENCY_FIRST, [0.1])]
    steady = Measurement.of(metrics.LATENCY, [0.05])
    records = [
        make_record(make_case("alpha", seconds=seconds), *cold, steady)
        for seconds, cold in ((1.0, new), (2.0, forked), (3.0, forked))
    ]
    (table,) = choose.tables(records, "cold-start")
    assert [row.labels for row in table.rows] == [("alpha · cpu · 1 s × 1",)]
    assert any("measured in new processes only" in note for note in table.notes)
    (whole,) = choose.tables(records[1:], "cold-start")  # of nothing but forked processes
    assert len(whole.rows) == 2


def test_no_records_no_tables():
    assert choose.tables([], "rtf") == []


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_statistic_has_its_words(statistic):
    (table,) = grids(report_runs.grid("alpha"), metrics.LATENCY, statistic=statistic)
    assert ("of all samples" in table.title) == (statistic != "geomean")


def test_a_ratio_of_two_rounds_far_apart_has_no_endless_digits():
    base, new = ([measured(1.0, 1, n, scale=scale) for n, scale in enumerate(scales)] for scales in ((1, 1.2), (1, 90)))
    table = comparison_table(alone([verdict(base, new, metrics.LATENCY, 0.05, together=False)]), [], "5%")
    interval = table.rows[0].cells[4].text()
    assert interval.startswith("0.000 to over 1000")
