"""Modules on a CUDA device: busy time against matmuls of known cost, and the published step of the Conformer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)

from conftest import make_case  # noqa: E402
from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402

from speechmeter.core.types import Batch, Spec  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.modules import ModulesMeter  # noqa: E402
from speechmeter.meters.recording.attribution import attribute  # noqa: E402
from speechmeter.meters.recording.events import events_of  # noqa: E402
from speechmeter.meters.recording.label import CALL  # noqa: E402
from speechmeter.meters.recording.profiler import OPEN, module_ranges  # noqa: E402
from speechmeter.subjects.train.subject import TrainSubject  # noqa: E402

SIZE = 2048


class Matmuls(torch.nn.Module):
    """So many products of one size forward; each has two of the same size in the backward pass."""

    def __init__(self, count):
        super().__init__()
        self.count = count
        self.weight = torch.nn.Parameter(torch.randn(SIZE, SIZE, device="cuda") / SIZE**0.5)

    def forward(self, value):
        for _ in range(self.count):
            value = value @ self.weight
        return value


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.shared = Matmuls(4), Matmuls(8), Matmuls(2)

    def forward(self, value):
        return self.shared(torch.tanh(self.shared(self.left(value) + self.right(value))))


def one_product_s(calls=200):
    a, b = (torch.randn(SIZE, SIZE, device="cuda") for _ in range(2))
    for _ in range(calls):
        a @ b
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        a @ b
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000 / calls


def test_busy_time_of_repeated_matmuls_is_that_of_so_many_products():
    model = Branches()
    value = torch.randn(SIZE, SIZE, device="cuda")  # takes no gradient, as sound does not
    for _ in range(20):
        model(value).sum().backward()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled, module_ranges({"m": model}):
        for number in range(10):
            with OPEN(f"{CALL}{number}"):
                model(value).sum().backward()
                torch.cuda.synchronize()
    seconds: Counter[tuple[str, str]] = Counter()
    for call in attribute(events_of(profiled)):
        for row in call.rows:
            seconds[row.owner.module, row.direction] += row.gpu_s / 10
    product_s = one_product_s()
    for path, count in (("m.left", 4), ("m.right", 8), ("m.shared", 4)):
        assert seconds[path, "forward"] == pytest.approx(count * product_s, rel=0.05), path
    # backward adds sums of gradients to the products, and the first product of a branch has one (its input takes none)
    assert seconds["m.shared", "backward"] >= 8 * product_s * 0.95
    assert seconds["m.right", "backward"] / seconds["m.left", "backward"] == pytest.approx(15 / 7, rel=0.08)


def test_labels_hold_the_kernels_of_the_modules_inside_them_and_of_the_backward_pass_around_which_they_are():
    model = Branches()
    value = torch.randn(SIZE, SIZE, device="cuda")

    def step():
        with record_function("forward"):
            loss = model(value).sum()
        with record_function("back"):
            loss.backward()
        torch.cuda.synchronize()

    def marked():
        with OPEN(CALL):
            step()

    step()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled, module_ranges({"m": model}):
        marked()
    (call,) = attribute(events_of(profiled))
    whole = {way: sum(r.gpu_s for r in call.rows if r.direction == way) for way in ("forward", "backward")}
    held = Counter()
    for row in call.rows:
        for name in row.owner.labels:
            held[name, row.direction] += row.gpu_s
    assert whole["backward"] > whole["forward"] > 0
    assert held["forward", "backward"] >= 0.99 * whole["backward"]  # of its operators
    assert held["back", "backward"] == pytest.approx(whole["backward"])  # the engine's thread works while it is open
    assert held["forward", "forward"] + held["back", "forward"] == pytest.approx(whole["forward"])


AXES = {
    "device": "cuda", "amp": "none", "accumulate": 1, "checkpoint": "none", "optimizer": "none",
    "compile_blocks": False, "layers": 12, "width": 512, "heads": 8, "inner": 2048, "kernel": 31, "vocabulary": 500,
    "loss": "pruned",
}  # fmt: skip


class Published:
    """The shapes of the study's batches: 16 utterances of 1850 raw frames and 113 labels."""

    def batches(self, case):
        rows = np.stack([np.linspace(1853, 1827, 16), np.linspace(115, 111, 16)], axis=1).astype(np.int32)
        yield Batch(data=rows, items=16)


def measured(**changes):
    subject = Spec(plugin="train", name="t", source="conformer-transducer")
    case = make_case(subject=subject, **{**AXES, **changes})
    outcome = measure(case, TrainSubject(), Published(), [ModulesMeter()])
    assert outcome.status == "ok", outcome.reason
    return outcome.measurements


def share(found, metric, scope):
    rows = {m.scope: sum(m.values) for m in found if m.metric == metric}
    return rows[scope] / rows["total"]


@pytest.mark.parametrize("amp", ["none", "bfloat16"])
def test_less_than_half_a_per_cent_of_the_published_step_is_nobodys(amp):
    found = measured(amp=amp)
    rows = {m.scope: m for m in found if m.metric == "time_gpu.v1"}
    print({scope: sum(m.values) for scope, m in rows.items() if not scope.startswith("module:")})
    assert share(found, "time_gpu.v1", "unattributed") < 0.005
    for path in ("encoder.embed.out", "encoder.layers.11.self_attn.in_proj", "decoder.conv", "joiner.output"):
        assert {"forward", "backward"} <= set(rows[f"module:{path}"].notes), path
    total = rows["total"].values
    parts = [sum(m.values[call] for scope, m in rows.items() if scope != "total") for call in range(len(total))]
    assert parts == pytest.approx(total, rel=0.01)
    memory = {m.scope: m.values[0] for m in found if m.metric == "memory_module.v1"}
    assert memory["module:encoder"] >= max(memory[f"module:encoder.layers.{n}"] for n in range(12)) > 0


@pytest.mark.parametrize("how", ["reentrant", "non-reentrant"])
def test_checkpointed_layers_are_recomputed_on_the_device(how):
    found = measured(checkpoint=how, layers=4)
    rows = {m.scope: m for m in found if m.metric == "time_gpu.v1"}
    row = rows["module:encoder.layers.1.feed_forward.0"].notes
    assert sum(row["recompute"]) == pytest.approx(sum(row["forward"]), rel=0.1)
    assert "recompute" not in rows["module:encoder.embed.out"].notes
    assert share(found, "time_gpu.v1", "unattributed") < 0.005


def test_blocks_compiled_one_by_one_have_rows_on_the_device():
    found = measured(compile_blocks=True, layers=4)
    rows = {m.scope: m for m in found if m.metric == "time_gpu.v1"}
    assert {"forward", "backward"} <= set(rows["module:encoder.layers.3"].notes)
    assert share(found, "time_gpu.v1", "unattributed") < 0.02
