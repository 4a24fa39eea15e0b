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


def check(truth, counted):
    assert counted.forward == pytest.approx(truth.forward, rel=TOLERANCE)
    if truth.backward is not None:
        assert counted.backward == pytest.approx(truth.backward_on("cpu"), rel=TOLERANCE)
    assert counted.unknown() == {}


@pytest.mark.parametrize("truth", ON_CPU, ids=lambda truth: truth.name)
def test_a_real_run_counts_what_the_formula_says(truth):
    check(truth, count(truth.build("cpu")))


@pytest.mark.parametrize("truth", WITHOUT_PACKED_WEIGHTS, ids=lambda truth: truth.name)
def test_shapes_alone_count_the_same(truth):
    with shapes_only() as mode:
        call = truth.build("cpu")
        mode.building, mode.pinned = False, True
        check(truth, count(call))
