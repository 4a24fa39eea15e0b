"""Traces, phases, memory over time and profiles on a CUDA device. Skipped where there is none."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)

from conftest import make_case  # noqa: E402
from trace_rules import breaches  # noqa: E402

import speechmeter  # noqa: E402
from speechmeter.analysis.traces import trace_diff  # noqa: E402
from speechmeter.core.protocols import Prepared  # noqa: E402
from speechmeter.core.types import Batch, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.split import SplitMeter  # noqa: E402
from speechmeter.meters.timeline.meter import TimelineMeter  # noqa: E402
from speechmeter.meters.traces.record import record  # noqa: E402
from speechmeter.subjects.torch_runtime import sync_for  # noqa: E402

WIDTH = 1024


class Net(torch.nn.Module):
    def __init__(self, extra=False):
        super().__init__()
        self.first, self.last = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.extra = extra

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.last(torch.mm(hidden, self.last.weight) if self.extra else hidden)


def step(net, x):
    net(x).sum().backward()
    torch.cuda.synchronize()


def traced(**options):
    net, x = Net(**options).cuda(), torch.randn(WIDTH, WIDTH, device="cuda")
    return record([lambda: step(net, x)] * 2, {"net": net}, cuda=True)


def test_a_trace_with_kernels_keeps_the_rules_and_kernels_know_their_module():
    trace = traced()
    assert breaches(trace.events) == []
    kernels = [event for event in trace.events if event.get("cat") == "kernel"]
    homes = {event["args"].get("module") for event in kernels}
    assert {"net.first", "net.last"} <= homes
    backward = [event for event in kernels if event["args"].get("direction") == "backward"]
    assert {event["args"]["module"] for event in backward} >= {"net.first", "net.last"}


def test_a_planted_matmul_is_found_among_operators_and_kernels():
    changes = trace_diff(traced(), traced(extra=True)).changes
    planted = next(change for change in changes if change.name == "aten::mm")
    assert planted.calls[1] - planted.calls[0] == 3  # forward, and two in the backward pass
    kernels = [change for change in changes if change.kind == "kernel" and change.counted]
    assert sum(change.calls[1] - change.calls[0] for change in kernels) >= 3


class On:
    def __init__(self, fn, modules=None):
        self._fn, self._modules = fn, modules or {}

    def prepare(self, case, device):
        stage = Stage(name="model", fn=self._fn)
        return Prepared(stages=(stage,), modules=self._modules, sync=sync_for(device))

    def batches(self, case):
        yield Batch(data=None, items=1, audio_s=1.0)


def readings(fn, meter, modules=None):
    subject = On(fn, modules)
    outcome = measure(make_case(device="cuda"), subject, subject, [meter])
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}


def test_long_kernels_and_a_copy_are_told_apart():
    matrix, host = torch.randn(4096, 4096, device="cuda"), torch.randn(2**26).pin_memory()

    def work(batch):
        for _ in range(10):
            torch.mm(matrix, matrix)
        torch.cuda.synchronize()
        host.cuda(non_blocking=True)

    found = readings(work, SplitMeter())
    kinds = {scope.removeprefix("split:"): m.values[0] for (_, scope), m in found.items() if scope[:6] == "split:"}
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
    starts[0].record()
    for _ in range(10):
        torch.mm(matrix, matrix)
    starts[1].record()
    host.cuda(non_blocking=True)
    starts[2].record()
    torch.cuda.synchronize()
    assert kinds["kernel"] == pytest.approx(starts[0].elapsed_time(starts[1]) / 1e3, rel=0.2)
    assert kinds["memcpy"] == pytest.approx(starts[1].elapsed_time(starts[2]) / 1e3, rel=0.3)
    busy = found["time_busy.v1", "busy:gpu"].values[0]
    assert busy == pytest.approx(kinds["kernel"] + kinds["memcpy"], rel=1e-6)


def test_the_peak_is_that_of_the_allocator():
    net, x = Net().cuda(), torch.randn(WIDTH, WIDTH, device="cuda")

    def work(batch):
        net(x).sum().backward()
        net.zero_grad(set_to_none=True)

    found = readings(work, TimelineMeter(), {"net": net})
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work(None)
    growth = torch.cuda.max_memory_allocated() - before
    assert found["memory_tensors_peak.v1", "total"].values[0] == pytest.approx(growth, rel=0.01)
    held = {scope: m.values[0] for (metric, scope), m in found.items() if metric == "memory_at_peak.v1"}
    assert sum(held.values()) == pytest.approx(growth, rel=0.05)
    assert any(scope.startswith("module:net") for scope in held)


def test_a_profile_tells_the_time_of_the_gpu_by_module(tmp_path):
    net = Net().cuda()
    with speechmeter.profile(memory=True, warmup=1, active=2) as p:
        for _ in range(3):
            step(net, torch.randn(WIDTH, WIDTH, device="cuda"))
            p.step()
    found = {(m.metric, m.scope): m for m in p.record.measurements}
    assert p.record.case.axes["device"] == "cuda"
    assert len(found["time_gpu.v1", "module:Net.first"].values) == 2
    assert found["time_gpu.v1", "module:Net.first"].notes["backward"]
    assert p.timeline.reserved_bytes
    assert "GPU idle" in p.table("split")
    p.export(tmp_path)
    assert "Net.first" in (tmp_path / "operators-by-module.txt").read_text()
