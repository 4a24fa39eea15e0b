"""Losses in CUDA graphs: the same training as without, whatever the shapes, on a CUDA device."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)
pytest.importorskip("triton", reason="needs triton")

from transducer_cases import relative_error  # noqa: E402

from speechmeter.transducer import (  # noqa: E402
    GraphOrderError,
    graphed,
    joint_rnnt_loss,
    prune_ranges,
    pruned_joint_rnnt_loss,
    simple_rnnt_loss,
)

WIDTH, IDS = 64, 40


def exact(encoder, predictor, targets, frames, labels, *output):
    return joint_rnnt_loss(encoder, predictor, *output, targets, frames, labels, blank=0, check=False)


def pruned(encoder, predictor, targets, frames, labels, *output):
    project = output[0][:, :WIDTH].T
    simple = simple_rnnt_loss(
        encoder @ project, predictor @ project, targets, frames, labels, 0, 0.25, reduction="mean", check=False
    )
    starts = prune_ranges(simple, frames, labels, 4, check=False)
    loss = pruned_joint_rnnt_loss(encoder, predictor, *output, targets, starts, frames, labels, 4, blank=0, check=False)
    return loss + 0.5 * simple.loss


def batch(number, frames=40, labels=9):
    """Sides, then targets and lengths; the longest utterance fills the batch."""
    draw = torch.Generator().manual_seed(number)
    counts = torch.randint(2, labels + 1, (4,), generator=draw)
    lengths = torch.randint(12, frames + 1, (4,), generator=draw)
    sides = [torch.randn(4, int(size), WIDTH, generator=draw) for size in (lengths.max(), counts.max() + 1)]
    targets = torch.randint(1, IDS, (4, int(counts.max())), generator=draw)
    return [tensor.cuda() for tensor in (*sides, targets, lengths, counts)]


def trained(loss, steps=25):
    """The losses of a joiner and two layers before it, trained on batches of many shapes."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH).cuda() for _ in range(2)]
    output = torch.nn.Linear(WIDTH, IDS).cuda()
    optimizer = torch.optim.Adam([weight for layer in (*layers, output) for weight in layer.parameters()], lr=3e-3)
    found = []
    for number in range(steps):
        encoder, predictor, *labels = batch(number)
        value = loss(layers[0](encoder), layers[1](predictor), *labels, output.weight, output.bias)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        found.append(value.detach())
    return torch.stack(found)


@pytest.mark.parametrize("loss", [exact, pruned])
def test_a_training_curve_is_the_one_without_graphs(loss):
    fast = graphed(loss, frames=16, labels=4)
    eager, replayed = trained(loss), trained(fast)
    assert 1 < len(fast._captures) < 25  # several shapes, and some of them twice
    assert eager[-1] < 0.9 * eager[0]
    assert float(((replayed - eager) / eager).abs().max()) <= 1e-4  # sums have no fixed order


def leaves_of(number):
    encoder, predictor, *labels = batch(number)
    output = torch.nn.Linear(WIDTH, IDS).cuda()
    leaves = [encoder.requires_grad_(), predictor.requires_grad_(), output.weight, output.bias]
    return leaves, labels


def test_gradients_add_up_over_batches_and_losses_stay():
    fast = graphed(exact)
    (encoder, predictor, *output), labels = leaves_of(3)
    values = []
    for _ in range(2):
        values.append(fast(encoder, predictor, *labels, *output))
        (3.0 * values[-1]).backward()
    twice = [leaf.grad.clone() for leaf in (encoder, predictor, *output)]
    for leaf in (encoder, predictor, *output):
        leaf.grad = None
    once = exact(encoder, predictor, *labels, *output)
    (6.0 * once).backward()
    for one, two in zip((encoder, predictor, *output), twice, strict=True):
        assert relative_error(two[None], one.grad[None]) <= 1e-5
    assert torch.allclose(values[0], once)


def test_a_backward_pass_after_another_batch_is_refused():
    fast = graphed(exact)
    (encoder, predictor, *output), labels = leaves_of(1)
    first = fast(encoder, predictor, *labels, *output)
    fast(encoder, predictor, *labels, *output)
    with pytest.raises(GraphOrderError):
        first.backward()


def test_more_shapes_than_allowed_and_no_gradient_are_computed_without_a_graph():
    fast = graphed(exact, most=0)
    (encoder, predictor, *output), labels = leaves_of(2)
    fast(encoder, predictor, *labels, *output).backward()
    with torch.no_grad():
        graphed(exact)(encoder, predictor, *labels, *output)
    assert not fast._captures
