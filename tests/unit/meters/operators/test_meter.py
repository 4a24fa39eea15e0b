"""Time by operator: whose time it is, of which kind, in which call, and kernels on a GPU."""

import time

import pytest
from conftest import make_case

from speechmeter.core.protocols import Phase, Prepared
from speechmeter.core.types import Batch, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters.operators import meter as operators
from speechmeter.meters.operators.meter import OperatorsMeter, operator_rows

torch = pytest.importorskip("torch", reason="the profiler is torch's")
from made_recordings import event, kernel, made, module  # noqa: E402

from speechmeter.meters.flops.kinds import KINDS  # noqa: E402
from speechmeter.meters.recording.events import BACKWARD_SCOPE  # noqa: E402

WAIT_S = 0.02
OWN_AND_WHOLE = ("time_operator", "time_operator_total")


@torch.library.custom_op("speechmeter_operators::waits", mutates_args=())
def waits(data: torch.Tensor) -> torch.Tensor:
    time.sleep(WAIT_S)
    return data * 2


@torch.library.custom_op("speechmeter_operators::hides", mutates_args=())
def hides(data: torch.Tensor) -> torch.Tensor:
    for _ in range(50):
        torch.logcumsumexp(data, 0)
    return data * 2


def profiled(fn, keep=None, **axes):
    """Measurements by (metric, scope), and how often the subject was called."""
    calls = []

    def counted(batch):
        calls.append(batch)
        return fn()

    class Subject:
        def prepare(self, case, device):
            return Prepared(stages=(Stage(name="model", fn=counted),))

        def batches(self, case):
            yield Batch(data=None, items=1)

    outcome = measure(make_case(**axes), Subject(), Subject(), [OperatorsMeter()], keep=keep)
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}, len(calls)


def rows(found):
    return {scope: m for (metric, scope), m in found.items() if metric == "time_operator.v1" and scope[:3] == "op:"}


def shares(found):
    """The share of each kind in the time of all operators."""
    total = sum(found["time_operator.v1", "total"].values)
    return {kind: sum(found["time_operator.v1", f"kind:{kind}"].values) / total for kind in KINDS}


def test_an_operator_nobody_knows_is_given_its_time():
    found, _ = profiled(lambda: waits(torch.ones(4)))
    row = found["time_operator.v1", "op:speechmeter_operators::waits"]
    assert row.notes["kind"] == "unknown"
    assert len(row.values) == 3
    assert min(row.values) >= WAIT_S
    assert found["time_operator.v1", "kind:unknown"].values == row.values


def test_what_an_unknown_operator_calls_is_its_own_time():
    found, _ = profiled(lambda: hides(torch.ones(100_000)))
    own, whole = (found[f"{metric}.v1", "op:speechmeter_operators::hides"] for metric in OWN_AND_WHOLE)
    assert own.values == pytest.approx(whole.values, abs=1e-8)  # nothing that it calls has time of its own
    assert found["time_operator.v1", "kind:unknown"].values == own.values
    assert not any("logcumsumexp" in scope for scope in rows(found))


def test_each_operator_has_its_kind_and_the_rows_sum_to_the_total_in_every_call():
    matrix = torch.ones(64, 64)
    found, _ = profiled(lambda: torch.relu(matrix @ matrix).clone())
    kinds = {scope: m.notes["kind"] for scope, m in rows(found).items()}
    assert kinds["op:aten::mm"] == "matrix"
    assert kinds["op:aten::relu"] == "elements"
    assert kinds["op:aten::clone"] == "moves"
    total = found["time_operator.v1", "total"].values
    for call, whole in enumerate(total):
        assert sum(m.values[call] for m in rows(found).values()) == pytest.approx(whole, abs=1e-12)
        for kind in KINDS:
            own = sum(m.values[call] for scope, m in rows(found).items() if kinds[scope] == kind)
            assert found["time_operator.v1", f"kind:{kind}"].values[call] == pytest.approx(own, abs=1e-12)
    assert shares(found)["unknown"] == 0


def test_the_longest_row_comes_first():
    found, _ = profiled(lambda: waits(torch.relu(torch.ones(4))))
    assert next(iter(rows(found))) == "op:speechmeter_operators::waits"
    spent = [sum(m.values) for m in rows(found).values()]
    assert spent == sorted(spent, reverse=True)


