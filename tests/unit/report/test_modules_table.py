"""The tables of modules in every format: a tree with bars, by class, and in the plan's rows beside published shares."""

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import make_case, make_record
from golden_files import check_golden

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Measurement
from speechmeter.report import choose
from speechmeter.report.text import json_text

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


def rows(metric, **held):
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
        row("label:x", 0.002, metric=metric, **held),
    ]


def case(device):
    made = make_case("conformer", device=device, meters=("latency", "flops", "peaks", "modules"))
    return replace(made, subject=replace(made.subject, options=OPTIONS))


RECORDS = [
    make_record(
        case("cpu"),
        *rows(metrics.TIME_MODULE, labels=[{"in": ["x"]}]),
        Measurement.absent(metrics.MEMORY_MODULE, "no peak on a CPU"),
    ),
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


def test_golden():
    check_golden(GOLDEN / "module-times.json", json_text(choose.tables(RECORDS, "modules")))


def test_unattributed_is_always_listed_and_small_modules_are_on_demand():
    tree = next(table for table in choose.tables(RECORDS[:1], "modules") if table.title.startswith("modules"))
    names = [row.labels[0].strip() for row in tree.rows]
    assert "unattributed" in names
    assert "tiny" not in names
    asked = choose.tables(RECORDS[:1], "modules", wanted="*tiny")
    assert [[row.labels[0].strip() for row in table.rows] for table in asked] == [["call", "tiny", "unattributed"]]


def test_the_rows_of_a_plan_come_first_and_labels_before_the_tree():
    titles = [table.title.partition(" · ")[0] for table in choose.tables(RECORDS[:1], "modules")]
    assert titles == ["rows", "labels", "modules", "by class"]
    (labels,) = choose.tables(RECORDS[:1], "modules", wanted="x")
    assert [row.labels[0] for row in labels.rows] == ["call", "label:x"]


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        ("layer", "'layers.*'"),
        ("encoder", "'enc'"),
        ("zzz", "names in this run: 'enc'"),
        ("en.layers.*", "'enc.layers.*'"),
    ],
)
def test_a_filter_that_fits_nothing_is_refused_with_the_nearest_names(wanted, offered):
    with pytest.raises(InputError, match=r"`filter`") as refused:
        choose.tables(RECORDS, "modules", wanted=wanted)
    assert offered in str(refused.value)
    assert f"no module or label matches {wanted!r}" in str(refused.value)


def test_the_command_ends_with_2_where_a_filter_fits_nothing(monkeypatch, capsys):
    from speechmeter.cli.main import main

    run = Path(__file__).parents[3] / "examples/runs/h200-conformer-modules"
    monkeypatch.setattr("gc.disable", lambda: None)  # it is meant for a process that ends with the command
    for wanted, code in (("layers*", None), ("lyers*", 2)):
        monkeypatch.setattr("sys.argv", ["speechmeter", "show", str(run), "--metric", "modules", "--filter", wanted])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (code, code or 0), wanted
    assert "'layers.*'" in capsys.readouterr().err


def test_a_filter_holds_for_modules_that_were_only_counted_too():
    counted = make_record(
        make_case(meters=("flops",)),
        Measurement.of(metrics.FLOPS, [3.0], scope="module:enc"),
        Measurement.of(metrics.FLOPS, [2.0], scope="module:enc.att"),
    )
    (table,) = choose.tables([counted], "modules", wanted="*att")
    assert [row.labels[1] for row in table.rows] == ["enc.att"]
    with pytest.raises(InputError, match=r"`filter`"):
        choose.tables([counted], "modules", wanted="decoder*")


def test_what_was_recorded_beside_modules_is_said():
    def one(*recorded, number=0):
        total = Measurement.of(
            metrics.TIME_MODULE, [0.1], notes={"calls": 1, "recorded": ["CPU", "modules", *recorded]}
        )
        return make_record(case("cpu"), total, *rows(metrics.TIME_MODULE)[1:], round=number)

    def said(*records):
        tree = next(table for table in choose.tables(records, "modules") if table.title.startswith("modules"))
        return [note for note in tree.notes if "recorded" in note]

    assert said(one()) == []
    assert said(one("allocations", "shapes")) == [
        "recorded with allocations, shapes, which makes calls slower, above all small operators."
    ]
    assert said(one(), one("allocations", number=1))[-1].startswith(
        "the rounds were recorded with different profiler options"
    )


def test_what_is_unavailable_says_why():
    (table,) = choose.tables(RECORDS[2:], "modules")
    assert any("the whole model is compiled" in note for note in table.notes)
