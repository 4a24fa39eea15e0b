"""Memory on a CUDA device against planted allocations: peaks, growth, stages and weights to the byte."""

import gc

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)

from speechmeter.core.protocols import Prepared  # noqa: E402
from speechmeter.core.types import Batch, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.memory import MemoryMeter  # noqa: E402
from speechmeter.subjects.torch_runtime import sync_for  # noqa: E402

MIB = 2**20


def allocated():
    gc.collect()
    return torch.cuda.memory_allocated()


def block(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def holder(mib):
    module = torch.nn.Module()
    module.register_parameter("weight", torch.nn.Parameter(block(mib), requires_grad=False))
    return module


def figures(*stages, modules):
    class Subject:
        def prepare(self, case, device):
            return Prepared(stages=stages, modules=modules, sync=sync_for(device))

        def batches(self, case):
            yield Batch(data=None, items=1)

    outcome = measure(make_case(device="cuda"), Subject(), Subject(), [MemoryMeter()])
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): set(m.values) for m in outcome.measurements}


def test_a_planted_allocation_and_planted_weights_are_read_exactly():
    elsewhere = allocated()
    model = holder(10)
    found = figures(Stage(name="model", fn=lambda batch: block(64).numel()), modules={"model": model})
    assert found["memory_weights.v1", "total"] == {10 * MIB}
    assert found["memory_cuda_growth.v1", "total"] == {64 * MIB}
    assert found["memory_cuda_allocated.v1", "total"] == {elsewhere + 74 * MIB}
    assert found["memory_cuda_load.v1", "total"] == {elsewhere + 10 * MIB}
    assert min(found["memory_cuda_reserved.v1", "total"]) >= 74 * MIB
    assert {scope for _, scope in found if scope.startswith("stage:")} <= {"stage:load"}


def test_each_stage_has_its_own_peak_and_growth():
    elsewhere = allocated()
    asr, tts = holder(10), holder(4)

    def wide(batch):
        work, kept = block(64), block(16)
        del work
        return kept

    def narrow(kept):
        return block(8).numel() + kept.numel()

    found = figures(
        Stage(name="asr", fn=wide, modules={"asr": asr}),
        Stage(name="tts", fn=narrow, modules={"tts": tts}),
        modules={"asr": asr, "tts": tts},
    )
    weights = elsewhere + 14 * MIB
    assert found["memory_cuda_growth.v1", "total"] == {80 * MIB}
    assert found["memory_cuda_growth.v1", "stage:asr"] == {80 * MIB}
    assert found["memory_cuda_growth.v1", "stage:tts"] == {8 * MIB}
    assert found["memory_cuda_allocated.v1", "stage:asr"] == {weights + 80 * MIB}
    assert found["memory_cuda_allocated.v1", "stage:tts"] == {weights + 24 * MIB}
    assert found["memory_weights.v1", "stage:asr"] == {10 * MIB}
    assert found["memory_weights.v1", "stage:tts"] == {4 * MIB}


def test_an_iterators_memory_belongs_to_its_stage():
    def stream(batch):
        yield block(16)
        yield block(16)

    found = figures(Stage(name="model", fn=stream), Stage(name="decode", fn=len), modules={})
    assert found["memory_cuda_growth.v1", "stage:model"] == {32 * MIB}
    assert found["memory_cuda_growth.v1", "stage:decode"] == {0}


def test_weights_that_lie_in_one_flat_storage_are_held_once():
    model = torch.nn.LSTM(64, 32, num_layers=2).cuda()
    model.flatten_parameters()
    found = figures(Stage(name="model", fn=lambda batch: None), modules={"model": model})
    (held,) = found["memory_weights.v1", "total"]
    exact = sum(p.numel() * p.element_size() for p in model.parameters())
    assert exact <= held < exact + 4096
