import math
import random

import numpy as np
import pytest
from conftest import make_case, make_record
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from speechmeter.analysis.estimate import STATISTICS, Estimate, estimate, real_time, samples_needed, t_quantile
from speechmeter.core import metrics
from speechmeter.core.types import Measurement, by_turns


def rounds(*samples, audio_s=None, items=1):
    records = []
    for number, values in enumerate(samples):
        notes = by_turns(audio_s or ())
        found = [Measurement.of(metrics.LATENCY, values, notes=notes), Measurement.of(metrics.ITEMS, [items])]
        if audio_s is not None:
            found.append(Measurement.of(metrics.AUDIO_SECONDS, audio_s))
        records.append(make_record(make_case(), *found, round=number))
    return records


def test_the_figure_is_the_geometric_mean_of_round_medians():
    found = estimate(rounds([1, 2, 100], [8, 8, 8]), metrics.LATENCY)
    assert found.value == pytest.approx(math.sqrt(2 * 8))
    assert (found.rounds, found.samples_per_round) == (2, 3)


def test_the_interval_is_t_on_logs():
    medians = [1.0, 1.2, 0.9, 1.1, 1.05]
    found = estimate(rounds(*([m] for m in medians)), metrics.LATENCY)
    logs = np.log(medians)
    low, high = stats.t.interval(0.95, 4, loc=logs.mean(), scale=stats.sem(logs))
    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)))


def test_tabled_quantiles_are_scipys():
    assert [t_quantile(d) for d in range(1, 60)] == pytest.approx(stats.t.ppf(0.975, range(1, 60)), rel=1e-9)


def test_one_round_has_no_interval():
    found = estimate(rounds([1, 2, 3]), metrics.LATENCY)
    assert (found.value, found.low, found.high) == (2, None, None)


def test_the_interval_of_a_negative_figure_is_no_negative_share():
    found = Estimate(metric=metrics.ENERGY_GPU_NET, value=-2.0, low=-3.0, high=-1.0, rounds=5, samples_per_round=1)
    assert found.half_width == 0.5


def test_rtf_divides_by_true_seconds_of_the_whole_batch():
    assert estimate(rounds([2.0, 4.0, 6.0], audio_s=[8.0]), metrics.RTF).value == 0.5


def test_rtfx_is_a_ratio_of_sums_over_batches_in_turn():
    found = estimate(rounds([1.0, 3.0], audio_s=[10.0, 20.0]), metrics.RTFX)
    assert found.value == pytest.approx(30 / 4)


def test_rtf_of_several_batches_is_the_inverse_of_rtfx():
    records = rounds([1.0, 3.0, 1.5, 3.5], audio_s=[1.0, 20.0])
    assert estimate(records, metrics.RTF).value == pytest.approx((1.0 + 3.0 + 1.5 + 3.5) / 42)
    assert estimate(records, metrics.RTF).value == pytest.approx(1 / estimate(records, metrics.RTFX).value)


@pytest.mark.parametrize("audio_s", [[8.0], [10.0, 20.0]])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_inverse_factor_is_the_inverse_of_the_factor_beside_it(statistic, audio_s):
    noise = random.Random(1)
    times = [[noise.lognormvariate(0, 0.8) for _ in range(200)] for _ in range(4)]
    records = rounds(*times, audio_s=audio_s)
    factor, inverse = (estimate(records, metric, "total", statistic) for metric in (metrics.RTF, metrics.RTFX))
    assert inverse.value == pytest.approx(1 / factor.value)
    if factor.low is not None and factor.low > 0:
        assert (inverse.low, inverse.high) == pytest.approx((1 / factor.high, 1 / factor.low))


def test_the_real_time_factor_is_the_latency_over_the_audio():
    records = rounds([1.0, 1.0, 9.0], [2.0, 2.0, 7.0], audio_s=[4.0])
    assert estimate(records, metrics.RTF).value == pytest.approx(estimate(records, metrics.LATENCY).value / 4)


