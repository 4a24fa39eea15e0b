"""Time by operator: whose time it is, of which kind, and kernels that overlap on a GPU."""

import time
from types import SimpleNamespace

import pytest
from conftest import make_case

from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters import operators
from speechmeter.meters.operators import OperatorsMeter

torch = pytest.importorskip("torch", reason="the profiler is torch's")
from speechmeter.meters.flops.kinds import KINDS  # noqa: E402

WAIT_S = 0.02


@torch.library.custom_op("speechmeter_operators::waits", mutates_args=())
def waits(data: torch.Tensor) -> torch.Tensor:
    time.sleep(WAIT_S)
    return data * 2


@torch.library.custom_op("speechmeter_operators::hides", mutates_args=())
def hides(data: torch.Tensor) -> torch.Tensor:
    for _ in range(50):
        torch.logcumsumexp(data, 0)
    return data * 2


def profiled(fn, **axes):
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

    outcome = measure(make_case(**axes), Subject(), Subject(), [OperatorsMeter()])
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}, len(calls)


def rows(found):
    rows = {scope: m for (metric, scope), m in found.items() if metric == "time_operator.v1" and scope[:3] == "op:"}
    return {scope: m for scope, m in rows.items() if "@" not in scope}


def shares(found):
    """The share of each kind in the time of all operators."""
    total = found["time_operator.v1", "total"].values[0]
    return {kind: found["time_operator.v1", f"kind:{kind}"].values[0] / total for kind in KINDS}


def test_an_operator_nobody_knows_is_given_its_time():
    found, _ = profiled(lambda: waits(torch.ones(4)))
    row = found["time_operator.v1", "op:speechmeter_operators::waits"]
    assert row.notes["kind"] == "unknown"
    assert row.values[0] >= WAIT_S
    assert shares(found)["unknown"] > 0.8


def test_what_an_unknown_operator_calls_is_its_own_time():
    found, _ = profiled(lambda: hides(torch.ones(100_000)))
    assert shares(found)["unknown"] > 0.8
    assert not any("logcumsumexp" in scope for scope in rows(found))


def test_each_operator_has_its_kind_and_the_rows_sum_to_the_total():
    matrix = torch.ones(64, 64)
    found, _ = profiled(lambda: torch.relu(matrix @ matrix).clone())
    kinds = {scope: m.notes["kind"] for scope, m in rows(found).items()}
    assert kinds["op:aten::mm"] == "matrix"
    assert kinds["op:aten::relu"] == "elements"
    assert kinds["op:aten::clone"] == "moves"
    total = found["time_operator.v1", "total"]
    assert sum(m.values[0] for m in rows(found).values()) == pytest.approx(total.values[0], rel=1e-3)
    by_kind = dict.fromkeys(KINDS, 0.0)
    for scope, m in rows(found).items():
        by_kind[kinds[scope]] += m.values[0] / total.values[0]
    assert shares(found) == pytest.approx(by_kind, abs=1e-3)  # rows below 0.01 % are left out
    assert by_kind["unknown"] == 0


def test_shares_are_of_the_whole_time_and_the_longest_row_comes_first(monkeypatch):
    given = [event("aten::clone", 5.0), event("aten::relu", 15.0), event("aten::mm", 60.0), event("aten::mm", 20.0)]
    monkeypatch.setattr(operators, "_profiled", lambda *_: finished(given))
    matrix = torch.ones(4, 4)
    found, _ = profiled(lambda: torch.relu(matrix @ matrix).clone())
    assert shares(found) == pytest.approx({"moves": 0.05, "elements": 0.15, "matrix": 0.8, "wraps": 0, "unknown": 0})
    assert list(rows(found)) == ["op:aten::mm", "op:aten::relu", "op:aten::clone"]


def test_a_call_is_profiled_three_times_and_a_slow_one_once(monkeypatch):
    def call():
        return waits(torch.ones(4))

    before = 3  # the first call, the count, and one before the profiler
    assert profiled(call)[1] == before + 3
    monkeypatch.setattr(operators, "_SLOW_NS", 1)
    found, calls = profiled(call)
    assert calls == before + 1
    assert found["time_operator.v1", "total"].values[0] >= WAIT_S


def test_the_figures_are_of_one_call(monkeypatch):
    monkeypatch.setattr(operators, "_profiled", lambda _, calls, on_cuda: finished([event("aten::relu", 30.0 * calls)]))
    found, _ = profiled(lambda: torch.relu(torch.ones(4)))
    assert found["time_operator.v1", "total"].values == pytest.approx((30e-6,))
    assert found["time_operator.v1", "op:aten::relu"].values == pytest.approx((30e-6,))


def test_without_a_torch_operator_it_says_so():
    found, _ = profiled(lambda: None)
    assert found["time_operator.v1", "total"].values == ()
    assert found["time_operator.v1", "total"].unavailable == "no torch operator ran"


