"""Stacks by the time of the GPU, on traces made by hand as torch writes them on a machine that has one."""

import pytest

from speechmeter.core.traces import SUFFIX, Trace
from speechmeter.meters.trace import gpu_stacks, stacks, write_files

CPU, STREAM = (1, 1), (0, 7)


def slice_(name, start, length, cat, lane=CPU, **args):
    pid, tid = lane
    return {"ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": start, "dur": length, "args": args}


def launch(start, number, by):
    return slice_("cudaLaunchKernel", start, 3, "cuda_runtime", **{"correlation": number, "External id": by})


def kernel(name, start, length, number, by, cat="kernel"):
    return slice_(name, start, length, cat, STREAM, **{"correlation": number, "External id": by})


FORWARD = [
    slice_("ProfilerStep#0", 0, 100, "user_annotation", **{"External id": 1}),
    slice_("net.first", 10, 60, "user_annotation", module="net.first", **{"External id": 2}),
    slice_("aten::linear", 12, 30, "cpu_op", **{"External id": 3}),
    slice_("aten::addmm", 14, 20, "cpu_op", **{"External id": 4}),
    launch(20, 11, by=4),
    kernel("gemm<a;b>", 200, 500, 11, by=4),
    slice_("aten::relu", 50, 10, "cpu_op", **{"External id": 5}),
    launch(52, 12, by=5),
    kernel("relu", 700, 40, 12, by=5),
]


def test_a_kernel_stands_on_the_code_that_launched_it():
    assert gpu_stacks(FORWARD) == {
        "ProfilerStep#0;net.first;aten::linear;aten::addmm;gemm<a,b>": 500,
        "ProfilerStep#0;net.first;aten::relu;relu": 40,
    }
    assert not any("gemm" in line for line in stacks(FORWARD))  # those are of the CPU


def test_kernels_of_one_stack_are_added_up_and_copies_count():
    more = [
        launch(24, 13, by=4), kernel("gemm<a;b>", 750, 100, 13, by=4),
        slice_("aten::copy_", 62, 5, "cpu_op", **{"External id": 6}), launch(63, 14, by=6),
        kernel("Memcpy HtoD", 900, 25, 14, by=6, cat="gpu_memcpy"),
    ]  # fmt: skip
    found = gpu_stacks([*FORWARD, *more])
    assert found["ProfilerStep#0;net.first;aten::linear;aten::addmm;gemm<a,b>"] == 600
    assert found["ProfilerStep#0;net.first;aten::copy_;Memcpy HtoD"] == 25
    assert sum(found.values()) == 500 + 40 + 100 + 25


def test_the_backward_pass_has_a_frame_for_its_module():
    other_thread = (1, 2)
    work = {"module": "net.first", "direction": "backward"}
    events = [
        slice_("AddmmBackward0", 0, 50, "cpu_op", other_thread, **{"External id": 8}, **work),
        slice_("aten::mm", 5, 20, "cpu_op", other_thread, **{"External id": 9}, **work),
        slice_("cudaLaunchKernel", 8, 3, "cuda_runtime", other_thread, **{"correlation": 21, "External id": 9}),
        kernel("gemm", 100, 70, 21, by=9),
    ]
    assert gpu_stacks(events) == {"net.first (backward);AddmmBackward0;aten::mm;gemm": 70}


def test_without_calls_of_the_runtime_the_operator_is_found_by_its_number():
    without = [event for event in FORWARD if event["cat"] != "cuda_runtime"]
    assert gpu_stacks(without) == gpu_stacks(FORWARD)


def test_a_kernel_of_unknown_origin_is_kept_so_that_the_sum_is_whole():
    found = gpu_stacks([*FORWARD, kernel("lost", 800, 30, 99, by=0)])
    assert found["(launched by unknown code);lost"] == 30
    assert sum(found.values()) == 500 + 40 + 30


def test_without_a_gpu_there_are_none():
    assert gpu_stacks([event for event in FORWARD if event["cat"] == "cpu_op"]) == {}


@pytest.mark.parametrize("most_events", [10**6, 4])
def test_the_file_holds_all_kernels_also_where_the_trace_leaves_operators_out(tmp_path, most_events):
    again = [dict(event, ts=event["ts"] + 5000) for event in FORWARD]
    write_files(tmp_path / f"a{SUFFIX}", [Trace(events=FORWARD), Trace(events=again)], most_events)
    assert (tmp_path / "stacks-gpu.txt").read_text().splitlines() == [
        "ProfilerStep#0;net.first;aten::linear;aten::addmm;gemm<a,b> 1000",
        "ProfilerStep#0;net.first;aten::relu;relu 80",
    ]
    assert "aten::addmm" in (tmp_path / "stacks.txt").read_text()
