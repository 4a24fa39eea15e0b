"""Figures that follow from others, and the least time of a loss."""

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.derived import JOINER_WIDTH, floor_s, round_value, sample_values, why_absent
from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Spec


def record(*measurements, round=0, **fields):
    return make_record(make_case(), *measurements, round=round, **fields)


def of(metric, *values, scope="total", **notes):
    return Measurement.of(metric, list(values), scope=scope, notes=notes)


def test_flops_per_audio_second_is_a_ratio_of_sums_over_the_batches():
    this = record(of(metrics.FLOPS, 10.0, 50.0), of(metrics.AUDIO_SECONDS, 1.0, 2.0))
    assert round_value(this, metrics.FLOPS_PER_AUDIO_SECOND) == (pytest.approx(60 / 3), 2)


def test_flops_per_token_counts_the_tokens_of_the_whole_call_also_for_a_stage():
    this = record(of(metrics.FLOPS, 90.0), of(metrics.FLOPS, 60.0, scope="stage:model"), of(metrics.TOKENS, 30.0))
    assert round_value(this, metrics.FLOPS_PER_TOKEN) == (3.0, 1)
    assert round_value(this, metrics.FLOPS_PER_TOKEN, "stage:model") == (2.0, 1)


def test_energy_per_audio_hour_rests_on_the_same_window_as_the_energy_does():
    windows = (20.0, 21.0, 40.0)
    this = record(of(metrics.ENERGY_GPU, *windows), of(metrics.AUDIO_SECONDS, 80.0))
    (energy, _) = round_value(this, metrics.ENERGY_GPU)
    (per_hour, samples) = round_value(this, metrics.ENERGY_PER_AUDIO_HOUR[metrics.ENERGY_GPU])
    assert energy == 21.0
    assert per_hour == pytest.approx(energy / 80 * 3600)
    assert samples == 3


def test_utilisation_is_all_arithmetic_over_time_over_the_peak():
    this = record(
        of(metrics.FLOPS, 1e9),
        of(metrics.FLOPS_BACKWARD, 2e9),
        of(metrics.LATENCY, 0.1, 0.1, 0.4),
        of(metrics.PEAK_FLOPS, 1e11),
    )
    assert round_value(this, metrics.MFU) == (pytest.approx(3e9 / 0.1 / 1e11), 3)


def test_utilisation_of_several_batches_at_the_peak_is_one():
    seconds = (1.0, 1.0, 1.0, 10.0)
    this = record(
        of(metrics.FLOPS, *(1e11 * s for s in seconds)),
        of(metrics.BYTES_MOVED, *(4e9 * s for s in seconds)),
        of(metrics.LATENCY, *seconds, *seconds, batches=4),
        of(metrics.PEAK_FLOPS, 1e11),
        of(metrics.PEAK_BANDWIDTH, 4e9),
    )
    assert round_value(this, metrics.MFU) == (pytest.approx(1.0), 8)
    assert round_value(this, metrics.BANDWIDTH) == (pytest.approx(4e9), 8)
    assert round_value(this, metrics.BANDWIDTH_SHARE) == (pytest.approx(1.0), 8)


def test_bandwidth_of_a_stage_is_held_against_the_peak_of_the_device():
    this = record(
        of(metrics.BYTES_MOVED, 5e8, scope="stage:model"),
        of(metrics.LATENCY, 0.5, scope="stage:model"),
        of(metrics.PEAK_BANDWIDTH, 4e9),
    )
    assert round_value(this, metrics.BANDWIDTH, "stage:model") == (1e9, 1)
    assert round_value(this, metrics.BANDWIDTH_SHARE, "stage:model") == (0.25, 1)


def test_a_call_that_waits_for_its_launches_takes_longer_than_its_kernels():
    this = record(of(metrics.LATENCY, 0.03, 0.03, 0.3), of(metrics.TIME_GPU, 0.01))
    assert round_value(this, metrics.LAUNCH_BOUND) == (pytest.approx(3.0), 3)


def test_what_was_counted_in_the_first_round_holds_for_the_others():
    counted = record(of(metrics.FLOPS, 1e9))
    later = record(of(metrics.LATENCY, 0.1), of(metrics.PEAK_FLOPS, 1e11), round=1)
    assert round_value(later, metrics.MFU) is None
    assert round_value(later, metrics.MFU, others=[counted]) == (pytest.approx(0.1), 1)


def test_what_varies_is_not_borrowed_from_another_round():
    slow = record(of(metrics.LATENCY, 0.1), of(metrics.PEAK_FLOPS, 1e11))
    later = record(of(metrics.FLOPS, 1e9), round=1)
    assert round_value(later, metrics.MFU, others=[slow]) is None


def test_the_reason_comes_from_what_is_missing():
    this = record(
        Measurement.absent(metrics.ENERGY_CPU, "no sensor"), Measurement.absent(metrics.PEAK_FLOPS, "no torch")
    )
    assert why_absent(this, metrics.ENERGY_PER_AUDIO_HOUR[metrics.ENERGY_CPU]) == "no sensor"
    assert why_absent(this, metrics.MFU, "stage:model") == "no torch"


def test_samples_of_a_figure_without_samples_of_its_own_are_its_round_value():
    this = record(of(metrics.FLOPS, 10.0), of(metrics.AUDIO_SECONDS, 2.0))
    assert sample_values(this, metrics.FLOPS_PER_AUDIO_SECOND) == [5.0]


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
