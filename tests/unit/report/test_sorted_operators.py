"""The table of operators in the order that was asked for, so many rows of it, and what is refused."""

from pathlib import Path

import pytest
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Measurement
from speechmeter.report import choose

OWN_S = {"aten::mm": 0.5, "aten::add": 0.3, "aten::copy_": 0.2}
TOTAL_S = {"aten::mm": 0.5, "aten::add": 0.9, "aten::copy_": 0.2}
CALLS = {"aten::mm": 2.0, "aten::add": 7.0, "aten::copy_": 30.0}
BYTES = {"aten::mm": 64.0, "aten::add": -128.0, "aten::copy_": 0.0}
OWN_BYTES = {"aten::mm": 0.0, "aten::add": 1.0, "aten::copy_": 2.0}


def record(**changes):
    own = [
        Measurement.of(metrics.TIME_OPERATOR, [s], scope=f"op:{name}", notes={"kind": "x", "calls": CALLS[name]})
        for name, s in OWN_S.items()
    ]
    others = [
        Measurement.of(metric, [values[name]], scope=f"op:{name}")
        for metric, values in (
            (metrics.TIME_OPERATOR_TOTAL, TOTAL_S),
            (metrics.MEMORY_OPERATOR, BYTES),
            (metrics.MEMORY_OPERATOR_OWN, OWN_BYTES),
        )
        for name in OWN_S
    ]
    case = make_case(meters=("operators",), **changes)
    return make_record(case, Measurement.of(metrics.TIME_OPERATOR, [1.0], notes={"calls": 1}), *own, *others)


def names(table):
    return [row.labels[1] for row in table.rows]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("own-time", ["aten::mm", "aten::add", "aten::copy_"]),
        ("total-time", ["aten::add", "aten::mm", "aten::copy_"]),
        ("calls", ["aten::copy_", "aten::add", "aten::mm"]),
        ("memory", ["aten::mm", "aten::copy_", "aten::add"]),
        ("own-memory", ["aten::copy_", "aten::add", "aten::mm"]),
        ("name", ["aten::add", "aten::copy_", "aten::mm"]),
        (None, ["aten::mm", "aten::add", "aten::copy_"]),
    ],
)
def test_operators_come_in_the_order_that_was_asked_for(sort, order):
    (table,) = choose.tables([record()], "operators", sort=sort, limit=20)
    assert names(table) == order
    figures = {row.labels[1]: [cell.text() for cell in row.cells] for row in table.rows}
    assert figures["aten::add"] == ["300 ms", "0.300", "900 ms", "7.00", "1.00 B", "-128 B"]
    assert not any("not listed" in note for note in table.notes)


def test_each_case_has_so_many_rows_and_the_table_says_how_many_are_left_out():
    (table,) = choose.tables([record(batch=1), record(batch=2)], "operators", sort="calls", limit=1)
    assert names(table) == ["aten::copy_", "aten::copy_"]
    left = [note for note in table.notes if note.startswith("not listed: 2 operators of ")]
    assert len(left) == 2
    assert all(note.endswith("; --limit 3 lists all.") for note in left)


def test_without_order_and_limit_the_table_is_what_it_was():
    (table,) = choose.tables([record()], "operators")
    assert table.title == "operators"
    assert table.columns == ("time in operator", "share of operator time", "FLOPs", "element operations")


def test_a_run_without_the_figure_is_refused_with_those_that_it_has():
    counted = make_record(
        make_case(meters=("flops",)),
        Measurement.of(metrics.FLOPS, [3.0], scope="op:aten::mm"),
        Measurement.of(metrics.FLOPS, [5.0], scope="op:aten::bmm"),
    )
    with pytest.raises(InputError, match=r"`sort`: this run has no calls of operators; choose from: flops, name; or"):
        choose.tables([counted], "operators", sort="calls")
    (table,) = choose.tables([counted], "operators", limit=5)
    assert names(table) == ["aten::bmm", "aten::mm"]


EXAMPLE = str(Path(__file__).parents[3] / "examples/runs/cpu-grid")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--metric", "operators", "--sort", "cost"),
            "--sort: operators cannot be sorted by 'cost'; choose from: own-time, total-time, calls, own-memory, "
            "memory, flops, name",
        ),
        (("--metric", "operators", "--limit", "0"), "--limit: a table cannot have 0 rows; give a number of at least 1"),
        (("--metric", "modules", "--sort", "calls"), "--sort: it applies to the view operators only"),
        (("--limit", "3"), "--limit: it applies to the view operators only; add --metric operators"),
    ],
)
def test_what_cannot_be_sorted_is_refused(command, monkeypatch, flags, message):
    monkeypatch.setattr("gc.disable", lambda: None)  # it is meant for a process that ends with the command
    done = command("show", EXAMPLE, *flags)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_the_command_sorts(command, monkeypatch):
    monkeypatch.setattr("gc.disable", lambda: None)
    done = command("show", EXAMPLE, "--metric", "operators", "--sort", "flops", "--limit", "1", "--format", "csv")
    assert done.code == 0, done.err
    assert "operators by flops" in done.out
