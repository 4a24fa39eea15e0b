"""The stages give the oracle's loss and its gradients, and hold nothing that nobody needs."""

import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from speechmeter.core.errors import SubjectError  # noqa: E402
from speechmeter.core.stages import run_chain  # noqa: E402
from speechmeter.core.types import Batch  # noqa: E402
from speechmeter.subjects.losses import step  # noqa: E402
from speechmeter.subjects.losses.call import Labels, packed  # noqa: E402
from speechmeter.subjects.losses.known import BY_NAME, PACKED, Known  # noqa: E402
from speechmeter.transducer import oracle_loss  # noqa: E402

SIZES = ((9, 4), (6, 2))
VOCABULARY = 11
PACKED_LOSS = Known(
    name="packed",
    summary="",
    load="",
    package="torch",
    distribution="torch",
    get="",
    layout=PACKED,
    integers=("int64",),
)


def batch(sizes=SIZES):
    return Batch(data=np.array(sizes, dtype=np.int32), items=len(sizes))


def recipe(name="ours", **changes):
    known = changes.pop("known", None) or BY_NAME[name]
    return step.Recipe(**{"known": known, "vocabulary": VOCABULARY, "dtype": torch.float32, "device": "cpu", **changes})


def joiner(vocabulary=VOCABULARY):
    torch.manual_seed(1)
    return torch.nn.Linear(step.WIDTH, vocabulary)


def oracle(logits, labels):
    return oracle_loss(logits, labels.targets, labels.frames, labels.labels, blank=0, reduction="none")


def true_step(call, output):
    """Losses and gradients in float64 of encoder, predictor, weight and bias, the joiner written out."""
    encoder, predictor = (leaf.detach().double().requires_grad_() for leaf in call.leaves)
    weight, bias = (p.detach().double().requires_grad_() for p in (output.weight, output.bias))
    logits = torch.tanh(encoder[:, :, None] + predictor[:, None]) @ weight.T + bias
    losses = oracle(logits, call.labels)
    return losses.detach(), torch.autograd.grad(losses.sum(), (encoder, predictor, weight, bias))


def unpacked(flat, labels):
    rows, start = flat.new_zeros((*labels.padded, flat.shape[1])), 0
    for item, (frames, count) in enumerate(labels.sizes):
        size = frames * (count + 1)
        rows[item, :frames, : count + 1] = flat[start : start + size].view(frames, count + 1, -1)
        start += size
    return rows


def packed_oracle(flat, labels):
    return oracle(unpacked(flat, labels), labels)


def close(found, truth, by=1e-5):
    assert float((found.double() - truth).norm() / truth.norm()) < by


@pytest.mark.parametrize("name", ["ours", "ours-torch"])
@pytest.mark.parametrize("keep", [False, True])
def test_a_step_gives_the_loss_and_the_gradients_of_its_definition(name, keep):
    output = joiner()
    stages = step.step_stages(recipe(name, keep=keep), output, BY_NAME[name].implementation())
    assert [(stage.name, stage.clocked) for stage in stages] == [
        ("input", False),
        ("joiner", True),
        ("loss", True),
        ("backward", True),
    ]
    for _ in range(2):  # gradients of weights must not add up over calls
        call = run_chain(stages, batch())[-1]
    losses, gradients = true_step(call, output)
    close(call.losses, losses)
    found = [*(leaf.grad for leaf in call.leaves), output.weight.grad, output.bias.grad]
    for gradient, truth in zip(found, gradients, strict=True):
        close(gradient, truth)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["ours", "ours-pruned"])
def test_a_step_runs_in_half_precision(name, dtype):
    known, output = BY_NAME[name], joiner().to(dtype)
    made = recipe(name, dtype=dtype, states=5)
    if known.pruned:
        stages = step.pruned_stages(made, output, None, known.implementation())
    else:
        stages = step.step_stages(made, output, known.implementation())
    call = run_chain(stages, batch())[-1]
    close(call.losses, true_step(call, output)[0], by=0.01)
    assert {leaf.grad.dtype for leaf in call.leaves} == {dtype}


def test_a_packed_step_gives_the_same():
    output = joiner()
    stages = step.step_stages(recipe(known=PACKED_LOSS), output, packed_oracle)
    call = run_chain(stages, batch())[-1]
    losses, gradients = true_step(call, output)
    close(call.losses, losses)
    close(call.leaves[0].grad, gradients[0])
    close(output.weight.grad, gradients[2])