def test_a_call_is_recorded_three_times_after_one_that_is_left_out():
    before = 3  # the first call, the one that pays for the profiler's start, and the count
    found, calls = profiled(lambda: waits(torch.ones(4)))
    assert calls == before + 3
    assert found["time_operator.v1", "total"].notes["calls"] == 3


def test_without_a_torch_operator_it_says_so():
    found, _ = profiled(lambda: None)
    assert found["time_operator.v1", "total"].values == ()
    assert found["time_operator.v1", "total"].unavailable == "no torch operator ran"


def test_compiled_code_has_no_operators():
    found, calls = profiled(lambda: torch.ones(4) * 2, compile=True)
    assert "fused kernels" in found["time_operator.v1", "total"].unavailable
    assert calls == 1


def test_it_runs_where_nothing_is_timed():
    assert OperatorsMeter().phase is Phase.PROFILE


def own_rows(recordings, kinds):
    return [m for m in operator_rows(recordings, kinds) if m.metric == "time_operator.v1" and m.scope[:3] == "op:"]


def read(recordings, kinds, metric="time_operator.v1"):
    """Microseconds of every row, one a step."""
    found = [m for m in operator_rows(recordings, kinds) if m.metric == metric]
    return {m.scope: [round(v * 1e6, 6) for v in m.values] for m in found if m.scope.startswith("op:")}


def test_own_time_goes_to_the_nearest_counted_operator_above():
    inner = (
        event("aten::linear", 0, 60),
        event("aten::addmm", 1, 59),
        event("aten::expand", 10, 18),
        event("aten::copy_", 10, 18),
        event("aten::copy_", 70, 73),
    )
    assert read([made(*inner)], {"aten::addmm": "matrix"}) == {
        "op:aten::addmm": [58.0],
        "op:aten::copy_": [3.0],
        "op:aten::linear": [2.0],
    }


def test_ranges_and_backward_nodes_are_no_operators():
    found = operator_rows(
        [
            made(
                module("net", 0, 10),
                event("theirs", 10, 20, scope=7),
                event("autograd::engine::evaluate_function: AddBackward0", 20, 30),
                event("AddBackward0", 21, 29, scope=BACKWARD_SCOPE),
            )
        ],
        {},
    )
    assert [m.unavailable for m in found] == ["the profiler saw no time in any operator"]


def test_the_same_operator_in_two_modules_is_told_apart_in_its_notes():
    recording = made(
        event("aten::mm", 0, 1),
        module("a", 10, 30),
        event("aten::mm", 12, 16),
        module("b", 40, 60),
        event("aten::mm", 42, 48),
    )
    (row,) = own_rows([recording], {"aten::mm": "matrix"})
    assert row.values == pytest.approx((11e-6,))
    assert row.notes["inside"] == {"b": {"forward": [6e-6]}, "a": {"forward": [4e-6]}}


def test_what_is_too_little_for_a_module_is_only_in_the_operators_own_row():
    most, least = (
        (module("a", 0, 2000), event("aten::mm", 0, 2000)),
        (module("b", 2001, 2003), event("aten::mm", 2001, 2002)),
    )
    little = made(*most, *least, steps=((0, 3000),))
    (row,) = own_rows([little], {})
    assert row.values == pytest.approx((2001e-6,))
    assert list(row.notes["inside"]) == ["a"]


def test_every_step_has_a_value_and_what_is_outside_of_all_has_none():
    one, two = made(event("aten::mm", 0, 5), steps=((0, 10), (20, 30))), made(event("aten::relu", 1, 3))
    late = made(event("aten::mm", 22, 25), event("aten::mm", 40, 49), steps=((0, 10), (20, 30)))
    assert read([one], {}) == {"op:aten::mm": [5.0, 0.0]}
    assert read([late, two], {}) == {"op:aten::mm": [0.0, 3.0, 0.0], "op:aten::relu": [0.0, 0.0, 2.0]}


def test_an_operator_of_a_library_that_is_not_loaded_is_unknown():
    (row,) = own_rows([made(event("absent_library::work", 0, 7))], {})
    assert (row.notes["kind"], row.values) == ("unknown", pytest.approx((7e-6,)))


