"""Quality beside cost: golden files, the same digits everywhere, imported scores marked."""

import io
import re
from pathlib import Path

from conftest import make_case, make_record
from golden_files import check_golden
from rich.console import Console

from speechmeter.analysis.metric_names import metric_names
from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report import choose
from speechmeter.report.terminal import draw
from speechmeter.report.text import FORMATS

GOLDEN = Path(__file__).parent / "golden"
WORDS = [10.0, 12.0, 8.0, 15.0, 9.0, 11.0, 7.0, 14.0] * 3
IDS = [f"{letter}{copy}" for copy in range(3) for letter in "abcdefgh"]


def system(name, errors, time, **case):
    made = make_case(name, meters=("latency", "quality"), **case)
    errors = errors * 3
    notes = {"normaliser": "english.v1"}
    scored = [
        Measurement.of(metrics.ANSWERED, [float(e < 7) for e in errors], notes={"utterances": IDS}),
        Measurement.of(metrics.WORD_ERRORS, errors, notes=notes),
        Measurement.of(metrics.REFERENCE_WORDS, WORDS, notes=notes),
        Measurement.of(metrics.MEMORY_WEIGHTS, [2**20]),
        Measurement.of(metrics.MEMORY_CPU_TOTAL, [150 * 2**20]),
        Measurement.of(metrics.MEMORY_CPU_LOAD, [140 * 2**20]),
        Measurement.of(metrics.MEMORY_CPU_PEAK, [2**20]),
    ]
    return [
        make_record(
            made,
            Measurement.of(metrics.LATENCY_LOAD, [2.5]),
            Measurement.of(metrics.LATENCY_FIRST, [time * 2]),
            Measurement.of(metrics.LATENCY, [time * scale] * 3),
            Measurement.of(metrics.AUDIO_SECONDS, [1.0]),
            *(scored if round == 0 else ()),
            round=round,
        )
        for round, scale in enumerate((1.0, 1.02, 0.99))
    ]


def outside(name, time):
    records = system(name, [], time)
    kept = tuple(m for m in records[0].measurements if m.metric.startswith(("latency", "audio", "memory")))
    notes = {"low": 4.0, "high": 6.0, "file": "scores.csv"}
    score = Measurement.of(metrics.WER, [5.0], source="imported", notes=notes)
    return [make_record(records[0].case, *kept, score), *records[1:]]


RECORDS = [
    *system("large", [0, 1, 0, 1, 0, 0, 1, 0], 0.5),
    *system("small", [3, 4, 2, 5, 3, 3, 7, 4], 0.05),
    *system("twin", [0, 1, 0, 1, 0, 0, 1, 1], 0.9),
    *system("slow", [4, 5, 3, 6, 4, 4, 7, 5], 0.8),
    *outside("outside", 0.6),
    make_record(
        make_case("ids", meters=("latency", "quality")),
        Measurement.absent(metrics.ANSWERED, "the model's output is token ids, not text, so it cannot be scored"),
    ),
]


def render(format, sci=False):
    tables = choose.tables(RECORDS, "quality")
    if format != "table":
        return FORMATS[format](tables, sci=sci)
    console = Console(file=io.StringIO(), width=400)
    draw(tables, console, sci=sci)
    return console.file.getvalue()


def test_golden():
    check_golden(GOLDEN / "quality.json", render("json"))


def test_all_formats_show_the_same_digits():
    shown = {
        format: re.findall(r"-?\d\.\d\dE[+-]\d\d", render(format, sci=True).replace("$-$", "-"))
        for format in ("table", *FORMATS)
    }
    assert len(set(map(tuple, shown.values()))) == 1, shown
    assert shown["csv"]


def rows(title):
    table = next(t for t in choose.tables(RECORDS, "quality") if t.title == title)
    return {
        tuple(label.split(" ")[0] for label in row.labels): dict(
            zip(table.columns, [cell.text() for cell in row.cells], strict=True)
        )
        for row in table.rows
    }, table


def test_systems_have_scores_costs_and_a_place():
    found, table = rows("quality")
    assert found["large",]["WER"].startswith(f"{100 * 9 / sum(WORDS):.2f} % [")
    assert found["small",]["completeness"].startswith("87.5 %")
    assert found["large",]["on the front"] == "yes"
    assert found["small",]["on the front"] == "yes"
    assert found["slow",]["on the front"] == "no: large, small, outside"
    why = "(the interval of the difference in WER contains 0; intervals of WER overlap)"
    assert found["twin",]["on the front"] == f"not resolvable from large, outside {why}"
    assert any("english.v1" in note for note in table.notes)


def test_an_imported_score_is_marked_and_never_paired():
    found, table = rows("quality")
    assert found["outside",]["WER"] == "5.00 % [4.00, 6.00] imported"
    assert any("read from scores.csv" in note for note in table.notes)
    pairs, _ = rows("differences by pairs")
    assert not any("outside" in pair for pair in pairs)
    assert len(pairs) == 6


def test_what_cannot_be_scored_says_why():
    found, table = rows("quality")
    assert found["ids",]["WER"] == "unavailable"
    assert any("token ids" in note for note in table.notes)


def test_differences_carry_sign_count_and_verdict():
    pairs, _ = rows("differences by pairs")
    found = pairs["large", "small"]
    assert found["ΔWER"].startswith(f"-{100 * (93 - 9) / sum(WORDS):.1f} % [-")
    assert (found["utterances"], found["the first is"]) == ("24", "better")
    assert pairs["large", "twin"]["the first is"] == "not resolvable"


def test_a_run_without_the_meter_says_what_is_missing():
    record = make_record(make_case("m"), Measurement.of(metrics.LATENCY, [1.0]))
    (table,) = choose.tables([record], "quality")
    assert any("needs the meter quality" in note for note in table.notes)
    assert choose.tables([], "quality") == []


def test_a_score_can_be_asked_for_by_its_name():
    assert {"wer", "completeness"} <= set(metric_names(RECORDS))
    assert "bleu" not in metric_names(RECORDS)
    table = choose.tables(RECORDS, "wer")[0]
    assert table.rows[0].cells[0].text() == rows("quality")[0]["large",]["WER"]


def test_the_table_says_how_many_utterances_were_scored():
    found, _ = rows("quality")
    assert (found["large",]["utterances"], found["outside",]["utterances"]) == ("24", "–")
    notes = {"utterances": ["a"], "notes": ["9 of 10 utterances are not scored: they have no reference"]}
    counts = [
        Measurement.of(metrics.ANSWERED, [1.0], notes=notes),
        Measurement.of(metrics.WORD_ERRORS, [1.0]),
        Measurement.of(metrics.REFERENCE_WORDS, [4.0]),
    ]
    few = [make_record(make_case("few", meters=("quality",)), *counts)]
    assert any("few" in note and "9 of 10 utterances" in note for note in choose.tables(few, "quality")[0].notes)
    assert any("9 of 10 utterances" in note for note in choose.tables(few, "wer")[0].notes)
