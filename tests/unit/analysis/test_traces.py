"""Holding traces against each other: what was planted is found, and nothing else."""

import pytest

from speechmeter.analysis.traces import trace_diff
from speechmeter.core.traces import Trace


def op(name, start, length, cat="cpu_op", **args):
    return {"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": args}


def step(number, start, length):
    return op(f"ProfilerStep#{number}", start, length, cat="user_annotation")


BASE = [step(0, 0, 1000), op("aten::mm", 10, 200), op("aten::relu", 300, 100)]


def test_traces_that_are_alike_have_no_change():
    assert trace_diff(Trace(events=BASE), Trace(events=BASE)).changes == ()


def test_one_more_call_is_named_with_its_module():
    extra = [op("net.head", 500, 300, cat="user_annotation", module="net.head"), op("aten::mm", 510, 150)]
    module, change = trace_diff(Trace(events=BASE), Trace(events=[*BASE, *extra])).changes
    assert (module.name, module.kind, module.what) == ("net.head", "module", "only in B")
    assert (change.name, change.kind, change.what, change.calls, change.where) == (
        "aten::mm",
        "operator",
        "calls",
        (1, 2),
        (("net.head", 1),),
    )
    assert change.own_s == pytest.approx((200e-6, 350e-6))


def test_traces_of_different_lengths_are_compared_by_step():
    twice = [*BASE, step(1, 2000, 1000), op("aten::mm", 2010, 200), op("aten::relu", 2300, 100)]
    found = trace_diff(Trace(events=BASE), Trace(events=twice))
    assert found.steps == (1, 2)
    assert found.changes == ()


def test_time_counts_from_the_smallest_effect_on():
    slower = [step(0, 0, 1000), op("aten::mm", 10, 215), op("aten::relu", 300, 100)]
    assert trace_diff(Trace(events=BASE), Trace(events=slower)).changes == ()
    (change,) = trace_diff(Trace(events=BASE), Trace(events=slower), min_effect=0.05).changes
    assert change.more_s == pytest.approx(15e-6)


def test_changes_below_a_thousandth_of_a_step_are_left_out():
    small = [*BASE, op("aten::t", 600, 0.2)], [*BASE, op("aten::t", 600, 0.9)]
    assert trace_diff(*(Trace(events=events) for events in small)).changes == ()


def test_kernels_are_told_from_operators():
    with_kernel = [*BASE, op("gemm", 50, 20, cat="kernel"), op("Memcpy HtoD", 80, 5, cat="gpu_memcpy")]
    found = trace_diff(Trace(events=BASE), Trace(events=with_kernel)).changes
    assert {(change.name, change.kind) for change in found} >= {("gemm", "kernel"), ("Memcpy HtoD", "kernel")}


def test_what_one_side_alone_has_comes_first_then_calls_then_time():
    mine = [op("is this faster (?)", 500, 20, cat="user_annotation"), op("aten::erf", 505, 1)]
    slow, again = op("aten::relu", 300, 190), op("aten::mm", 600, 5)
    first = [*BASE, op("aten::tanh", 520, 400)]
    second = [step(0, 0, 1000), op("aten::mm", 10, 200), slow, again, *mine]
    found = trace_diff(Trace(events=first), Trace(events=second)).changes
    assert [(change.name, change.what) for change in found] == [
        ("is this faster (?)", "only in B"),
        ("aten::tanh", "only in A"),
        ("aten::erf", "only in B"),
        ("aten::mm", "calls"),
        ("aten::relu", "time"),
    ]


def test_the_time_of_a_range_alone_and_marks_of_calls_are_no_change():
    def ranges(length, number):
        return [
            op("mine", 500, length, cat="user_annotation"),
            op("net", 700, length, cat="user_annotation", module="net"),
            op(str(number), 5, 900, cat="user_annotation", call=str(number)),
        ]

    assert trace_diff(Trace(events=[*BASE, *ranges(10, 0)]), Trace(events=[*BASE, *ranges(150, 7)])).changes == ()


def test_several_traces_of_one_side_are_added_up_by_step():
    later = [dict(event, ts=event["ts"] + 5000) for event in BASE]
    found = trace_diff([Trace(events=BASE), Trace(events=later)], Trace(events=[*BASE, op("aten::mm", 600, 50)]))
    assert found.steps == (2, 1)
    (change,) = found.changes
    assert (change.name, change.calls) == ("aten::mm", (1, 2))
    assert change.own_s == pytest.approx((200e-6, 250e-6))
