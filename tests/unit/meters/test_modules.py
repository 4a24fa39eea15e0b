"""The meter on training steps: rows of every kind, what cannot be told apart, and nothing left behind in the model."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="the profiler is torch's")

from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from speechmeter.core.device import Device  # noqa: E402
from speechmeter.core.protocols import Phase, Prepared  # noqa: E402
from speechmeter.core.types import Batch, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.modules import ModulesMeter, Peaks, module_memory  # noqa: E402
from speechmeter.meters.recording.label import MODULE  # noqa: E402


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs, self.output = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)

    def forward(self, value):
        query, key, other = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.inputs(value).chunk(3, -1))
        return self.output(functional.scaled_dot_product_attention(query, key, other).transpose(1, 2).flatten(2))


class Model(torch.nn.Module):
    def __init__(self, how="plain"):
        super().__init__()
        self.layers = torch.nn.ModuleList(Attention() for _ in range(2))
        self.shared = torch.nn.Linear(16, 16)
        self.how = how

    def forward(self, value):
        for layer in self.layers:
            if self.how in ("reentrant", "non-reentrant"):
                value = checkpoint(layer, value, use_reentrant=self.how == "reentrant")
            else:
                value = layer(value)
        return self.shared(torch.sin(self.shared(value)))


def measured(model, *, amp=False, meter=None, unclocked=False, **changes):
    """Measurements of time by scope, and the outcome."""

    def forward(batch):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
            return model(batch.data)

    def backward(output):
        output.float().square().sum().backward()

    class Subject:
        def prepare(self, case, device):
            stages = (Stage(name="forward", fn=forward, clocked=not unclocked), Stage(name="backward", fn=backward))
            return Prepared(stages=stages, modules={"model": model})

        def batches(self, case):
            yield Batch(data=torch.rand(2, 5, 16, requires_grad=True), items=2)

    outcome = measure(make_case(**changes), Subject(), Subject(), [meter or ModulesMeter()])
    assert outcome.status == "ok", outcome.reason
    return {m.scope: m for m in outcome.measurements if m.metric == "time_module.v1"}


def directions(found):
    return {
        scope: {key for key in ("forward", "backward", "recompute") if key in m.notes} for scope, m in found.items()
    }


BOTH = {"forward", "backward"}


def assert_adds_up(found):
    total = found["total"].values
    for call, whole in enumerate(total):
        assert sum(m.values[call] for scope, m in found.items() if scope != "total") == pytest.approx(whole, abs=1e-7)
    for scope, m in found.items():
        if scope != "total":
            parts = [m.notes.get(key, [0.0] * len(total)) for key in ("forward", "backward", "recompute")]
            assert [sum(call) for call in zip(*parts, strict=True)] == pytest.approx(m.values, abs=1e-8)


@pytest.mark.parametrize("amp", [False, True])
def test_every_module_has_both_directions_and_rows_add_up(amp):
    found = measured(Model(), amp=amp)
    rows = directions(found)
    for path in ("model", "model.layers.0", "model.layers.1.inputs", "model.layers.1.output", "model.shared"):
        assert rows[f"module:{path}"] == BOTH, path
    assert found["module:model.shared"].notes["calls"] == 2
    assert found["module:model.layers.0"].notes["class"] == "Attention"
    assert len(found["total"].values) == 3
    assert rows["stage:backward"] >= {"backward"}  # the loss was computed there, outside every module
    assert_adds_up(found)


@pytest.mark.parametrize("how", ["reentrant", "non-reentrant"])
def test_checkpointed_layers_are_recomputed_and_others_are_not(how):
    found = measured(Model(how))
    rows = directions(found)
    for path in ("model.layers.0", "model.layers.0.inputs", "model.layers.1.output"):
        assert rows[f"module:{path}"] == {"forward", "backward", "recompute"}, path
    assert rows["module:model.shared"] == BOTH
    assert found["module:model.layers.0"].notes["calls"] == 1
    assert_adds_up(found)


def test_blocks_compiled_one_by_one_have_a_row_each_and_their_inside_none():
    model = Model()
    for layer in model.layers:
        layer.compile(backend="aot_eager")
    rows = directions(measured(model))
    assert rows["module:model.layers.0"] == rows["module:model.layers.1"] == BOTH
    assert not [scope for scope in rows if scope.startswith(("module:model.layers.0.", "label:"))]


@pytest.mark.parametrize("way", ["axis", "wrapped", "in place"])
def test_a_model_compiled_as_a_whole_is_unavailable_with_the_reason(way):
    model = Model()
    if way == "wrapped":
        model = torch.compile(model, backend="eager")
    if way == "in place":
        model.compile(backend="eager")
    (found,) = measured(model, compile=way == "axis").values()
    assert "compile block by block" in found.unavailable


def test_a_subject_without_modules_is_unavailable_with_the_reason():
    class Subject:
        def prepare(self, case, device):
            return Prepared(stages=(Stage(name="model", fn=lambda batch: None),))

        def batches(self, case):
            yield Batch(data=None, items=1)

    outcome = measure(make_case(), Subject(), Subject(), [ModulesMeter()])
    (found,) = [m for m in outcome.measurements if m.metric == "time_module.v1"]
    assert "no torch module" in found.unavailable


def test_what_stands_outside_the_clock_has_no_row():
    found = measured(Model(), unclocked=True)
    assert not [scope for scope, m in found.items() if "forward" in m.notes and scope.startswith("module:")]
    assert directions(found)["module:model.shared"] == {"backward"}


def test_a_filter_gives_the_time_of_the_rest_to_what_is_around_it():
    found = measured(Model(), protocol={"filter": ["model", "model.layers.*"]})
    modules = {scope for scope in found if scope.startswith("module:")}
    expected = {"model", *(f"model.layers.{n}{part}" for n in "01" for part in ("", ".inputs", ".output"))}
    assert modules == {f"module:{path}" for path in expected}
    only = measured(Model(), protocol={"filter": ["model"]})
    assert {scope for scope in only if scope.startswith("module:")} == {"module:model"}
    assert_adds_up(only)


def test_the_model_is_left_as_it_was():
    model = Model()
    model.shared.register_forward_hook(lambda module, args, output: None)
    before = [
        Counter({key: len(table) for key, table in vars(m).items() if "hooks" in key and table})
        for m in model.modules()
    ]
    measured(model)
    after = [
        Counter({key: len(table) for key, table in vars(m).items() if "hooks" in key and table})
        for m in model.modules()
    ]
    assert after == before
    assert all(parameter._post_accumulate_grad_hooks is None for parameter in model.parameters())


def test_it_runs_in_a_process_of_its_own():
    assert ModulesMeter().phase is Phase.PROFILE


class Allocator:
    """Tells what is allocated now and the highest since it last forgot, as torch's does."""

    def __init__(self):
        self.held = self.peak = 100

    def take(self, size):
        self.held += size
        self.peak = max(self.peak, self.held)

    def forget(self):
        self.peak = self.held


def test_peaks_are_those_inside_and_not_those_before():
    memory = Allocator()
    peaks = Peaks(now=lambda: memory.held, highest=lambda: memory.peak, forget=memory.forget)
    memory.take(1000)
    memory.take(-1000)
    with peaks.open(MODULE + "outer"):
        memory.take(10)
        with peaks.open(MODULE + "outer.first"):
            memory.take(50)
            memory.take(-45)
        with peaks.open(MODULE + "outer.second"):
            memory.take(7)
    assert peaks.by_path == {"outer.first": 50, "outer.second": 7, "outer": 60}


def test_repeated_calls_keep_the_highest():
    memory = Allocator()
    peaks = Peaks(now=lambda: memory.held, highest=lambda: memory.peak, forget=memory.forget)
    for size in (5, 9, 3):
        with peaks.open(MODULE + "m"):
            memory.take(size)
            memory.take(-size)
    assert peaks.by_path == {"m": 9}


def test_cpu_has_no_peak_and_says_so():
    (found,) = module_memory(lambda: pytest.fail("no call is needed"), {}, (), Device.parse("cpu"))
    assert found.unavailable is not None
    assert "CPU" in found.unavailable
