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


def test_members_of_different_classes_are_not_folded():
    found = folded({"m": "A", "m.0": "Linear", "m.1": "ReLU", "l": "A", "l.0": "X", "l.0.b": "Y", "l.1": "X"})
    assert list(found.values()) == ["m", "m.0", "m.1", "l", "l.*", "l.*.b", "l.*"]


def test_lines_of_classes_and_rows_come_from_the_record():
    assert [line.name for line in class_lines([record()])] == ["Encoder", "Layer", "Linear"]
    assert [line.scope for line in row_lines([record()])] == ["row:attention", "row:rest"]


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
