"""The fused losses, compiled: every precision against float64, on a CUDA device."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)
pytest.importorskip("triton", reason="needs triton")

from transducer_cases import make_batch, relative_error, with_gradient  # noqa: E402

from speechmeter.transducer import (  # noqa: E402
    LabelError,
    LengthError,
    engines,
    joint_rnnt_loss,
    packed_rnnt_loss,
    prune_ranges,
    pruned_joint_rnnt_loss,
    rnnt_loss,
    simple_rnnt_loss,
)

ORIGINAL = ((343, 80), (382, 70), (120, 31))
EDGES = {
    "several": ((20, 7), (13, 9), (9, 2)),
    "one utterance": ((12, 5),),
    "fewer frames than labels": ((3, 8), (2, 6)),
    "no label": ((9, 0), (7, 4)),
    "one frame": ((1, 1), (6, 3)),
    "more states than a warp": ((6, 300), (4, 33)),
}


def on_device(batch):
    return [tensor.cuda() for tensor in batch.arguments]


def true(loss, *arguments, **options):
    """By plain torch in float64, which the tests on a CPU hold against the oracle."""
    with engines.only(engines.TORCH):
        return with_gradient(loss, *arguments, **options)


@pytest.mark.parametrize("sizes", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("scale", [1.0, 3000.0])
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_logits_given(sizes, scale, kind):
    batch = make_batch(sizes, 37, torch.float32)
    logits = batch.with_padding(float("nan")).cuda() * scale
    arguments = [tensor.to(kind) for tensor in on_device(batch)]
    found = with_gradient(rnnt_loss, logits, *arguments, blank=0)
    truth = true(rnnt_loss, logits.double(), *arguments, blank=0)
    assert relative_error(found[0][:, None], truth[0][:, None]) <= 1e-6
    assert relative_error(found[1], truth[1]) <= 1e-5


@pytest.mark.parametrize(("dtype", "gradient"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)])
@pytest.mark.parametrize("vocabulary", [500, 5000])
def test_logits_given_at_the_original_sizes(dtype, gradient, vocabulary):
    batch = make_batch(ORIGINAL, vocabulary, dtype)
    logits, arguments = batch.logits.cuda(), on_device(batch)
    found = with_gradient(rnnt_loss, logits, *arguments, blank=0)
    truth = true(rnnt_loss, logits.double(), *arguments, blank=0)
    assert relative_error(found[0][:, None], truth[0][:, None]) <= 1e-6
    assert relative_error(found[1], truth[1]) <= gradient


def test_packed_and_in_place():
    batch = make_batch(ORIGINAL, 50, torch.float32)
    _, gradient = true(rnnt_loss, batch.logits.cuda().double(), *on_device(batch), blank=0)

    def packed(padded):
        rows = zip(padded, ORIGINAL, strict=True)
        return torch.cat([row[:t, : u + 1].reshape(-1, row.shape[-1]) for row, (t, u) in rows])

    logits = packed(batch.logits.cuda()).requires_grad_()
    packed_rnnt_loss(logits, *on_device(batch), blank=0, reduction="sum", in_place=True).backward()
    assert logits.grad.data_ptr() == logits.data_ptr()
    assert relative_error(logits.grad[None], packed(gradient)[None]) <= 1e-5


def test_what_is_wrong_on_the_device_is_said_in_words():
    batch = make_batch(((6, 3), (5, 2)), 9, torch.float32)
    logits, (targets, frames, labels) = batch.logits.cuda(), on_device(batch)
    with pytest.raises(LengthError, match="logit_lengths\\[1\\] is 7"):
        rnnt_loss(logits, targets, frames + torch.tensor([0, 2]).cuda(), labels)
    targets[1, 1] = 9
    with pytest.raises(LabelError, match="targets\\[1, 1\\] is 9"):
        rnnt_loss(logits, targets, frames, labels)


def sides(dtype, vocabulary=500, width=512):
    draw = torch.Generator().manual_seed(0)
    frames, labels = torch.tensor(ORIGINAL).unbind(1)
    encoder = torch.rand(3, int(frames.max()), width, generator=draw)
    predictor = torch.rand(3, int(labels.max()) + 1, width, generator=draw)
    weight = (2 * torch.rand(vocabulary, width, generator=draw) - 1) / width**0.5
    bias = (2 * torch.rand(vocabulary, generator=draw) - 1) / width**0.5
    targets = torch.randint(1, min(vocabulary, width), (3, int(labels.max())), generator=draw)
    given = [tensor.cuda().to(dtype) for tensor in (encoder, predictor, weight, bias)]
    return given, [tensor.cuda() for tensor in (targets, frames, labels)]


def computed(loss, given, labels, **options):
    leaves = [tensor.detach().clone().requires_grad_() for tensor in given]
    losses = loss(*leaves, *labels, blank=0, reduction="none", **options)
    losses.sum().backward()
    return [losses.detach(), *(leaf.grad for leaf in leaves)]


def pruned(encoder, predictor, weight, bias, targets, frames, labels, **options):
    simple = simple_rnnt_loss(encoder.detach().double(), predictor.detach().double(), targets, frames, labels, blank=0)
    starts = prune_ranges(simple, frames, labels, 5)
    return pruned_joint_rnnt_loss(encoder, predictor, weight, bias, targets, starts, frames, labels, 5, **options)


PRECISIONS = {
    "float32": (torch.float32, "float32", 1e-6, 3e-6),
    # the loss is as far away as rounding the weight to 11 bits takes it: see below
    "tf32": (torch.float32, "float16", 3e-5, 2e-3),
    "bfloat16": (torch.bfloat16, None, 1e-6, 1e-2),
}


@pytest.mark.parametrize("loss", [joint_rnnt_loss, pruned], ids=["exact", "pruned"])
@pytest.mark.parametrize("vocabulary", [500, 4096])
@pytest.mark.parametrize(("dtype", "precision", "far", "off"), PRECISIONS.values(), ids=PRECISIONS)
def test_with_the_joiner(loss, vocabulary, dtype, precision, far, off):
    given, labels = sides(dtype, vocabulary)
    found = computed(loss, given, labels, precision=precision)
    with engines.only(engines.TORCH):
        truth = computed(loss, [tensor.double() for tensor in given], labels)
    errors = [relative_error(a[None], b[None]) for a, b in zip(found, truth, strict=True)]
    print(dtype, precision, vocabulary, [f"{error:.1e}" for error in errors])
    assert errors[0] <= far
    assert max(errors[1:]) <= off


@pytest.mark.parametrize("loss", [joint_rnnt_loss, pruned], ids=["exact", "pruned"])
@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "gelu", "identity"])
@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_activations(loss, activation, precision):
    dtype, how, far, off = PRECISIONS[precision]
    given, labels = sides(dtype, 200, 256)
    given[0], given[1] = 2 * given[0] - 1, 2 * given[1] - 1  # of both signs
    found = computed(loss, given, labels, precision=how, activation=activation)
    with engines.only(engines.TORCH):
        truth = computed(loss, [tensor.double() for tensor in given], labels, activation=activation)
    errors = [relative_error(a[None], b[None]) for a, b in zip(found, truth, strict=True)]
    print(activation, precision, [f"{error:.1e}" for error in errors])
    # hidden units without a bound have larger products, which eleven bits hold less well
    assert errors[0] <= max(far, 0.0 if precision == "float32" else 1e-5)
    assert max(errors[1:]) <= (off if precision == "float32" else 1e-2)


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_little_memory_computes_the_same_in_more_pieces(precision):
    dtype, how, *_ = PRECISIONS[precision]
    given, labels = sides(dtype)
    peaks, found = {}, {}
    for memory in ("normal", "low"):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        found[memory] = computed(joint_rnnt_loss, given, labels, precision=how, memory=memory)
        peaks[memory] = torch.cuda.max_memory_allocated()
    errors = [relative_error(a[None], b[None]) for a, b in zip(*found.values(), strict=True)]
    assert max(errors) <= 1e-5
    assert peaks["low"] < peaks["normal"]


@pytest.mark.parametrize("share", [0.0, 0.25])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_simple_loss(dtype, share):
    given, labels = sides(dtype)

    def both(kind):
        leaves = [tensor.detach().to(kind).requires_grad_() for tensor in given[:2]]
        simple = simple_rnnt_loss(*leaves, *labels, 0, share, reduction="none")
        simple.loss.sum().backward()
        return [simple.loss.detach(), simple.blank_use, simple.label_use, *(leaf.grad for leaf in leaves)]

    with engines.only(engines.TORCH):
        truth = both(torch.float64)
    errors = [relative_error(a[None], b[None]) for a, b in zip(both(dtype), truth, strict=True)]
    assert max(errors[:3]) <= 1e-6
    assert max(errors[3:]) <= (1e-6 if dtype == torch.float32 else 1e-2)


def test_wrong_lengths_are_refused_before_the_joiner_leaves_its_memory():
    given, (targets, frames, labels) = sides(torch.float32)
    for wrong in (frames + 200, frames * 0, -frames):
        with pytest.raises(LengthError, match="logit_lengths"):
            joint_rnnt_loss(*given, targets, wrong, labels, blank=0)
    for wrong in (labels + 200, -labels):
        with pytest.raises(LengthError, match="target_lengths"):
            joint_rnnt_loss(*given, targets, frames, wrong, blank=0)
    with pytest.raises(LabelError):
        joint_rnnt_loss(*given, targets + 500, frames, labels, blank=0)
    torch.cuda.synchronize()


def test_rounding_the_weight_is_what_moves_the_loss_of_eleven_bits():
    given, labels = sides(torch.float32)
    given[2] = given[2].half().float()  # held exactly by factors of eleven bits
    found = computed(joint_rnnt_loss, given, labels, precision="float16")
    with engines.only(engines.TORCH):
        truth = computed(joint_rnnt_loss, [tensor.double() for tensor in given], labels)
    assert relative_error(found[0][None], truth[0][None]) <= 1e-6


def test_nothing_waits_for_the_device_without_checks():
    given, labels = sides(torch.bfloat16)
    computed(joint_rnnt_loss, given, labels, check=False)  # compiles
    computed(pruned, given, labels, check=False)
    torch.cuda.set_sync_debug_mode("error")
    try:
        leaves = [tensor.detach().clone().requires_grad_() for tensor in given]
        joint_rnnt_loss(*leaves, *labels, blank=0, reduction="sum", check=False).backward()
        logits = torch.rand(3, 382, 81, 30, device="cuda", requires_grad=True)
        rnnt_loss(logits, labels[0] % 30, *labels[1:], blank=0, reduction="sum", check=False).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
