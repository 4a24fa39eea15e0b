"""FLOPs against counts derived by formula from each model's configuration: on real tensors and on shapes alone."""

import pytest

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from flop_truths import TRUTHS

from speechmeter.meters.flops.count import count
from speechmeter.meters.flops.shapes_only import shapes_only

TOLERANCE = 0.001
ON_CPU = [truth for truth in TRUTHS if "cpu" in truth.devices]
WITHOUT_PACKED_WEIGHTS = [truth for truth in ON_CPU if "int8" not in truth.name]
# Seconds each on shapes; another prompt and another recurrence written out in steps take the same way.
LONG_ON_SHAPES = ("GRU 2 × 512, training", "whisper-tiny generate, prompt 1, 20 tokens")


def check(truth, counted):
    assert counted.forward == pytest.approx(truth.forward, rel=TOLERANCE)
    if truth.backward is not None:
        assert counted.backward == pytest.approx(truth.backward_on("cpu"), rel=TOLERANCE)
    assert counted.unknown() == {}


@pytest.fixture
def zero_weights(monkeypatch):
    """Drawing a hundred million weights takes longer than the models do, and no count depends on them."""
    for draw in ("normal_", "uniform_"):
        monkeypatch.setattr(f"torch.Tensor.{draw}", lambda tensor, *_, **__: tensor.zero_())


@pytest.mark.parametrize("truth", ON_CPU, ids=lambda truth: truth.name)
def test_a_real_run_counts_what_the_formula_says(truth, zero_weights):
    check(truth, count(truth.build("cpu")))


@pytest.mark.parametrize(
    "truth",
    [
        pytest.param(truth, marks=pytest.mark.campaign if truth.name in LONG_ON_SHAPES else ())
        for truth in WITHOUT_PACKED_WEIGHTS
    ],
    ids=lambda truth: truth.name,
)
def test_shapes_alone_count_the_same(truth):
    with shapes_only() as mode:
        call = truth.build("cpu")
        mode.building, mode.pinned = False, True
        check(truth, count(call))
