"""Every row against clocks inside: functions that sleep forward and backward and note how long they slept."""

from __future__ import annotations

import gc
from collections import Counter
from time import perf_counter, sleep

import pytest

torch = pytest.importorskip("torch")

from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from speechmeter.meters.recording.attribution import attribute  # noqa: E402
from speechmeter.meters.recording.events import events_of  # noqa: E402
from speechmeter.meters.recording.label import CALL, label  # noqa: E402
from speechmeter.meters.recording.profiler import module_ranges  # noqa: E402

TOLERANCE_S = 0.002
CHECKPOINT_S = 0.010
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
    (call,) = attribute(events_of(profiled))
    return call


def by_place(call):
    found: Counter[tuple[str, str]] = Counter()
    for row in call.rows:
        found[row.owner.label or row.owner.module, row.direction] += row.cpu_s
    return found


def deviations(call, checkpoints_in):
    found = by_place(call)
    more = {key: CHECKPOINT_S if key[0] == checkpoints_in else 0.0 for key in slept}
    wrong = {
        key: (found[key], s) for key, s in slept.items() if not -TOLERANCE_S < found[key] - s < TOLERANCE_S + more[key]
    }
    total = sum(row.cpu_s for row in call.rows)
    return wrong if total == pytest.approx(call.wall_s, rel=0.01) else {**wrong, "all": (total, call.wall_s)}


def true_call(step, model, checkpoints_in=None):
    """The last of a few calls; each row must be what was slept there in one of them.

    Other work on the machine delays some row of a call, but not the same row of ten calls.
    `checkpoints_in` names the module that runs checkpoints: their own Python code takes some of its time.
    """
    call = measured(step, model)
    wrong = deviations(call, checkpoints_in)
    for _ in range(9):
        if not wrong:
            break
        call = measured(step, model)
        still_wrong = deviations(call, checkpoints_in)
        wrong = {key: seen for key, seen in wrong.items() if key in still_wrong}
    assert not wrong, f"(found, slept): {wrong}"
    return call


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


class Checkpointed(torch.nn.Module):
    """A function of its own inside a checkpoint: two modules, and between them work of the root; one again inside."""

    def __init__(self, reentrant, nested):
        super().__init__()
        self.before = Sleeper("model.before", 0.010, 0.020)
        self.after = Sleeper("model.after", 0.012, 0.006)
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.reentrant, self.nested = reentrant, nested

    def work(self, value):
        value = Sleep.apply(value, self.scale, "model", 0.015, 0.007)
        value = Sleep.apply(self.before(value), self.scale, "model", 0.025, 0.015)
        if self.nested:
            return checkpoint(self.after, value, use_reentrant=self.reentrant, preserve_rng_state=False)
        return self.after(value)

    def forward(self, value):
        return checkpoint(self.work, value, use_reentrant=self.reentrant, preserve_rng_state=False)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("nested", [False, True], ids=["once", "nested"])
@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "non-reentrant"])
def test_work_between_modules_is_recomputed_by_the_module_that_did_it(reentrant, nested):
    model = Checkpointed(reentrant, nested)
    value = torch.ones(1, requires_grad=True)

    def step():
        model(value).backward()

    step()
    true_call(step, model, checkpoints_in="model")

    assert slept["model", "recompute"] > 0.04
    assert slept["model.after", "recompute"] > (0.024 if nested and reentrant else 0.012)


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "non-reentrant"])
def test_several_checkpointed_layers_keep_their_backward_pass(reentrant):
    model = torch.nn.Sequential(*(Sleeper(f"model.{n}", 0.004 + 0.002 * n, 0.006 + 0.002 * n) for n in range(3)))
    value = torch.ones(1, requires_grad=True)

    def step():
        out = value
        for layer in model:
            out = checkpoint(layer, out, use_reentrant=reentrant)
        out.backward()

    step()
    true_call(step, model)

    assert {direction for _, direction in slept} == {"forward", "backward", "recompute"}


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

    inside = {row.owner.module for row in call.rows if row.owner.label == "mine"}
    assert inside == {"model"}
