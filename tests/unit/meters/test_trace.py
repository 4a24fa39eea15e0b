"""Recording real steps: a trace that keeps the format's rules, and in which every operator knows its module."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
from trace_rules import breaches  # noqa: E402

from speechmeter.core.traces import SUFFIX, Trace, nested  # noqa: E402
from speechmeter.meters.recording.profiler import recorded  # noqa: E402
from speechmeter.meters.recording.recording import Needs  # noqa: E402
from speechmeter.meters.recording.trace import joined, shortened, tidied  # noqa: E402
from speechmeter.meters.trace import stacks, stacks_text, write_files  # noqa: E402


def record(steps, roots, **needs):
    """A trace of steps, as the meter asks for it."""
    asked = Needs(modules=True, memory=True, shapes=True, traced=len(steps), **needs)
    return recorded(steps[0], steps, roots, asked, cuda=False).trace


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.last = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


@pytest.fixture(scope="module")
def trace():
    net, x = Net(), torch.randn(4, 8)
    return record([lambda: net(x).sum().backward()] * 2, {"net": net})


def test_a_trace_keeps_the_rules_of_the_format(trace):
    assert breaches(trace.events) == []


def test_the_call_that_pays_for_the_start_and_later_steps_are_not_in_it():
    net, x = Net(), torch.randn(4, 8)
    steps = [lambda: net(x).sum().backward()] * 3
    trace = recorded(steps[0], steps, {"net": net}, Needs(modules=True, traced=2), cuda=False).trace
    names = [event["name"] for event in trace.events if event.get("cat") == "user_annotation"]
    assert [name for name in names if name.startswith("ProfilerStep")] == ["ProfilerStep#0", "ProfilerStep#1"]
    assert names.count("net.first") == 2
    assert breaches(trace.events) == []


def test_modules_are_slices_and_steps_are_marked(trace):
    annotated = [event["name"] for event in trace.events if event.get("cat") == "user_annotation"]
    assert annotated.count("net") == annotated.count("net.first") == annotated.count("net.last") == 2
    assert {"ProfilerStep#0", "ProfilerStep#1"} <= set(annotated)
    assert not [event for event in trace.events if "speechmeter." in event["name"]]


def test_operators_of_the_backward_pass_know_their_module(trace):
    found = {
        (event["name"], event["args"]["module"], event["args"]["direction"])
        for event in trace.events
        if event.get("cat") == "cpu_op" and "module" in event["args"]
    }
    assert {("aten::addmm", "net.first", "forward"), ("aten::addmm", "net.last", "forward")} <= found
    assert {("aten::mm", "net.first", "backward"), ("aten::mm", "net.last", "backward")} <= found
    assert ("aten::relu", "net", "forward") in found


def test_stacks_add_up_to_the_steps(trace):
    found = stacks(trace.events)
    slices = nested(trace.events)
    roots = [one for one in slices if one.parent is None and one.category in ("user_annotation", "cpu_op")]
    assert sum(found.values()) == pytest.approx(sum(one.duration_us for one in roots), rel=1e-6)
    assert any(line.startswith("ProfilerStep#0;net;net.first;aten::linear") for line in found)
    assert any(";net.first (backward);" in line for line in found)
    for line in stacks_text(found).splitlines():
        stack, _, count = line.rpartition(" ")
        assert stack
        assert int(count) > 0


def test_of_many_stacks_the_costliest_are_written_and_the_sum_stays():
    many = {f"a;b{number}": float(number) for number in range(1, 101)}
    lines = [line.rpartition(" ")[::2] for line in stacks_text(many, most=10).splitlines()]
    assert [stack for stack, _ in lines[:2]] == ["a;b100", "a;b99"]
    assert lines[-1] == ("(shorter stacks)", str(sum(range(1, 91))))
    assert sum(int(count) for _, count in lines) == sum(many.values())


def test_a_long_trace_is_cut_down_to_the_longest_slices(trace):
    short = shortened(Trace(events=[dict(event) for event in trace.events], facts={}), 100)
    assert len(short.events) <= 100
    assert breaches(short.events) == []
    assert short.facts["speechmeter"]["left_out"] >= len(trace.events) - 100 > 0
    kept = {event["name"] for event in short.events}
    assert {"net", "net.first", "ProfilerStep#1"} <= kept
    limit = short.facts["speechmeter"]["shorter_than_us"]
    left = [event["dur"] for event in short.events if event.get("cat") == "cpu_op"]
    assert min(left) >= limit


def test_a_slice_that_reaches_too_far_is_ended_with_the_one_it_began_in():
    def one(name, start, length):
        return {"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": start, "dur": length}

    broken = [one("outer", 0, 10), one("inner", 8, 5), one("", 20, 1)]
    assert len(breaches(broken)) == 2
    assert breaches(tidied(Trace(events=broken)).events) == []


def test_a_range_that_outlives_the_function_that_opened_it_is_kept_whole():
    def one(name, start, length, cat):
        return {"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": 1, "ts": start, "dur": length}

    frames = [one("open_all", 0, 6, "python_function"), one("__enter__", 1, 4, "python_function")]
    range_ = one("step", 3, 20, "user_annotation")
    rest = [one("aten::mm", 8, 2, "cpu_op"), one("__exit__", 21, 5, "python_function")]
    found = {event["name"]: event for event in tidied(Trace(events=[*frames, range_, *rest])).events}
    assert breaches(list(found.values())) == []
    assert {name: event["dur"] for name, event in found.items()} == {
        "open_all": 3, "__enter__": 2, "step": 20, "aten::mm": 2, "__exit__": 2,
    }  # fmt: skip


def test_with_pythons_stacks_the_rules_are_kept_too():
    net, x = Net(), torch.randn(4, 8)
    found = record([lambda: net(x).sum().backward()], {"net": net}, stacks=True)
    assert breaches(found.events) == []
    assert any("forward" in line and "aten::addmm" in line for line in stacks(found.events))


def test_tensorboards_own_reader_takes_the_trace(trace, tmp_path):
    data = pytest.importorskip("torch_tb_profiler.profiler.data", reason="needs torch-tb-profiler and pandas")
    path = tmp_path / f"net{SUFFIX}"
    write_files(path, [trace], 10**6)
    seen = data.RunProfileData.parse("net", None, str(path), str(tmp_path))
    assert seen.steps_names == ["0", "1"]
    calls = {operator.name: operator.calls for operator in seen.op_list_groupby_name}
    counted = [event for event in trace.events if event["name"] == "aten::addmm"]
    assert calls["aten::addmm"] == len(counted) == 4
    from torch_tb_profiler import consts

    assert consts.WORKER_PATTERN.match(path.name).group(1) == "net"


def test_the_model_is_left_as_it_was(trace):
    net = Net()
    record([lambda: net(torch.zeros(1, 8))], {"net": net})
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    assert not torch.autograd._profiler_enabled()


def test_recordings_of_one_process_become_one_trace(trace, tmp_path):
    later = record([lambda: torch.ones(4).sum()], {})
    both = joined([trace, later])
    assert breaches(both.events) == []
    slices = [[(e["name"], e["dur"]) for e in found.events if e["ph"] == "X"] for found in (trace, later, both)]
    assert slices[2] == slices[0] + slices[1]
    numbers = [
        {e["args"]["External id"] for e in found.events if e["ph"] == "X" and "External id" in e.get("args", {})}
        for found in (trace, later, both)
    ]
    assert len(numbers[2]) == len(numbers[0]) + len(numbers[1])
    names = [str(event) for event in both.events if event["ph"] == "M"]
    assert len(names) == len(set(names)) > 0

    write_files(tmp_path / f"both{SUFFIX}", [trace, later], 10**6)
    written = (tmp_path / "stacks.txt").read_text()
    assert "aten::addmm" in written
    assert "aten::ones" in written
    assert not (tmp_path / "stacks-gpu.txt").exists()
