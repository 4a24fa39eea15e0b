"""On events made by hand: what threads, kernels and sequence numbers must come to."""

from __future__ import annotations

import pytest

from speechmeter.meters.recording.attribution import attribute
from speechmeter.meters.recording.events import BACKWARD_SCOPE, USER_SCOPE, CpuEvent, Events, Kernel
from speechmeter.meters.recording.label import CALL, LABEL, MODULE, PARAMETER, STAGE

MAIN, ENGINE = 1, 2


def event(name, start, end, **more):
    return CpuEvent(name=name, start_ns=start, end_ns=end, **{"thread": MAIN, **more})


def figures(call, what="cpu_s"):
    found = {}
    for row in call.rows:
        place = row.owner
        name = place.label or place.module or place.stage or "-"
        found[name, row.direction] = found.get((name, row.direction), 0) + round(getattr(row, what) * 1e9, 3)
    return {key: value for key, value in found.items() if value}


def on_a_gpu():
    """Forward in the caller's thread, backward in the engine's while the caller waits."""
    return (
        event(CALL, 0, 100),
        event(STAGE + "forward", 0, 40),
        event(MODULE + "m", 5, 30),
        event("aten::mm", 10, 20, sequence=3, id=7),
        event("aten::mul", 32, 38, sequence=4, id=8),
        event(STAGE + "backward", 40, 100),
        event("autograd::engine::evaluate_function: B", 50, 70, thread=ENGINE, sequence=3, forward_thread=MAIN),
        event("B", 52, 68, thread=ENGINE, sequence=3, forward_thread=MAIN, scope=BACKWARD_SCOPE, id=9),
        event("autograd::engine::evaluate_function: AccumulateGrad", 80, 90, thread=ENGINE),
        event(PARAMETER + "m", 88, 89, thread=ENGINE),
    )


def test_waiting_for_the_engine_is_not_counted_twice():
    (call,) = attribute(Events(cpu=on_a_gpu()))

    assert figures(call) == {
        ("m", "forward"): 25,
        ("forward", "forward"): 15,
        ("m", "backward"): 30,
        ("-", "backward"): 30,  # 40 to 50, 70 to 80, 90 to 100: nobody's
    }
    assert sum(row.cpu_s for row in call.rows) == pytest.approx(call.wall_s)


def test_kernels_go_to_whoever_ordered_them_and_overlaps_are_split():
    kernels = (
        Kernel(start_ns=30, end_ns=50, launched_by=7),
        Kernel(start_ns=40, end_ns=60, launched_by=8),
        Kernel(start_ns=90, end_ns=96, launched_by=9),
        Kernel(start_ns=97, end_ns=98, launched_by=1234),
    )
    (call,) = attribute(Events(cpu=on_a_gpu(), kernels=kernels))

    assert figures(call, "gpu_s") == {
        ("m", "forward"): 15,
        ("forward", "forward"): 15,
        ("m", "backward"): 6,
        ("-", "forward"): 1,
    }


def test_a_node_belongs_to_the_latest_started_operator_of_its_number():
    cpu = (
        event(MODULE + "outer", 0, 40),
        event("aten::linear", 5, 35, sequence=2),
        event(MODULE + "inner", 10, 30),
        event("aten::mm", 12, 28, sequence=2),
        event("Back", 50, 60, sequence=2, forward_thread=MAIN, scope=BACKWARD_SCOPE),
    )
    (call,) = attribute(Events(cpu=cpu))

    assert figures(call)["inner", "backward"] == 10


def test_numbers_of_another_thread_are_not_confused():
    cpu = (
        event(MODULE + "here", 0, 10),
        event("aten::mm", 1, 9, sequence=5),
        event(MODULE + "there", 0, 10, thread=3),
        event("aten::mm", 2, 9, sequence=5, thread=3),
        event("Back", 50, 60, thread=ENGINE, sequence=5, forward_thread=MAIN, scope=BACKWARD_SCOPE),
    )
    (call,) = attribute(Events(cpu=cpu))

    assert figures(call)["here", "backward"] == 10


def in_engine(name, start, end, **more):
    return event(name, start, end, thread=ENGINE, **more)


def node(name, start, end, sequence, made_in):
    """A node of the backward pass in the engine's thread, whose forward ran in a given one."""
    facts = {"sequence": sequence, "forward_thread": made_in}
    outer = in_engine(f"autograd::engine::evaluate_function: {name}", start, end, **facts)
    return outer, in_engine(name, start + 1, end - 1, scope=BACKWARD_SCOPE, **facts)


