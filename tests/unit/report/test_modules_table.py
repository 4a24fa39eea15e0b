"""The tables of modules in every format: a tree with bars, by class, and in the plan's rows beside published shares."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import make_case, make_record
from golden_files import check_golden
from rich.console import Console

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report import choose
from speechmeter.report.terminal import draw
from speechmeter.report.text import FORMATS

GOLDEN = Path(__file__).parent / "golden"
OPTIONS = {
    "rows": {"attention": "enc.layers.*.att", "rest": "enc"},
    "published": {"name": "V100", "forward_ms": {"attention": 30, "rest": 10}},
}


def row(scope, forward, backward=0.0, recompute=0.0, metric=metrics.TIME_MODULE, calls=1.0, **notes):
    parts = {"forward": [forward], "backward": [backward], "recompute": [recompute]}
    apart = {name: values for name, values in parts.items() if any(values)}
    value = forward + backward + recompute
    return Measurement.of(metric, [value], scope=scope, notes={"calls": calls, **apart, **notes})


def rows(metric):
    layers = [row(f"module:enc.layers.{n}", 0.001, 0.002, metric=metric, **{"class": "Layer"}) for n in range(2)]
    attention = [
        row(f"module:enc.layers.{n}.att", 0.010, 0.020, 0.010, metric=metric, **{"class": "Linear"}) for n in range(2)
    ]
    return [
        Measurement.of(metric, [0.1]),
        row("unattributed", 0.0, 0.004, calls=0.0, metric=metric),
        row("module:enc", 0.004, 0.004, metric=metric, **{"class": "Encoder"}),
        *layers,
        *attention,
        row("module:enc.tiny", 0.0001, metric=metric, **{"class": "Identity"}),
        row("label:x", 0.002, metric=metric),
    ]


def case(device):
    made = make_case("conformer", device=device, meters=("latency", "flops", "peaks", "modules"))
    return replace(made, subject=replace(made.subject, options=OPTIONS))


RECORDS = [
    make_record(case("cpu"), *rows(metrics.TIME_MODULE), Measurement.absent(metrics.MEMORY_MODULE, "no peak on a CPU")),
    make_record(
        case("cuda"),
        *rows(metrics.TIME_MODULE),
        *rows(metrics.TIME_GPU),
        Measurement.of(metrics.MEMORY_MODULE, [2.0**20], scope="module:enc"),
        Measurement.of(metrics.LATENCY, [0.1]),
        Measurement.of(metrics.FLOPS, [1e9], scope="module:enc"),
        Measurement.of(metrics.FLOPS_BACKWARD, [2e9], scope="module:enc"),
        Measurement.of(metrics.PEAK_FLOPS, [1e12]),
    ),
    make_record(case("cuda:1"), Measurement.absent(metrics.TIME_MODULE, "the whole model is compiled")),
]


@pytest.mark.parametrize("format", ["table", *FORMATS])
def test_golden(format):
    tables = choose.tables(RECORDS, "modules")
    if format != "table":
        text = FORMATS[format](tables)
    else:
        console = Console(file=io.StringIO(), width=180)
        draw(tables, console)
        text = console.file.getvalue()
    check_golden(GOLDEN / f"module-times.{format}.txt", text)


def test_unattributed_is_always_listed_and_small_modules_are_on_demand():
    names = [row.labels[0].strip() for row in choose.tables(RECORDS[:1], "modules")[0].rows]
    assert "unattributed" in names
    assert "tiny" not in names
    asked = choose.tables(RECORDS[:1], "modules", wanted="*tiny")
    assert [[row.labels[0].strip() for row in table.rows] for table in asked] == [["call", "tiny", "unattributed"]]


def test_what_is_unavailable_says_why():
    (table,) = choose.tables(RECORDS[2:], "modules")
    assert any("the whole model is compiled" in note for note in table.notes)
