"""Rows of modules put together: what is inside, what repeats, what a plan calls a row. Sums are by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.compare import verdict
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.module_tree import class_lines, folded, row_lines, tree
from speechmeter.analysis.modules import find, fits_pattern, published_shares, time_metric, within
from speechmeter.core import metrics
from speechmeter.core.types import Measurement

ROWS = {"attention": "enc.layers.*.att", "rest": ["enc", "label:log"]}


def row(scope, forward, backward=(), **notes):
    apart = {"forward": forward, **({"backward": backward} if backward else {})}
    values = [sum(values) for values in zip(*apart.values(), strict=True)]
    return Measurement.of(metrics.TIME_MODULE, values, scope=scope, notes={"calls": 1.0, **apart, **notes})


def record(scale=1.0, **more):
    rows = [
        Measurement.of(metrics.TIME_MODULE, [31.0, 62.0]),
        row("unattributed", [1.0, 2.0]),
        row("module:enc", [2.0, 4.0], [1.0, 2.0], **{"class": "Encoder"}),
        row("module:enc.layers.0", [1.0, 2.0], [1.0, 2.0], **{"class": "Layer"}),
        row("module:enc.layers.0.att", [3.0 * scale, 6.0 * scale], [4.0, 8.0], **{"class": "Linear"}),
        row("module:enc.layers.1", [1.0, 2.0], [1.0, 2.0], **{"class": "Layer"}),
        row("module:enc.layers.1.att", [3.0 * scale, 6.0 * scale], [5.0, 10.0], **{"class": "Linear"}),
        row("label:mask", [2.0, 4.0], inside={"enc.layers.0": {"forward": [0.5, 1.0]}, "enc": {"forward": [1.5, 3.0]}}),
        row("label:log", [4.0, 8.0]),
        row("stage:loss", [1.0, 2.0], [1.0, 2.0]),
    ]
    case = make_case()
    case = replace(case, subject=replace(case.subject, options={"rows": ROWS, **more}))
    return make_record(case, *rows)


def seconds(scope):
    found = find(record(), metrics.TIME_MODULE, scope)
    return None if found is None else found.values


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("within:enc", (24.0, 48.0)),  # its rows and the label that was opened inside
        ("within:enc.layers.*", (19.5, 39.0)),
        ("within:enc.layers.1", (10.0, 20.0)),
        ("own:enc.layers.*", (4.0, 8.0)),
        ("within:enc.layers.*.att@backward", (9.0, 18.0)),
        ("class:Linear@forward", (6.0, 12.0)),
        ("row:attention", (15.0, 30.0)),
        ("row:rest", (13.0, 26.0)),  # enc without attention, and a label by its name
        ("everything", (31.0, 62.0)),
        ("everything@backward", (13.0, 26.0)),
        ("label:log@forward", (4.0, 8.0)),
        ("within:decoder", None),
    ],
)
def test_rows_are_put_together(scope, expected):
    assert seconds(scope) == expected


def test_shares_are_of_the_call_and_those_of_rows_of_their_direction():
    records = [record()]
    share = lambda scope: estimate(records, metrics.MODULE_SHARE, scope).value  # noqa: E731
    assert share("within:enc") == pytest.approx(100 * 24 / 31)
    assert share("row:attention@backward") == pytest.approx(100 * 9 / 12)
    assert share("row:rest@backward") == pytest.approx(100 * 3 / 12)


def test_calls_of_a_folded_layer_are_those_of_all_of_them():
    assert estimate([record()], metrics.MODULE_CALLS, "within:enc.layers.*").value == 2
    assert estimate([record()], metrics.MODULE_CALLS, "everything") is None


def test_the_tree_folds_layers_and_always_ends_with_what_nobody_was_given():
    lines = tree([record()])
    assert [(line.depth, line.name) for line in lines] == [
        (0, "enc"),
        (1, "layers.*"),
        (2, "att"),
        (0, "label:mask"),
        (0, "label:log"),
        (0, "stage:loss"),
        (0, "unattributed"),
    ]
    assert [line.name for line in tree([record()], "*.att")] == ["att", "unattributed"]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("layers.*", ["layers.*", "att"]),  # as it is printed, and what is inside
        ("layers*", ["layers.*", "att"]),
        ("att", ["att"]),
        ("at*", ["att"]),
        ("layers.*.att", ["att"]),
        ("enc.layers.*", ["layers.*", "att"]),
        ("enc.layers.*.att", ["att"]),
        ("enc", ["enc"]),
        ("enc*", ["enc", "layers.*", "att"]),
        ("label:mask", ["label:mask"]),
        ("mask", ["label:mask"]),
        ("label:*", ["label:mask", "label:log"]),
        ("stage:loss", ["stage:loss"]),
        ("blocks*", []),
    ],
)
def test_a_filter_fits_the_printed_name_and_the_whole_path(wanted, names):
    assert [line.name for line in tree([record()], wanted)] == [*names, "unattributed"]


def test_members_of_different_classes_are_not_folded():
    found = folded({"m": "A", "m.0": "Linear", "m.1": "ReLU", "l": "A", "l.0": "X", "l.0.b": "Y", "l.1": "X"})
    assert list(found.values()) == ["m", "m.0", "m.1", "l", "l.*", "l.*.b", "l.*"]


def test_lines_of_classes_and_rows_come_from_the_record():
    assert [line.name for line in class_lines([record()])] == ["Encoder", "Layer", "Linear"]
    assert [line.scope for line in row_lines([record()])] == [
        "row:attention",
        "row:rest",
        "outside:modules",
        "outside:label:mask",
        "outside:label:log",
        "outside:stage:loss",
        "unattributed",
    ]


def test_rows_and_what_is_outside_of_them_are_the_call():
    found = [find(record(), metrics.TIME_MODULE, line.scope) for line in row_lines([record()])]
    assert [sum(m.values[call] for m in found if m is not None) for call in range(2)] == [31.0, 62.0]
    assert seconds("outside:stage:loss") == (2.0, 4.0)
    assert seconds("outside:modules") is None


def labelled(**more):
    """A module in two labels by turns, one in one label, and a label inside the other."""
    both = [{"in": ["outer"], "forward": [1.0, 1.0]}, {"in": ["other"], "forward": [2.0, 2.0], "backward": [1.0, 1.0]}]
    rows = [
        row("module:m", [3.0, 3.0], [1.0, 1.0], labels=both, **{"class": "M"}),
        row("module:m.sub", [5.0, 5.0], labels=[{"in": ["outer", "inner"]}], **{"class": "S"}),
        row("module:n", [7.0, 7.0], **{"class": "N"}),
        row("label:outer", [10.0, 10.0], labels=[{"in": ["outer"]}]),
        row("label:other", [20.0, 20.0], labels=[{"in": ["other"]}]),
        row("label:inner", [30.0, 30.0], labels=[{"in": ["outer", "inner"], "module": "m"}]),
        row("unattributed", [0.5, 0.5]),
    ]
    case = make_case()
    return make_record(replace(case, subject=replace(case.subject, options=more)), *rows)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("within:label:outer", 1.0 + 5.0 + 10.0 + 30.0),
        ("within:label:inner", 5.0 + 30.0),
        ("within:label:other@forward", 2.0 + 20.0),
        ("within:label:other@backward", 1.0),
        ("own:label:outer", 10.0),
        ("label:outer", 10.0),
        ("within:m", 4.0 + 5.0 + 30.0),
        ("own:m", 4.0),
        ("everything", 3.0 + 1.0 + 5.0 + 7.0 + 10.0 + 20.0 + 30.0 + 0.5),
    ],
)
def test_a_label_holds_what_is_inside_it(scope, expected):
    assert find(labelled(), metrics.TIME_MODULE, scope).values == (expected, expected)


def test_a_row_of_a_plan_may_be_a_label_with_all_that_it_holds():
    rows = {"inside": "label:inner", "around": "label:outer", "rest": "m"}
    found = labelled(rows=rows)
    times = {line.scope: find(found, metrics.TIME_MODULE, line.scope) for line in row_lines([found])}
    assert {scope: m.values[0] for scope, m in times.items() if m is not None} == {
        "row:inside": 5.0 + 30.0,
        "row:around": 1.0 + 10.0,
        "row:rest": 3.0,
        "outside:modules": 7.0,
        "outside:label:other": 20.0,
        "unattributed": 0.5,
    }


def test_labels_of_earlier_records_are_shown_by_their_own_time_and_never_compared_with_whole_ones():
    old, new = record(), labelled()
    scopes = {line.name: line.scope for one in (old, new) for line in tree([one]) if line.is_label}
    assert scopes["label:mask"] == "label:mask"
    assert scopes["label:outer"] == "within:label:outer"
    assert find(old, metrics.TIME_MODULE, "within:label:mask") is None
    assert estimate([old], metrics.MODULE_SHARE, "label:mask").value == pytest.approx(100 * 2 / 31)
    assert estimate([new], metrics.MODULE_CALLS, "within:label:outer").value == 1


def test_a_star_is_one_part_of_a_path():
    assert fits_pattern("a.0.b", "a.*.b")
    assert not fits_pattern("a.0.c.b", "a.*.b")
    assert within("a.0.b.c", "a.*.b")
    assert not within("a.0", "a.*.b")


def test_mfu_of_a_module_is_its_arithmetic_over_its_share_of_an_unprofiled_call():
    extra = (
        Measurement.of(metrics.LATENCY, [62.0]),
        Measurement.of(metrics.PEAK_FLOPS, [1000.0]),
        Measurement.of(metrics.FLOPS, [1000.0], scope="module:enc"),
        Measurement.of(metrics.FLOPS_BACKWARD, [2000.0], scope="module:enc"),
    )
    one = record()
    one = replace(one, measurements=(*one.measurements, *extra))
    assert estimate([one], metrics.MODULE_MFU, "within:enc").value == pytest.approx(3000 / 48 / 1000)


def test_the_gpus_time_is_taken_where_modules_have_it():
    one = record()
    assert time_metric([one]) == metrics.TIME_MODULE
    total = Measurement.of(metrics.TIME_GPU, [1.0])  # the operators' meter has that alone
    assert time_metric([replace(one, measurements=(*one.measurements, total))]) == metrics.TIME_MODULE
    own = replace(total, scope="module:enc")
    assert time_metric([replace(one, measurements=(*one.measurements, own))]) == metrics.TIME_GPU


def test_published_shares_are_of_their_sum():
    assert published_shares(record(published={"forward_ms": {"a": 30, "b": 10}})) == {"a": 75.0, "b": 25.0}
    assert published_shares(record()) == {}


def test_a_slower_module_is_told_from_those_that_are_the_same():
    base, new = ([replace(record(scale), round=n, sequence=n) for n in range(5)] for scale in (1.0, 2.0))
    judged = {
        scope: verdict(base, new, metrics.TIME_MODULE, 0.05, together=False, scope=scope)
        for scope in ("within:enc.layers.*.att", "class:Layer")
    }
    assert judged["within:enc.layers.*.att"].word == "SLOWER"
    assert judged["within:enc.layers.*.att"].ratio == pytest.approx(21 / 15)
    assert judged["class:Layer"].word == "SAME"