def test_throughput_counts_items():
    assert estimate(rounds([0.5, 0.5], items=4), metrics.THROUGHPUT).value == 8


def test_no_audio_no_rtf():
    assert estimate(rounds([1.0]), metrics.RTF) is None


def test_a_growth_of_zero_bytes_is_a_figure():
    records = [
        make_record(make_case(), Measurement.of(metrics.MEMORY_CPU_PEAK, [value]), round=n)
        for n, value in enumerate([0.0, 4.0])
    ]
    assert estimate(records, metrics.MEMORY_CPU_PEAK).value == 2


def test_an_exact_metric_has_no_interval():
    records = [make_record(make_case(), Measurement.of(metrics.PARAMETERS, [94371712.0]), round=n) for n in range(3)]
    found = estimate(records, metrics.PARAMETERS)
    assert (found.value, found.low) == (94371712, None)


def test_the_classic_statistics_are_over_all_samples():
    records = rounds([1.0, 2.0, 3.0], [4.0, 5.0, 9.0])
    values = np.array([1, 2, 3, 4, 5, 9.0])
    found = estimate(records, metrics.LATENCY, statistic="mean-sd")
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.value == pytest.approx(values.std(ddof=1))
    three = estimate(records, metrics.LATENCY, statistic="mean+3sd")
    assert three.value == pytest.approx(values.mean() + 3 * values.std(ddof=1))


def test_the_largest_is_of_all_samples():
    found = estimate(rounds([1.0, 9.0, 3.0], [4.0]), metrics.LATENCY, statistic="max")
    assert (found.value, found.low, found.rounds) == (9.0, None, 2)


@pytest.mark.parametrize(("statistic", "needed"), [("p90", 29), ("p95", 59), ("p99", 299)])
def test_a_percentile_needs_enough_samples(statistic, needed):
    assert samples_needed(statistic) == needed
    values = list(np.random.default_rng(0).permutation(np.arange(1.0, needed + 1)))
    assert estimate(rounds(values[:-1]), metrics.LATENCY, statistic=statistic) is None
    found = estimate(rounds(values), metrics.LATENCY, statistic=statistic)
    assert found.value == pytest.approx(np.percentile(values, int(statistic[1:]), method="inverted_cdf"))


def test_two_cases_are_never_mixed():
    with pytest.raises(ValueError, match="one case"):
        estimate([make_record(make_case()), make_record(make_case(seconds=2.0))], metrics.LATENCY)


@pytest.mark.parametrize(
    ("low", "value", "high", "verdict"),
    [
        (0.5, 0.6, 0.7, "real-time"),
        (1.1, 1.2, 1.3, "not real-time"),
        (0.9, 1.0, 1.1, "undecided"),
        (None, 0.5, None, "real-time"),
        (None, 1.5, None, "not real-time"),
    ],
)
def test_real_time_is_undecided_when_the_interval_crosses_one(low, value, high, verdict):
    figure = Estimate(metric=metrics.RTF, value=value, low=low, high=high, rounds=2, samples_per_round=1)
    assert real_time(figure) == verdict


def test_the_interval_covers_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(7)
    hits = 0
    for _ in range(1000):
        found = estimate(rounds(*([v] for v in np.exp(generator.normal(0.3, 0.2, 6)))), metrics.LATENCY)
        hits += found.low <= math.exp(0.3) <= found.high
    assert 930 <= hits <= 970


@given(st.lists(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=5), min_size=2, max_size=6), st.floats(0.01, 100))
def test_scaling_the_samples_scales_the_figure(samples, factor):
    one = estimate(rounds(*samples), metrics.LATENCY)
    scaled = estimate(rounds(*([v * factor for v in values] for values in samples)), metrics.LATENCY)
    assert scaled.value == pytest.approx(one.value * factor, rel=1e-9)
    assert one.low <= one.value * (1 + 1e-12)
    assert one.value <= one.high * (1 + 1e-12)
