"""Floors of a transducer loss: the figures of the workload worked out by hand."""

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.derived import JOINER_WIDTH, floor_s
from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Spec

TRUE, PADDED = 680_830.0, 1_360_277.0
LOSS = {"part": "loss", "vocabulary": 500, "dtype": "float32"}


def test_the_loss_reads_true_logits_once_and_writes_padded_gradients_once():
    found = floor_s(LOSS, cells=TRUE, padded=PADDED, bytes_per_s=4.25e12, flop_per_s=None)
    assert found == pytest.approx(0.96e-3, rel=0.01)
    half = floor_s({**LOSS, "dtype": "bfloat16"}, cells=TRUE, padded=PADDED, bytes_per_s=4.25e12, flop_per_s=None)
    assert half == pytest.approx(found / 2)


def test_the_step_computes_three_products():
    found = floor_s({**LOSS, "part": "step"}, cells=TRUE, padded=PADDED, bytes_per_s=None, flop_per_s=48e12)
    assert found == pytest.approx(3 * 2 * TRUE * 512 * 500 / 48e12)


def test_what_is_no_loss_or_lacks_its_peak_has_no_floor():
    assert floor_s({"dtype": "float32"}, cells=1, padded=1, bytes_per_s=1.0, flop_per_s=1.0) is None
    assert floor_s(LOSS, cells=1, padded=1, bytes_per_s=None, flop_per_s=1.0) is None
    assert floor_s({**LOSS, "part": "step"}, cells=1, padded=1, bytes_per_s=1.0, flop_per_s=None) is None


def test_the_width_is_that_of_the_subject():
    step = pytest.importorskip("speechmeter.subjects.losses.step", reason="needs torch")
    assert step.WIDTH == JOINER_WIDTH


@pytest.mark.parametrize(("source", "ratio"), [("ours", 4.0), ("ours-pruned", None)])
def test_a_pruned_loss_is_not_held_to_the_floor_of_an_exact_one(source, ratio):
    case = make_case("a", subject=Spec(plugin="transducer-loss", name=source, source=source), **LOSS)
    record = make_record(
        case,
        Measurement.of(metrics.LATENCY, [8.0]),
        Measurement.of(metrics.CELLS, [1.0, 3.0]),
        Measurement.of(metrics.CELLS_PADDED, [2.0, 6.0]),
        Measurement.of(metrics.PEAK_BANDWIDTH, [6.0 * 500 * 4 / 2]),
    )
    found = estimate([record], metrics.FLOOR_RATIO)
    assert found is None if ratio is None else found.value == pytest.approx(ratio)
