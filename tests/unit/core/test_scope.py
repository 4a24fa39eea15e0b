"""Scopes: the parts of every kind of text, and that no text raises or changes."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from speechmeter.core import scope as scopes
from speechmeter.core.metrics import LATENCY
from speechmeter.core.scope import LABEL, MODULE, OPERATOR, OWN, STAGE, TOTAL, WITHIN, Scope
from speechmeter.core.types import Measurement

KINDS = [value for value in vars(scopes).values() if isinstance(value, str) and value.endswith(":")]
WHOLE = [scopes.TOTAL, scopes.UNATTRIBUTED, scopes.EVERYTHING, scopes.ALL_ROWS]


def test_the_texts_in_records_are_these():
    assert sorted(KINDS) == sorted(
        [
            "stage:",
            "module:",
            "label:",
            "op:",
            "process:",
            "dtype:",
            "kind:",
            "sensor:",
            "split:",
            "busy:",
            "part:",
            "within:",
            "own:",
            "class:",
            "row:",
            "outside:",
        ]
    )
    assert WHOLE == ["total", "unattributed", "everything", "all rows"]
    assert (scopes.OTHER_MODULES, scopes.LOADING) == ("outside:modules", "stage:load")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", ["encoder.layers.0", "aten::mm", "label:x", "a@b", ""])
def test_a_kind_and_a_path_make_a_text_that_is_taken_apart_again(kind, path):
    made = Scope.of(kind, path)
    read = Scope.parse(kind + path)
    assert (read.kind, read.path, str(read)) == (kind, path, kind + path)
    assert made == read


@pytest.mark.parametrize("text", WHOLE)
def test_a_text_without_a_colon_is_its_own_kind(text):
    assert (Scope.parse(text).kind, Scope.parse(text).path) == (text, "")


def test_a_scope_inside_another_has_its_own_kind_and_a_module_called_label_is_no_label():
    inner = Scope.parse("within:label:x").inner
    assert (inner.kind, inner.path) == (LABEL, "x")
    assert Scope.of(WITHIN, inner) == "within:label:x"
    assert Scope.parse("within:label").inner.kind != LABEL


def test_a_prefix_is_taken_off_its_own_kind_alone():
    assert Scope.parse("stage:loss").without(STAGE) == "loss"
    assert Scope.parse("total").without(STAGE) == "total"
    assert Scope.parse("module:stage:x").without(STAGE) == "module:stage:x"


def test_only_what_is_within_has_an_own_part():
    assert Scope.parse("within:label:x").own == "own:label:x"
    assert Scope.parse("label:within:x").own == "label:within:x"
    assert Scope.parse("own:x").own.kind == OWN


@pytest.mark.parametrize("way", scopes.DIRECTIONS)
@pytest.mark.parametrize("text", ["everything", "within:encoder.layers.*", "within:label:a@b", "all rows"])
def test_a_direction_is_added_and_taken_off(text, way):
    one_way = Scope.parse(text).in_direction(way)
    assert one_way == f"{text}@{way}"
    assert (one_way.direction, one_way.all_directions) == (way, text)
    assert (Scope.parse(text).direction, Scope.parse(text).all_directions) == ("", text)


def test_a_word_alone_is_no_direction():
    assert Scope.parse("forward").direction == ""


def test_an_operator_works_for_a_module():
    operator = Scope.of(OPERATOR, "aten::mm")
    placed = operator.in_module("encoder.layers.0")
    assert placed == "op:aten::mm@encoder.layers.0"
    assert placed.operator_and_module() == (operator, "encoder.layers.0")
    assert (placed.is_in_module, operator.is_in_module) == (True, False)
    assert operator.operator_and_module() == (operator, "")
    assert not Scope.of(MODULE, "a@b").is_in_module


@given(st.text())
@example("total")
@example(":")
@example("module:")
@example("op:@")
@example("@forward")
@example("within:label:x@backward")
def test_any_text_is_a_scope_and_stays_as_it_is(text):
    scope = Scope.parse(text)
    assert str(scope) == text == scope.kind + scope.path
    assert type(str(scope)) is str
    assert hash(scope) == hash(text)
    operator, module = scope.operator_and_module()
    assert text in (operator, operator.in_module(module))
    assert text == (scope.all_directions.in_direction(scope.direction) if scope.direction else scope.all_directions)
    assert Scope.of(scope.kind, scope.inner) == text


def test_a_record_holds_a_plain_text():
    made = [Measurement.of(LATENCY, [1.0], scope=Scope.of(STAGE, "model")), Measurement.absent(LATENCY, "why")]
    assert [type(m.scope) for m in made] == [str, str]
    assert [json.loads(json.dumps(m.to_json()))["scope"] for m in made] == ["stage:model", TOTAL]