def test_a_reentrant_checkpoint_in_the_engines_thread_computes_again_and_runs_a_backward_pass_of_its_own():
    cpu = (
        event(MODULE + "m", 0, 40),
        event("aten::add", 1, 4, sequence=0),
        event("CheckpointFunction", 5, 30, sequence=3),
        event(MODULE + "m.a", 8, 20),
        *node("CheckpointFunctionBackward", 50, 120, 3, MAIN),
        in_engine("aten::detach", 52, 53),
        in_engine("aten::mul", 54, 58, sequence=0),
        in_engine(MODULE + "m.a", 60, 70),
        in_engine("aten::mm", 61, 69, sequence=1),
        *node("MmBackward0", 75, 85, 1, ENGINE),
        *node("MulBackward0", 87, 95, 0, ENGINE),
        in_engine("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 97, 103),
        in_engine(PARAMETER + "m.a", 101, 102),
    )
    (call,) = attribute(Events(cpu=cpu))

    found = figures(call)
    assert found["m", "recompute"] == 4
    assert found["m.a", "recompute"] == 10
    assert found["m.a", "backward"] == 10 + 6
    assert found["m", "backward"] == 70 - 4 - 10 - 10 - 6
    assert sum(found.values()) == 40 + 70


def test_work_between_modules_that_a_node_of_one_of_them_computes_again_is_that_of_the_module_around():
    cpu = (
        event(MODULE + "m", 0, 40),
        event(MODULE + "m.a", 1, 10),
        event("aten::mul", 12, 15, sequence=4),
        event(MODULE + "m.b", 20, 30),
        event("aten::mm", 21, 29, sequence=5),
        *node("MmBackward0", 50, 100, 5, MAIN),
        in_engine(MODULE + "m.a", 52, 60),
        in_engine("aten::mul", 62, 66, sequence=7),
        in_engine(MODULE + "m.b", 70, 80),
        in_engine("aten::mm", 85, 95),
    )
    (call,) = attribute(Events(cpu=cpu))

    found = figures(call)
    assert (found["m", "recompute"], found["m.a", "recompute"], found["m.b", "recompute"]) == (4, 8, 10)
    assert found["m.b", "backward"] == 50 - 4 - 8 - 10


def test_a_backward_pass_that_is_differentiated_is_not_taken_for_work_done_again():
    cpu = (
        event(MODULE + "m", 0, 10),
        event("aten::mul", 1, 9, sequence=1),
        *node("MulBackward0", 20, 40, 1, MAIN),
        in_engine("aten::mul", 22, 38, sequence=2),  # with create_graph=True it is made to be differentiated itself
    )
    (call,) = attribute(Events(cpu=cpu))

    assert figures(call) == {("m", "forward"): 10, ("m", "backward"): 20}


def test_every_marked_call_has_rows_of_its_own_and_what_is_between_has_none():
    def one(number, start):
        return event(f"{CALL}{number}", start, start + 20), event(MODULE + "m", start + 5, start + 15)

    first, second = attribute(Events(cpu=(*one(0, 0), event(MODULE + "m", 30, 40), *one(1, 100))))

    assert figures(first) == figures(second) == {("-", "forward"): 10, ("m", "forward"): 10}


def test_other_peoples_ranges_are_labels_and_torchs_own_are_not():
    cpu = (
        event("ProfilerStep#3", 0, 100, scope=USER_SCOPE),
        event(MODULE + "m", 0, 60),
        event("theirs", 10, 30, scope=USER_SCOPE),
        event(LABEL + "ours", 15, 20, scope=USER_SCOPE),
        event("Torch-Compiled Region: 0/0", 40, 50, scope=USER_SCOPE),
    )
    (call,) = attribute(Events(cpu=cpu))

    assert figures(call) == {
        ("-", "forward"): 40,
        ("m", "forward"): 40,
        ("theirs", "forward"): 15,
        ("ours", "forward"): 5,
    }
    assert {row.owner.module for row in call.rows if row.owner.label} == {"m"}


def test_clocked_parts_of_one_call_are_put_together():
    cpu = (event(CALL + "0", 0, 10), event(MODULE + "outside", 20, 30), event(CALL + "0", 40, 45))
    (call,) = attribute(Events(cpu=cpu))

    assert figures(call) == {("-", "forward"): 15}
    assert call.wall_s == pytest.approx(15e-9)
