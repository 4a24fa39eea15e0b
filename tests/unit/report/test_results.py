"""What a query gave, in every format."""

import csv
import datetime
import io
import json
import math
from pathlib import Path

import pytest
from golden_files import check_golden

from speechmeter.report.escaping import json_of
from speechmeter.report.results import FORMATS, result_table

GOLDEN = Path(__file__).parent / "golden"
RESULT = (
    "SELECT * FROM x",
    ("subject", "axes", "value", "rounds", "when"),
    (
        ("a_b | <c> [d]", {"beam": 1}, 0.123456789, 3, datetime.datetime(2026, 11, 15, 9, 30)),
        ("语音", {"values": [1.0, 2.5]}, -2e-9, 12_000, None),
        ("[first]", None, None, None, None),
    ),
)


@pytest.mark.parametrize("format", ["csv", "json"])
def test_golden(format):
    check_golden(GOLDEN / f"result.{format}", FORMATS[format](*RESULT))


def test_csv_and_json_keep_every_digit():
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](*RESULT))))
    assert float(rows[0]["value"]) == 0.123456789
    assert json.loads(rows[1]["axes"]) == {"values": [1.0, 2.5]}
    data = json.loads(FORMATS["json"](*RESULT))
    assert [row["value"] for row in data] == [0.123456789, -2e-9, None]


def test_words_stand_left_and_numbers_right():
    table = result_table(*RESULT)
    assert (table.labels, table.columns) == (("subject", "axes"), ("value", "rounds", "when"))


@pytest.mark.parametrize("rows", [(), (("x",),), ((1,),)])
def test_a_result_of_any_size_has_every_format(rows):
    for render in FORMATS.values():
        assert "only" in render("t", ("only",), rows) or rows == ()


def test_in_latex_no_row_begins_with_a_bracket_and_no_character_is_special():
    text = FORMATS["latex"](*RESULT)
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert [row[:8] for row in rows if "first" in row] == ["{}[first"]
    assert r"a\_b \textbar{} \textless{}c\textgreater{} [d]" in text
    assert r"$-2\times10^{-9}$" in text


def test_numbers_that_json_does_not_have_are_null():
    text = FORMATS["json"]("SELECT", ("a", "b"), ((float("nan"), [float("inf"), 1.0]),))
    assert json.loads(text, parse_constant=pytest.fail) == [{"a": None, "b": [None, 1.0]}]


def test_json_below_a_depth_is_one_line_for_each_row_and_the_same_data():
    data = [{"rows": [{"cells": [1.5, None]}, {"cells": []}], "empty": [], "of no number": math.inf}]
    text = json_of(data, depth=3)
    assert '      {"cells": [1.5, null]},\n      {"cells": []}\n' in text
    assert json.loads(text) == [{**data[0], "of no number": None}]
