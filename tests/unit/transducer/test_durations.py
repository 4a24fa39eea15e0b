"""TDT and multi-blank losses against oracles of their own, and these against the sum over every alignment."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from transducer_cases import NEEDS_NUMBA, make_batch, relative_error

from speechmeter.transducer import (
    LabelError,
    OptionError,
    ShapeError,
    engines,
    multi_blank_loss,
    multi_blank_oracle,
    oracle_loss,
    rnnt_loss,
    tdt_loss,
    tdt_oracle,
)

SIZES = {
    "several": ((9, 4), (7, 0), (5, 5), (1, 0)),
    "fewer frames than labels": ((3, 8), (2, 6)),
    "one utterance": ((12, 5),),
}
DURATIONS = {"as published": (0, 1, 2, 3, 4), "none of 0": (1, 2), "not in order": (3, 0, 1), "far": (0, 1, 30)}
BIG_BLANKS = {8: 2, 7: 4}
IDS = 9
ENGINES = ["torch", pytest.param("numba", marks=NEEDS_NUMBA)]


def durations_of(batch, count, padding=0.0):
    draw = torch.Generator().manual_seed(5)
    scores = torch.randn(*batch.logits.shape[:3], count, generator=draw, dtype=torch.float64)
    for row, (frames, labels) in zip(scores, batch.sizes, strict=True):
        row[frames:] = padding
        row[:, labels + 1 :] = padding
    return scores


def computed(loss, tensors, *arguments, **options):
    """Losses of possible utterances and the gradients of their weighted sum."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    losses = loss(*leaves, *arguments, **options)
    weights = torch.arange(1, 1 + len(losses), dtype=torch.float64)
    possible = losses.isfinite()
    total = (losses * weights)[possible].sum() + 0 * sum(leaf.nan_to_num().sum() for leaf in leaves)
    return losses.detach(), *torch.autograd.grad(total, leaves)


def agree(found, truth, far=1e-9):
    assert torch.equal(found[0].isinf(), truth[0].isinf())
    assert torch.allclose(found[0].double(), truth[0], rtol=far)
    for one, other in zip(found[1:], truth[1:], strict=True):
        possible = ~truth[0].isinf()
        assert not possible.any() or relative_error(one[possible], other[possible]) <= far
        assert not one[~possible].any()


@pytest.fixture(params=ENGINES)
def engine(request) -> Iterator[None]:
    if request.param == "torch":
        with engines.only(engines.TORCH):
            yield
    else:
        assert engines.engine_for(torch.zeros(1)).name == request.param
        yield


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("durations", DURATIONS.values(), ids=DURATIONS)
def test_tdt_is_its_oracle_whatever_stands_in_the_padding(sizes, durations) -> None:
    batch = make_batch(sizes, IDS)
    kinds = {"durations": durations, "blank": 0, "sigma": 0.05}
    given = batch.with_padding(float("nan")), durations_of(batch, len(durations), float("nan"))
    found = computed(tdt_loss, given, *batch.arguments, **kinds, reduction="none")
    truth = computed(tdt_oracle, (batch.logits, durations_of(batch, len(durations))), *batch.arguments, **kinds)
    agree(found, truth)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("big_blanks", [BIG_BLANKS, {1: 3}, {}], ids=["two", "one", "none"])
def test_multi_blank_is_its_oracle_whatever_stands_in_the_padding(sizes, big_blanks) -> None:
    batch = make_batch(sizes, IDS)
    kinds = {"big_blanks": big_blanks, "blank": 0, "sigma": 0.05}
    found = computed(multi_blank_loss, (batch.with_padding(float("nan")),), *batch.arguments, **kinds, reduction="none")
    agree(found, computed(multi_blank_oracle, (batch.logits,), *batch.arguments, **kinds))


