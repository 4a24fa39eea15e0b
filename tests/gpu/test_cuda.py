"""On a CUDA device: synchronised latency, exact memory, the whole path. Skipped where there is none."""

import json

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)

from speechmeter.core.protocols import Prepared  # noqa: E402
from speechmeter.core.types import Batch, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.latency import LatencyMeter  # noqa: E402
from speechmeter.meters.memory import MemoryMeter  # noqa: E402
from speechmeter.subjects.torch_runtime import sync_for  # noqa: E402


class On:
    def __init__(self, fn):
        self._fn = fn

    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=self._fn),), sync=sync_for(device))

    def batches(self, case):
        yield Batch(data=None, items=1, audio_s=1.0)


def readings(fn, meter):
    subject = On(fn)
    outcome = measure(make_case(device="cuda"), subject, subject, [meter])
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}, outcome


def test_latency_waits_for_the_kernels():
    matrix = torch.randn(8192, 8192, device="cuda")
    truth = []

    def work(batch):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(20):
            torch.mm(matrix, matrix)
        end.record()
        truth.append((start, end))

    found, _ = readings(work, LatencyMeter())
    values = found["latency.v1", "total"].values
    events = [start.elapsed_time(end) / 1e3 for start, end in truth[-len(values) :]]
    for value, event in zip(values, events, strict=True):
        assert event <= value < event * 1.1 + 0.001


def test_a_planted_allocation_is_read_exactly():
    held = torch.zeros(8 * 2**20, dtype=torch.uint8, device="cuda")

    def work(batch):
        block = torch.empty(64 * 2**20, dtype=torch.uint8, device="cuda")
        del block

    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    found, _ = readings(work, MemoryMeter())
    assert set(found["memory_cuda_allocated.v1", "total"].values) == {before + 64 * 2**20}
    assert min(found["memory_cuda_reserved.v1", "total"].values) >= before + 64 * 2**20
    assert found["memory_cuda_load.v1", "total"].values == (before,)
    assert held.numel() == 8 * 2**20


def test_out_of_memory_on_the_device_is_oom():
    subject = On(lambda batch: torch.empty(2**45, dtype=torch.uint8, device="cuda"))
    outcome = measure(make_case(device="cuda"), subject, subject, [LatencyMeter()])
    assert outcome.status == "oom"


def test_the_whole_path_on_cuda(cli, workshop):
    done = cli(
        "run", "--model", "log-mel", "--device", "cuda", "--seconds", "1,4", "--batch", "2", "--quick", "-o", "run"
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
    assert [r["status"] for r in found] == ["ok", "ok"], [r["reason"] for r in found]
    facts = json.loads((workshop / "run/environments.jsonl").read_text().splitlines()[0])["facts"]
    assert facts["gpu"]
    assert "peak allocated" in done.stdout
    assert "peak reserved" in done.stdout


def test_a_memory_limit_holds_on_the_device(cli, workshop):
    (workshop / "big.py").write_text(
        "import torch\ndef make():\n    return lambda x: torch.empty(4 * 2**30, dtype=torch.uint8, device=x.device)\n"
    )
    args = ["run", "--model", "python:big.py:make", "--device", "cuda", "--seconds", "1", "--quick", "-o", "run"]
    done = cli(*args, "--set", "limits.memory_gib=2")
    assert done.returncode == 1, done.stderr  # no case of the run is ok
    (record,) = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
    assert record["status"] == "oom", record["reason"]
