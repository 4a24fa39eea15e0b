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
# Seconds each; another prompt, another recurrence and another Conformer that is trained take the same operators.
LONG_ON_SHAPES = (
    "GRU 2 × 512, training",
    "whisper-tiny generate, prompt 1, 20 tokens",
    "Parakeet 12 × 256, 10 s, training",
    "Conformer 12 × 256, rotary, 4 s, fused attention, training",
)
# Seconds each; `make test` counts them on shapes, and a shorter input or another of their family for real.
LONG_FOR_REAL = (
    "wav2vec2-base 10 s",
    "Mockingjay 6 s",
    "WavLM-base 5 s",
    "Data2Vec-audio-base 5 s",
    "whisper-tiny generate, prompt 1, 20 tokens",
)


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


def split(truths, long):
    """The truths as parameters, the long ones for the campaign."""
    assert set(long) <= {truth.name for truth in truths}
    return [
        pytest.param(truth, id=truth.name, marks=pytest.mark.campaign if truth.name in long else ()) for truth in truths
    ]


@pytest.mark.parametrize("truth", split(ON_CPU, LONG_FOR_REAL))
def test_a_real_run_counts_what_the_formula_says(truth, zero_weights):
    check(truth, count(truth.build("cpu")))


@pytest.mark.parametrize("truth", split(WITHOUT_PACKED_WEIGHTS, LONG_ON_SHAPES))
def test_shapes_alone_count_the_same(truth):
    with shapes_only() as mode:
        call = truth.build("cpu")
        mode.building, mode.pinned = False, True
        check(truth, count(call))