def test_compiled_code_has_no_operators():
    found, calls = profiled(lambda: torch.ones(4) * 2, compile=True)
    assert "fused kernels" in found["time_operator.v1", "total"].unavailable
    assert calls == 1


def test_a_profiler_that_sees_no_time_gives_no_figure(monkeypatch):
    monkeypatch.setattr(operators, "_profiled", lambda *_: finished([]))
    found, _ = profiled(lambda: torch.ones(4) * 2)
    assert "saw no time" in found["time_operator.v1", "total"].unavailable


def finished(events):
    """A profile that saw these, and no raw event."""
    raw = SimpleNamespace(events=list)
    return SimpleNamespace(events=lambda: events, profiler=SimpleNamespace(kineto_results=raw))


def event(name, own_us=0.0, *, parent=None, device="CPU", span=(0.0, 0.0), kernel_us=0.0, id_=0):
    return SimpleNamespace(
        name=name,
        id=id_,
        self_cpu_time_total=own_us,
        self_device_time_total=kernel_us,
        cpu_parent=parent,
        device_type=getattr(torch.autograd.DeviceType, device),
        time_range=SimpleNamespace(start=span[0], end=span[1]),
    )


def credited(events, kinds, on_cuda=False):
    found = operators._credited(events, kinds, on_cuda, {})
    return {name: (row.kind, pytest.approx(row.seconds * 1e6)) for (name, _), row in found.items()}


def test_own_time_goes_to_the_nearest_counted_operator_above():
    linear = event("aten::linear", 2.0)
    product = event("aten::addmm", 50.0, parent=linear)
    copy = event("aten::copy_", 8.0, parent=event("aten::expand", 0.0, parent=product))
    alone = event("aten::copy_", 3.0)
    assert credited([linear, product, copy], {"aten::addmm": "matrix"}) == {
        "aten::linear": ("wraps", 2.0),
        "aten::addmm": ("matrix", 58.0),
    }
    assert credited([product, alone], {"aten::addmm": "matrix"}) == {
        "aten::addmm": ("matrix", 50.0),
        "aten::copy_": ("moves", 3.0),
    }


def test_ranges_backward_nodes_and_the_runtime_are_no_operators():
    names = (
        "ProfilerStep#1",
        "speechmeter.module::net",
        "autograd::engine::evaluate_function: AddBackward0",
        "cudaLaunchKernel",
    )
    assert credited([event(name, 7.0) for name in names], {}) == {}


def test_the_same_operator_in_two_modules_has_two_rows_beside_the_sum():
    events = [event("aten::mm", 4.0, id_=1), event("aten::mm", 6.0, id_=2), event("aten::mm", 1.0, id_=3)]
    found = operators._rows(operators._credited(events, {"aten::mm": "matrix"}, False, {1: "a", 2: "b"}), calls=1)
    assert {m.scope: m.values[0] for m in found if m.scope.startswith("op:")} == pytest.approx(
        {"op:aten::mm": 11e-6, "op:aten::mm@b": 6e-6, "op:aten::mm@a": 4e-6}
    )


def test_an_operator_of_a_library_that_is_not_loaded_is_unknown():
    assert credited([event("absent_library::work", 7.0)], {}) == {"absent_library::work": ("unknown", 7.0)}


def test_on_a_gpu_the_time_is_that_of_the_kernels_and_kernels_are_not_counted_twice():
    product = event("aten::mm", 4.0, kernel_us=90.0)
    kernel = event("sgemm::kernel", 0.0, kernel_us=90.0, device="CUDA")
    assert credited([product, kernel], {"aten::mm": "matrix"}, on_cuda=True) == {"aten::mm": ("matrix", 90.0)}


@pytest.mark.parametrize(
    ("spans", "busy_us"),
    [
        ([(100, 110), (120, 150)], 40),
        ([(100, 110), (105, 115)], 15),
        ([(105, 115), (100, 110)], 15),
        ([(100, 200), (120, 130), (190, 210)], 110),
        ([(100, 110), (110, 120)], 20),
        ([(100, 110), (100, 110)], 10),
    ],
)
def test_kernels_that_overlap_are_busy_time_once(spans, busy_us):
    kernels = [event("kernel", device="CUDA", span=span) for span in spans]
    launches = [event("cudaLaunchKernel", 9.0, span=(0, 1000))]
    (found,) = operators._gpu_time([*kernels, *launches], calls=2)
    assert found.metric == "time_gpu.v1"
    assert found.values == pytest.approx((busy_us * 1e-6 / 2,))


def test_without_a_kernel_there_is_no_busy_time():
    (found,) = operators._gpu_time([event("aten::mm", 4.0, span=(0, 4))], calls=1)
    assert (found.values, found.unavailable) == ((), "the profiler saw no kernel")
