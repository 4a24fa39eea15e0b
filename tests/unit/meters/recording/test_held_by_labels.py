"""What labels hold: modules and labels inside them, forward, backward and recomputed, as torch's own table has it."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import make_case, make_record

torch = pytest.importorskip("torch", reason="the profiler is torch's")

from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from speechmeter import label  # noqa: E402
from speechmeter.analysis.estimate import estimate  # noqa: E402
from speechmeter.analysis.modules import find  # noqa: E402
from speechmeter.core import metrics  # noqa: E402
from speechmeter.meters.modules import measurements  # noqa: E402
from speechmeter.meters.recording.attribution import attribute  # noqa: E402
from speechmeter.meters.recording.events import (  # noqa: E402
    BACKWARD_SCOPE,
    USER_SCOPE,
    CpuEvent,
    Events,
    events_of,
)
from speechmeter.meters.recording.label import CALL, LABEL, MODULE, PARAMETER, STAGE  # noqa: E402
from speechmeter.meters.recording.profiler import module_ranges  # noqa: E402

MAIN, ENGINE = 1, 2


def event(name, start, end, **more):
    return CpuEvent(name=name, start_ns=start, end_ns=end, **{"thread": MAIN, **more})


def held(call):
    """Nanoseconds by label and direction, of all rows that it holds."""
    found = Counter()
    for row in call.rows:
        for name in row.owner.labels:
            found[name, row.direction] += round(row.cpu_s * 1e9)
    return {key: value for key, value in found.items() if value}


def test_a_label_holds_the_modules_and_labels_inside_it():
    cpu = (
        event(STAGE + "forward", 0, 100),
        event("outer", 10, 90, scope=USER_SCOPE),
        event(MODULE + "m", 20, 80),
        event(LABEL + "inner", 30, 60),
        event(MODULE + "m.child", 40, 50),
    )
    (call,) = attribute(Events(cpu=cpu))
    assert held(call) == {("outer", "forward"): 80, ("inner", "forward"): 30}


def test_a_label_that_is_open_twice_counts_an_instant_once():
    cpu = (event("x", 0, 100, scope=USER_SCOPE), event("x", 20, 80, scope=USER_SCOPE), event("aten::mm", 30, 40))
    (call,) = attribute(Events(cpu=cpu))
    assert held(call) == {("x", "forward"): 100}


def engine_thread(forward, backward):
    """A forward pass inside a label, and a backward one in a thread of the engine while the caller waits in another."""
    return (
        event(CALL, 0, 200),
        event(forward, 0, 50, scope=USER_SCOPE),
        event(MODULE + "m", 10, 40),
        event("aten::mm", 20, 30, sequence=3),
        event(backward, 100, 200, scope=USER_SCOPE),
        event("load", 0, 200, scope=USER_SCOPE, thread=7),  # of another thread: it has no part in this
        event("autograd::engine::evaluate_function: B", 120, 140, thread=ENGINE, sequence=3, forward_thread=MAIN),
        event("B", 122, 138, thread=ENGINE, sequence=3, forward_thread=MAIN, scope=BACKWARD_SCOPE),
        event("autograd::engine::evaluate_function: AccumulateGrad", 150, 160, thread=ENGINE),
        event(PARAMETER + "m", 158, 159, thread=ENGINE),
    )


def test_the_backward_pass_belongs_to_the_label_of_its_forward_and_to_the_one_around_it():
    (call,) = attribute(Events(cpu=engine_thread("encoder", "step")))
    found = held(call)
    assert found["encoder", "forward"] == 50
    assert found["encoder", "backward"] == 30  # the node of 20, and the gradient of 10 by the parameter's module
    assert found["step", "forward"] + found["step", "backward"] == 100
    assert found["load", "forward"] == 200


class Part(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, value):
        with record_function("linear"):
            value = self.linear(value)
        return torch.tanh(value)


class Model(torch.nn.Module):
    def __init__(self, checkpointed=None):
        super().__init__()
        self.encoder, self.decoder = torch.nn.Sequential(Part(256), Part(256)), Part(16)
        self.checkpointed = checkpointed

    def forward(self, value):
        with record_function("encoder"):
            if self.checkpointed is None:
                value = self.encoder(value)
            else:
                value = checkpoint(self.encoder, value, use_reentrant=self.checkpointed)
        with label("decoder"):
            return self.decoder(value[..., :16])


def profiled(model, step):
    value = torch.randn(64, 256, requires_grad=True)
    step(model, value)
    with profile(activities=[ProfilerActivity.CPU]) as found, module_ranges({"model": model}), record_function(CALL):
        step(model, value)
    return found


def train(model, value):
    model(value).square().mean().backward()


def record_of(found):
    return make_record(make_case(), *measurements(attribute(events_of(found)), {}, False, {}))


def test_forward_times_are_those_of_torchs_own_table():
    found = profiled(Model(), train)
    averages = {row.key.removeprefix(LABEL): row.cpu_time_total for row in found.key_averages()}
    record = record_of(found)
    for name in ("encoder", "decoder", "linear"):
        seconds = find(record, metrics.TIME_MODULE, f"within:label:{name}@forward").values[0]
        assert 1e6 * seconds == pytest.approx(averages[name], abs=0.01), name
    own = find(record, metrics.TIME_MODULE, "own:label:encoder").values[0]
    assert own < find(record, metrics.TIME_MODULE, "within:label:encoder").values[0] / 2


def test_labels_around_modules_have_what_these_have_and_their_own():
    """Forward and backward; the label's own is what torch and Python do between the label and the module."""
    record = record_of(profiled(Model(), train))
    for name in ("encoder", "decoder"):
        for way in ("forward", "backward"):
            label_s, module_s = (
                find(record, metrics.TIME_MODULE, f"{scope}@{way}").values[0]
                for scope in (f"within:label:{name}", f"within:model.{name}")
            )
            own = find(record, metrics.TIME_MODULE, f"own:label:{name}@{way}").values
            assert label_s == pytest.approx(module_s + (own[0] if own else 0.0), abs=1e-7), (name, way)


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_a_checkpoint_computes_again_belongs_to_the_labels_around_and_inside_it(reentrant):
    record = record_of(profiled(Model(checkpointed=reentrant), train))
    again = {
        scope: find(record, metrics.TIME_MODULE, f"{scope}@recompute").values[0]
        for scope in ("within:label:encoder", "within:label:linear", "within:model.encoder", "within:label:decoder")
        if find(record, metrics.TIME_MODULE, f"{scope}@recompute").values
    }
    assert "within:label:decoder" not in again
    assert again["within:label:encoder"] >= again["within:model.encoder"] > again["within:label:linear"] > 0


def test_a_share_of_labels_is_of_all_that_they_hold():
    records = [record_of(profiled(Model(), train))]
    share = estimate(records, metrics.MODULE_SHARE, "within:label:encoder").value
    own = estimate(records, metrics.MODULE_SHARE, "label:encoder").value
    module = estimate(records, metrics.MODULE_SHARE, "within:model.encoder").value
    assert share >= module > own
