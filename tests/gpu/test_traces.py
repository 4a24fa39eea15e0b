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
from speechmeter.meters.modules import ModulesMeter  # noqa: E402
from speechmeter.meters.operators.meter import OperatorsMeter  # noqa: E402
from speechmeter.meters.recording.profiler import recorded  # noqa: E402
from speechmeter.meters.recording.recording import Needs  # noqa: E402
from speechmeter.meters.split import SplitMeter  # noqa: E402
from speechmeter.meters.timeline import TimelineMeter  # noqa: E402
from speechmeter.meters.trace import gpu_stacks  # noqa: E402
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
    steps = [lambda: step(net, x)] * 2
    needs = Needs(modules=True, memory=True, shapes=True, traced=2)
    return recorded(steps[0], steps, {"net": net}, needs, cuda=True).trace


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
    kernels = [change for change in changes if change.kind == "kernel" and change.what != "time"]
    assert sum(change.calls[1] - change.calls[0] for change in kernels) >= 3


class On:
    def __init__(self, fn, modules=None):
        self._fn, self._modules = fn, modules or {}

    def prepare(self, case, device):
        stage = Stage(name="model", fn=self._fn)
        return Prepared(stages=(stage,), modules=self._modules, sync=sync_for(device))

    def batches(self, case):
        yield Batch(data=None, items=1, audio_s=1.0)


def readings(fn, *meters, modules=None):
    subject = On(fn, modules)
    case = make_case(device="cuda", meters=tuple(meter.name for meter in meters))
    outcome = measure(case, subject, subject, list(meters), process="profiled")
    assert outcome.status == "ok", outcome.reason
    assert len({(m.metric, m.scope) for m in outcome.measurements}) == len(outcome.measurements)
    return {(m.metric, m.scope): m for m in outcome.measurements}


def test_four_meters_read_one_recording_and_agree_on_the_busy_time():
    net, x = Net().cuda(), torch.randn(WIDTH, WIDTH, device="cuda")
    every = (OperatorsMeter(), ModulesMeter(), SplitMeter(), TimelineMeter())
    found = readings(lambda batch: net(x).sum().backward(), *every, modules={"net": net})
    busy = found["time_gpu.v1", "total"].values
    rows = [m for (metric, scope), m in found.items() if metric == "time_gpu.v1" and scope != "total"]
    for call, seconds in enumerate(busy):
        assert sum(m.values[call] for m in rows) == pytest.approx(seconds, abs=1e-8)
    assert found["time_busy.v1", "busy:gpu"].values == pytest.approx(busy, rel=0.02)
    operators = found["time_operator.v1", "total"].values  # kernels that overlap are added up there
    assert all(whole >= 0.98 * seconds for whole, seconds in zip(operators, busy, strict=True))
    mm = found["time_operator.v1", "op:aten::mm"]
    assert {"net.first", "net.last"} <= set(mm.notes["inside"])
    assert found["time_operator.v1", "total"].notes["recorded"] == ["CPU", "CUDA", "modules", "allocations"]
    launches = found["time_split.v2", "split:runtime"].values
    assert min(launches) > 0
    assert found["memory_tensors_peak.v1", "total"].values[0] > 0


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_function_is_recomputed_by_the_module_that_called_it(reentrant):
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(Net):
        def work(self, x):
            return self.last(torch.mm(torch.relu(self.first(x)), x))

        def forward(self, x):
            return checkpoint(self.work, x, use_reentrant=reentrant)

    net, x = Checkpointed().cuda(), torch.randn(WIDTH, WIDTH, device="cuda", requires_grad=True)
    found = readings(lambda batch: net(x).sum().backward(), ModulesMeter(), modules={"net": net})
    rows = {scope: m for (metric, scope), m in found.items() if metric == "time_gpu.v1"}
    own = {path: rows[f"module:{path}"].notes for path in ("net", "net.first", "net.last")}
    for path, notes in own.items():
        assert sum(notes["backward"]) > 1.5 * sum(notes["forward"]), path
    if not reentrant:  # torch stops when it has the input of the last layer, before that layer's kernel
        assert "recompute" not in own.pop("net.last")
    for path, notes in own.items():
        assert sum(notes["recompute"]) == pytest.approx(sum(notes["forward"]), rel=0.2), path
    assert sum(rows["unattributed"].values) < 0.02 * sum(rows["total"].values)


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

    found = readings(work, TimelineMeter(), modules={"net": net})
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
    lines = (tmp_path / "trace" / "stacks-gpu.txt").read_text().splitlines()
    assert any("Net;Net.first;aten::linear;aten::addmm;" in line for line in lines)
    assert any("Net.first (backward);" in line for line in lines)


def test_stacks_of_the_gpu_add_up_to_its_kernels():
    trace = traced()
    found = gpu_stacks(trace.events)
    on_gpu = [event for event in trace.events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert sum(found.values()) == pytest.approx(sum(event["dur"] for event in on_gpu))
    lost = sum(time_us for line, time_us in found.items() if line.startswith("(launched by unknown code)"))
    assert lost < 0.01 * sum(found.values())