def test_packing_keeps_true_cells_in_order():
    labels = Labels.drawn(SIZES, VOCABULARY, "int64", torch.Generator().manual_seed(0))
    padded = torch.randn(*labels.padded, VOCABULARY)
    flat = packed(padded, labels)
    assert flat.shape == (9 * 5 + 6 * 3, VOCABULARY)
    assert torch.equal(flat[9 * 5 + 3 + 1], padded[1, 1, 1])


@pytest.mark.parametrize(("known", "rows"), [(BY_NAME["ours"], (2, 9, 5)), (PACKED_LOSS, (63,))])
def test_the_loss_alone_starts_from_logits_that_take_a_gradient(known, rows):
    stages = step.loss_stages(recipe(known=known), packed_oracle if known.layout == PACKED else oracle)
    assert [(stage.name, stage.clocked) for stage in stages] == [("input", False), ("loss", True), ("backward", True)]
    call = run_chain(stages, batch())[-1]
    (logits,) = call.leaves
    assert logits.shape == (*rows, VOCABULARY)
    again = logits.detach().double().requires_grad_()
    whole = unpacked(again, call.labels) if known.layout == PACKED else again
    (gradient,) = torch.autograd.grad(oracle(whole, call.labels).sum(), again)
    close(logits.grad, gradient)


def test_a_pruned_step_with_all_states_in_range_is_the_exact_step():
    output = joiner()
    stages = step.pruned_stages(recipe("ours-pruned", states=5), output, None, BY_NAME["ours-pruned"].implementation())
    assert [stage.name for stage in stages] == ["input", "prune", "joiner", "loss", "backward"]
    call = run_chain(stages, batch())[-1]
    losses, gradients = true_step(call, output)
    close(call.losses, losses)
    close(call.leaves[0].grad, gradients[0])


def test_a_pruned_step_joins_only_the_states_in_range():
    output, seen = joiner(), []
    output.register_forward_hook(lambda module, inputs, logits: seen.append(tuple(logits.shape)))
    stages = step.pruned_stages(recipe("ours-pruned", states=3), output, None, BY_NAME["ours-pruned"].implementation())
    run_chain(stages, batch())
    assert seen == [(2, 9, 3, VOCABULARY)]


def test_a_vocabulary_wider_than_the_outputs_gets_projections_for_the_simple_loss():
    width = step.WIDTH + 8
    sides = torch.nn.ModuleDict({name: joiner(width) for name in ("encoder", "predictor")})
    pruned = BY_NAME["ours-pruned"].implementation()
    stages = step.pruned_stages(recipe("ours-pruned", vocabulary=width), joiner(width), sides, pruned)
    assert torch.isfinite(run_chain(stages, batch())[-1].losses).all()


def test_the_same_shapes_give_the_same_tensors_and_another_seed_others():
    made = [step.loss_stages(recipe(seed=seed), oracle)[0].fn(batch()) for seed in (3, 3, 4)]
    assert torch.equal(made[0].leaves[0], made[1].leaves[0])
    assert torch.equal(made[0].labels.targets, made[1].labels.targets)
    assert not torch.equal(made[0].leaves[0], made[2].leaves[0])
    assert int(made[0].labels.targets.min()) >= 1


class Forgetful(torch.autograd.Function):
    """A loss that needs nothing of its logits afterwards, as those do that compute the gradient beforehand."""

    @staticmethod
    def forward(ctx, logits):
        ctx.shape = logits.shape
        return logits.new_ones(logits.shape[0])

    @staticmethod
    def backward(ctx, weights):
        return torch.zeros(ctx.shape)


@pytest.mark.parametrize("keep", [False, True])
def test_what_the_policy_does_not_hold_is_freed_before_backward(monkeypatch, keep):
    alive, tanh = {}, torch.tanh

    def spying_tanh(joined):
        alive["joined"] = weakref.ref(joined)
        return tanh(joined)

    def loss(logits, labels):
        alive["logits"] = weakref.ref(logits)
        return Forgetful.apply(logits)

    monkeypatch.setattr(torch, "tanh", spying_tanh)
    output, during = joiner(), []
    output.register_forward_pre_hook(lambda module, inputs: during.append(alive["joined"]() is not None))
    stages = step.step_stages(recipe(keep=keep), output, loss)
    outputs = run_chain(stages[:-1], batch())
    assert len(outputs) == 3
    assert during == [keep]
    assert {name: ref() is not None for name, ref in alive.items()} == {"joined": keep, "logits": keep}


@pytest.mark.parametrize("data", [np.zeros((2, 16000), dtype=np.float32), ("a line",), np.zeros((3, 2))])
def test_sound_and_text_are_no_shapes(data):
    with pytest.raises(SubjectError, match="needs shapes"):
        step.sizes_of(Batch(data=data, items=2))