@pytest.mark.usefixtures("engine")
def test_float32_logits_are_as_precise_as_those_of_the_exact_loss() -> None:
    batch = make_batch(((40, 12), (33, 9)), 50, torch.float32)
    waits = durations_of(batch, 5).float()
    found = computed(tdt_loss, (batch.logits, waits), *batch.arguments, blank=0, reduction="none")
    truth = computed(tdt_oracle, (batch.logits.double(), waits.double()), *batch.arguments, blank=0)
    agree(found, truth, 1e-6)


@pytest.mark.usefixtures("engine")
def test_without_long_arcs_both_are_the_exact_loss() -> None:
    batch = make_batch(SIZES["several"], IDS)
    exact = computed(rnnt_loss, (batch.logits,), *batch.arguments, blank=0, reduction="none")
    none = computed(multi_blank_loss, (batch.logits,), *batch.arguments, {}, blank=0, reduction="none")
    agree(none, exact)


def every_alignment(frames: int, labels: int, blanks, waits, t: int = 0, u: int = 0) -> list[list[tuple]]:
    """All ways to the end as lists of (t, u, is it a label, duration)."""
    if (t, u) == (frames, labels):
        return [[]]
    steps = [(False, step) for step in blanks] + [(True, step) for step in waits if u < labels]
    found = []
    for is_label, step in steps:
        to = t + step, u + is_label
        if to[0] < frames or (to == (frames, labels) and not is_label):
            found += [[(t, u, is_label, step), *rest] for rest in every_alignment(frames, labels, blanks, waits, *to)]
    return found


def test_the_oracles_are_sums_over_every_alignment() -> None:
    batch = make_batch(((5, 2),), 6)
    tokens = batch.logits[0].softmax(-1)
    waits = durations_of(batch, 3)
    steps, shares = (0, 1, 2), waits[0].softmax(-1)
    targets = batch.targets[0].tolist()

    def token(t: int, u: int, is_label: bool) -> float:
        return float(tokens[t, u, targets[u] if is_label else 5])

    total = sum(
        math.prod(token(t, u, is_label) * float(shares[t, u, step]) for t, u, is_label, step in way)
        for way in every_alignment(5, 2, (1, 2), steps)
    )
    assert tdt_oracle(batch.logits, waits, *batch.arguments, steps).item() == pytest.approx(-math.log(total))
    ids = {1: 5, 3: 4}
    total = sum(
        math.prod(float(tokens[t, u, targets[u] if is_label else ids[step]]) for t, u, is_label, step in way)
        for way in every_alignment(5, 2, tuple(ids), (0,))
    )
    assert multi_blank_oracle(batch.logits, *batch.arguments, {4: 3}).item() == pytest.approx(-math.log(total))
    exact = oracle_loss(batch.logits, *batch.arguments, reduction="sum")
    assert multi_blank_oracle(batch.logits, *batch.arguments, {}).item() == pytest.approx(exact.item())


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_reductions_are_over_the_batch(reduction: str) -> None:
    batch = make_batch(((6, 2), (5, 3)), IDS)
    each = multi_blank_loss(batch.logits, *batch.arguments, BIG_BLANKS, blank=0, reduction="none")
    found = multi_blank_loss(batch.logits, *batch.arguments, BIG_BLANKS, blank=0, reduction=reduction)
    assert found.item() == pytest.approx(getattr(each, reduction)().item())


def test_what_cannot_be_meant_is_refused() -> None:
    batch = make_batch(((6, 2),), IDS)
    waits = durations_of(batch, 2)
    for durations in ((0,), (1, 1), (0, -1), (0, 1.5)):
        with pytest.raises(OptionError, match="durations are"):
            tdt_loss(batch.logits, waits[..., : len(durations)], *batch.arguments, durations)
    with pytest.raises(ShapeError, match="5 durations; give"):
        tdt_loss(batch.logits, waits, *batch.arguments)
    with pytest.raises(LabelError, match="a different id"):
        multi_blank_loss(batch.logits, *batch.arguments, {0: 2}, blank=0)
    with pytest.raises(OptionError, match="at least 2"):
        multi_blank_loss(batch.logits, *batch.arguments, {4: 1}, blank=0)