def test_total_time_holds_what_is_inside_and_calls_are_counted():
    steps = ((0, 100), (100, 200))
    first = (
        event("aten::linear", 0, 60),
        event("aten::addmm", 1, 59),
        event("aten::addmm", 2, 9),  # inside itself: its time counts once
        event("aten::linear", 70, 80),
        event("autograd::node", 85, 99),
        event("aten::linear", 110, 115),
    )
    recording = made(*first, steps=steps)
    assert read([recording], {}, "time_operator_total.v1") == {
        "op:aten::linear": [70.0, 5.0],
        "op:aten::addmm": [58.0, 0.0],
    }
    assert {m.scope: m.notes["calls"] for m in own_rows([recording], {})} == {
        "op:aten::linear": 1.5,
        "op:aten::addmm": 1.0,
    }
    twice = read([recording, recording], {}, "time_operator_total.v1")
    assert twice["op:aten::linear"] == [70.0, 5.0, 70.0, 5.0]


def test_on_a_gpu_total_time_is_that_of_all_kernels_inside():
    kernels = (kernel(10, 12, by=1), kernel(20, 60, by=2))
    recording = made(event("aten::conv", 0, 9, id=1), event("aten::mm", 1, 5, id=2), kernels=kernels)
    assert read([recording], {}, "time_operator_total.v1") == {"op:aten::conv": [42.0], "op:aten::mm": [40.0]}


def test_memory_is_that_of_torchs_own_table_and_recorded_apart_from_times(tmp_path, monkeypatch):
    from torch.profiler import profile

    from speechmeter.core.outputs import Keep

    started = []
    true_start = profile.__enter__
    monkeypatch.setattr(profile, "__enter__", lambda self: started.append(self) or true_start(self))
    net, x = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()), torch.randn(64, 256)
    found, calls = profiled(lambda: net(x).square().sum().backward(), keep=Keep(folder=tmp_path))
    assert [one.profile_memory for one in started] == [False, True]
    assert calls == 3 + 3 + 2  # one more call, after one that pays for the start
    torchs = {row.key: row for row in started[1].key_averages()}
    own, held = (
        {scope.removeprefix("op:"): m.values for (metric, scope), m in found.items() if metric == name}
        for name in ("memory_operator_own.v1", "memory_operator.v1")
    )
    assert held["aten::addmm"] == (64 * 256 * 4,)
    assert held["aten::relu"] == (64 * 256 * 4,)
    assert {name: values[0] for name, values in held.items()} == {
        name: pytest.approx(torchs[name].cpu_memory_usage / 2)
        for name in held  # of two calls: the first is left out
    }
    assert sum(values[0] for values in own.values()) == pytest.approx(
        sum(row.self_cpu_memory_usage for row in torchs.values() if "::" in row.key and row.key[:4] == "aten") / 2
    )
    text = next(tmp_path.rglob("operators.txt")).read_text()
    assert "CPU KiB a call" in text.splitlines()[0]
    (line,) = [line.split() for line in text.splitlines() if line.endswith(" aten::addmm")]
    assert line[5:7] == ["64.0", "64.0"]


def test_a_later_round_records_no_memory():
    found, calls = profiled(lambda: waits(torch.ones(4)))
    assert calls == 3 + 3
    assert not [metric for metric, _ in found if metric.startswith("memory")]


def test_on_a_gpu_the_time_is_that_of_the_kernels_and_each_is_counted_once():
    recording = made(
        event("aten::linear", 0, 8, id=1),
        event("aten::mm", 1, 5, id=2),
        kernels=(kernel(10, 60, by=2), kernel(30, 70, by=2), kernel(80, 81, by=99)),
    )
    assert read([recording], {"aten::mm": "matrix"}) == {"op:aten::mm": [90.0]}


@pytest.mark.parametrize("module_name", ["net", ""])
def test_the_busy_time_of_the_gpu_is_one_value_whichever_meter_tells_it(module_name):
    from speechmeter.meters.modules import gpu_busy, module_rows

    around = (module(module_name, 0, 30),) if module_name else ()
    spans = [(5, 25), (20, 40), (40, 41)]
    recording = made(
        *around, event("aten::mm", 1, 5, id=2), kernels=tuple(kernel(*span, by=2) for span in spans), calls=True
    )
    (total,) = [m for m in module_rows([recording]) if (m.metric, m.scope) == ("time_gpu.v1", "total")]
    assert total == gpu_busy(recording.calls, {}, recording.notes)
    assert total.values == pytest.approx((36e-6,))  # overlapping kernels count once


def test_a_kind_is_known_of_an_operator_that_only_calls_others():
    assert operators._kind("aten::linear") == "wraps"
    assert operators._kind("aten::copy_") == "moves"
    assert operators._kind("aten::mm") == "matrix"
