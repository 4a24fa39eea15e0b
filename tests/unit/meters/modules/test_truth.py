"""Every row against clocks inside: functions that sleep forward and backward and note how long they slept."""

from __future__ import annotations

import gc
from collections import Counter
from time import perf_counter, sleep

import pytest

torch = pytest.importorskip("torch")

from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from speechmeter.meters.modules.attribution import attribute  # noqa: E402
from speechmeter.meters.modules.label import label  # noqa: E402
from speechmeter.meters.modules.names import CALL  # noqa: E402
from speechmeter.meters.modules.ranges import module_ranges  # noqa: E402

TOLERANCE_S = 0.002
slept: Counter[tuple[str, str]] = Counter()


class Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, weight, where, forward_s, backward_s):
        ctx.where, ctx.backward_s = where, backward_s
        ctx.save_for_backward(value)  # or a checkpoint would have nothing to compute again
        again = torch._C._current_graph_task_id() >= 0
        nap(where, "recompute" if again else "forward", forward_s)
        return value * weight

    @staticmethod
    def backward(ctx, gradient):
        (value,) = ctx.saved_tensors
        nap(ctx.where, "backward", ctx.backward_s)
        return gradient, gradient * value, None, None, None


def nap(where, direction, seconds):
    start = perf_counter()
    sleep(seconds)
    slept[where, direction] += perf_counter() - start


class Sleeper(torch.nn.Module):
    def __init__(self, where, forward_s, backward_s):
        super().__init__()
        self.where, self.forward_s, self.backward_s = where, forward_s, backward_s
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, value):
        return Sleep.apply(value, self.weight, self.where, self.forward_s, self.backward_s)


class Branches(torch.nn.Module):
    """Two parallel branches, a shared module called twice, a functional operator in the root."""

    def __init__(self):
        super().__init__()
        self.left = Sleeper("model.left", 0.010, 0.020)
        self.right = torch.nn.Sequential(Sleeper("model.right.0", 0.015, 0.005), Sleeper("model.right.1", 0.005, 0.010))
        self.shared = Sleeper("model.shared", 0.008, 0.012)
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, value):
        both = self.shared(self.left(value) + self.right(value))
        return self.shared(Sleep.apply(both, self.scale, "model", 0.007, 0.013))


@pytest.fixture(autouse=True)
def uncollected():
    """A collection of garbage takes milliseconds in a process of many tests, and falls where it likes."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def measured(step, model):
    slept.clear()
    with profile(activities=[ProfilerActivity.CPU]) as profiled, module_ranges({"model": model}), record_function(CALL):
        step()
    (call,) = attribute(profiled)
    return call


def by_place(call):
    found: Counter[tuple[str, str]] = Counter()
    for row in call.rows:
        found[row.place.label or row.place.module, row.direction] += row.cpu_s
    return found


def deviations(call):
    found = by_place(call)
    wrong = {key: (found[key], s) for key, s in slept.items() if found[key] != pytest.approx(s, abs=TOLERANCE_S)}
    total = sum(row.cpu_s for row in call.rows)
    return wrong if total == pytest.approx(call.wall_s, rel=0.01) else {**wrong, "all": (total, call.wall_s)}


def true_call(step, model):
    """A call whose every row is what was slept there. Other work may delay one call, not three in the same way."""
    for _ in range(3):
        call = measured(step, model)
        wrong = deviations(call)
        if not wrong:
            return call
    pytest.fail(f"(found, slept): {wrong}")


def test_branches_a_shared_module_and_the_root_get_what_they_slept():
    model = Branches()
    value = torch.ones(1)  # takes no gradient, as sound does not
    model(value).backward()

    true_call(lambda: model(value).backward(), model)

    assert slept["model.shared", "forward"] > 0.016


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_a_checkpoint_computes_again_is_recompute(reentrant):
    model = Branches()
    value = torch.ones(1, requires_grad=reentrant)

    def step():
        middle = checkpoint(model.right, value, use_reentrant=reentrant)
        model.left(middle).backward()

    step()
    true_call(step, model)

    assert slept["model.right.0", "recompute"] > 0.015


def test_labels_are_rows_forward_and_backward():
    weight = torch.nn.Parameter(torch.ones(1))

    class Labelled(torch.nn.Module):
        def forward(self, value):
            with label("mine"):
                value = Sleep.apply(value, weight, "mine", 0.010, 0.020)
            with record_function("theirs"):
                return Sleep.apply(value, weight, "theirs", 0.015, 0.005)

    model = Labelled()
    model(torch.ones(1)).backward()

    call = true_call(lambda: model(torch.ones(1)).backward(), model)

    inside = {row.place.module for row in call.rows if row.place.label == "mine"}
    assert inside == {"model"}
