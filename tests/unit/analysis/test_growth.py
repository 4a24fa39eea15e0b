"""Growth that is known beforehand is found again, within its intervals; what cannot be told is not told."""

import math
import random

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.growth import (
    expected,
    exponent,
    fit,
    line_of,
    local_exponent,
    measured_span,
    quadratic_part,
    saturation,
)
from speechmeter.core import metrics
from speechmeter.core.types import Measurement

SIZES = (5.0, 10.0, 20.0, 40.0, 80.0)
SEEDS = range(40)


def cases(figure, seed=0, noise=0.03, rounds=5, sizes=SIZES, metric=metrics.LATENCY, axis="seconds"):
    """(size, records) of a figure of known growth, each round a few per cent off."""
    draw = random.Random(seed)
    return [
        (
            size,
            [
                make_record(
                    make_case(**{axis: size if axis == "seconds" else int(size)}),
                    Measurement.of(metric, [figure(size) * math.exp(draw.gauss(0, noise))]),
                    Measurement.of(metrics.ITEMS, [size]),
                    round=round,
                )
                for round in range(rounds)
            ],
        )
        for size in sizes
    ]


def line(figure, **changes):
    found = line_of(cases(figure, **changes), changes.get("metric", metrics.LATENCY))
    assert found is not None
    return found


def covered(estimate_of, truth, seeds=SEEDS):
    """The share of seeds at which the truth lies inside the interval."""
    found = [estimate_of(seed) for seed in seeds]
    return sum(e.low <= truth <= e.high for e in found) / len(found)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.37, 2.0])
def test_a_known_exponent_lies_inside_its_interval(power):
    assert covered(lambda seed: exponent(line(lambda x: 0.02 * x**power, seed=seed)), power) >= 0.9
    assert covered(lambda seed: local_exponent(line(lambda x: 0.02 * x**power, seed=seed)), power) >= 0.9


def test_the_interval_is_narrow_enough_to_tell_linear_from_quadratic():
    found = exponent(line(lambda x: 0.02 * x))
    assert found.high < 1.2 and found.low > 0.8


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_a_known_quadratic_part_lies_inside_its_interval(share):
    def figure(x):
        return 0.1 + (1 - share) * 0.9 * x / 80 + share / (1 - share) * (0.1 + (1 - share) * 0.9) * (x / 80) ** 2

    assert covered(lambda seed: quadratic_part(line(figure, seed=seed)), 100 * share) >= 0.9


def test_a_curve_is_found_again_without_noise_and_has_no_negative_part():
    exact = fit(SIZES, [2 + 3 * x + 0.25 * x * x for x in SIZES])
    assert exact.quadratic_share(80) == pytest.approx(1600 / (2 + 240 + 1600))
    assert exact.worst(SIZES, [2 + 3 * x + 0.25 * x * x for x in SIZES]) < 1e-9
    bent_down = fit(SIZES, [math.sqrt(x) for x in SIZES])
    assert min(bent_down.parts) == 0.0 and all(part >= 0 for part in bent_down.parts)


def test_a_curve_is_the_nearest_of_all_that_have_no_negative_part():
    optimize = pytest.importorskip("scipy.optimize")
    draw = random.Random(3)
    for _ in range(50):
        ys = [draw.uniform(0.5, 3) * x ** draw.uniform(0.3, 2.2) for x in SIZES]
        rows = [[(x / 80) ** power / y for power in range(3)] for x, y in zip(SIZES, ys, strict=True)]
        assert fit(SIZES, ys).parts == pytest.approx(optimize.nnls(rows, [1.0] * 5)[0], rel=1e-6, abs=1e-9)


def test_what_is_no_power_law_has_a_wide_interval_and_a_steeper_end():
    bent = line(lambda x: 1 + 0.05 * x + 0.002 * x * x, noise=0.005)
    over_all, at_the_end = exponent(bent), local_exponent(bent)
    assert over_all.high - over_all.low > 0.3
    assert at_the_end.low > over_all.value


def test_a_figure_beyond_the_sizes_lies_inside_its_interval_and_is_called_extrapolated():
    def figure(x):
        return 0.05 + 0.01 * x + 0.0002 * x * x

    assert covered(lambda seed: expected(line(figure, seed=seed), 160.0), figure(160.0)) >= 0.9
    assert expected(line(figure), 160.0).statistic == "extrapolated"
    assert expected(line(figure), 30.0).statistic == "interpolated"
    assert expected(line(figure), 30.0).value == pytest.approx(figure(30.0), rel=0.05)


def test_nothing_is_extrapolated_without_an_interval():
    assert expected(line(lambda x: x, rounds=1), 160.0) is None
    assert expected(line(lambda x: x, sizes=(1.0, 2.0, 4.0)), 160.0) is None


def test_one_round_has_no_interval_but_that_of_the_regression():
    alone = line(lambda x: 0.1 * x, rounds=1)
    assert local_exponent(alone).low is None
    assert quadratic_part(alone).low is None
    assert exponent(alone).low is not None


def test_two_rounds_give_bounds_that_are_finite():
    found = expected(line(lambda x: 0.1 * x, rounds=2, noise=0.2), 1000.0)
    assert all(math.isfinite(bound) for bound in (found.low, found.high))


def test_exact_figures_have_a_part_and_no_spread():
    counted = line(lambda x: 3 * x + x * x, noise=0.0, rounds=1, metric=metrics.FLOPS)
    part = quadratic_part(counted)
    assert part.value == pytest.approx(100 * 6400 / 6640)
    assert part.low is None


def test_sizes_that_are_nearly_alike_do_not_make_the_slope_at_the_end():
    found = line(lambda x: 0.1 * x, sizes=(8.0, 16.0, 32.0, 56.0, 57.0), noise=0.02)
    assert local_exponent(found).value == pytest.approx(1.0, abs=0.1)


def test_points_are_the_figures_of_estimate():
    given = cases(lambda x: 0.1 * x)
    found = line_of(given, metrics.LATENCY)
    assert found.values == pytest.approx([estimate(records, metrics.LATENCY).value for _, records in given])


def test_points_of_what_is_exact_are_the_figures_of_estimate_too():
    counted = [
        (size, [make_record(make_case(seconds=size), Measurement.of(metrics.FLOPS, [count]), round=round)
                for round, count in enumerate((size, size, 2 * size))])
        for size in SIZES
    ]  # fmt: skip
    found = line_of(counted, metrics.FLOPS)
    assert found.values == pytest.approx([estimate(records, metrics.FLOPS).value for _, records in counted])
    assert found.values == pytest.approx(SIZES)


def test_a_curve_that_misses_by_more_than_a_tenth_fits_poorly():
    near, far = line(lambda x: 1 + x, noise=0.0), line(lambda x: 5.0 if x in (10.0, 40.0) else 1.0, noise=0.0)
    assert (near.miss_percent < 1e-6, near.fits_poorly) == (True, False)
    assert (far.miss_percent == 100 * far.curve.worst(far.sizes, far.values) > 10, far.fits_poorly) == (True, True)


def test_of_a_curve_that_comes_not_near_neither_part_nor_figure_is_given():
    far = line(lambda x: 1.0 if x < 30 else 3.0, noise=0.005)
    assert far.fits_poorly and quadratic_part(far) is None and expected(far, 15.0) is None


def test_at_a_size_that_was_measured_the_interval_holds_what_was_measured():
    bent = line(lambda x: x * (1.09 if x == 20 else 0.93 if x == 40 else 1.0), noise=0.001)
    assert 4 < bent.miss_percent < 10
    for size, measured in zip(bent.sizes, bent.values, strict=True):
        found = expected(bent, size)
        assert found.low <= measured <= found.high


def test_below_the_sizes_the_slope_at_that_end_counts():
    flat_then_steep = line(lambda x: 1.0 + 0.001 * x * x, noise=0.005)
    found = expected(flat_then_steep, 1.0)
    assert found.statistic == "extrapolated"
    assert 0.8 < found.low < 1.001 < found.high < 1.1


def test_the_span_of_several_lines():
    short, long = (line(lambda x: x, sizes=sizes) for sizes in ((2.0, 4.0), (1.0, 8.0)))
    assert measured_span([short, long]) == (1.0, 8.0)


def test_a_growth_of_no_bytes_is_left_out_and_one_size_is_no_line():
    given = cases(lambda x: 0.0 if x < 10 else x, metric=metrics.MEMORY_CPU_PEAK)
    assert line_of(given, metrics.MEMORY_CPU_PEAK).sizes == [10.0, 20.0, 40.0, 80.0]
    assert line_of(given[:2], metrics.MEMORY_CPU_PEAK) is None


def test_a_size_that_stands_twice_is_no_line():
    assert line_of(cases(lambda x: x, sizes=(1.0, 1.0)), metrics.LATENCY) is None
    assert line_of(cases(lambda x: x, sizes=(1.0, 1.0, 2.0)), metrics.LATENCY) is None


def saturating(figure, **changes):
    return saturation(cases(figure, sizes=(1, 2, 4, 8, 16), axis="batch", **changes))


def test_the_saturating_batch_is_the_smallest_near_the_best():
    """Throughput b / (1 + b/4): 0.8, 1.33, 2, 2.67, 3.2; the best so far is 3.2, nine tenths of it 2.88."""
    assert saturating(lambda b: 1 + b / 4, noise=0.0).batch is None
    found = saturating(lambda b: 1 + b, noise=0.0)  # 0.5, 0.67, 0.8, 0.889, 0.941: from 0.847 on
    assert (found.batch.value, found.batch.low, found.batch.high) == (8, 8, 8)
    assert found.best.value == pytest.approx(16 / 17)


def test_a_saturating_batch_that_noise_leaves_open_has_an_interval():
    drawn = [saturating(lambda b: 1 + b, noise=0.08, seed=seed).batch for seed in SEEDS]
    found = [batch for batch in drawn if batch is not None]
    assert any(batch.low < batch.high for batch in found)
    assert sum(batch.low <= 8 <= batch.high for batch in found) >= 0.9 * len(found)


def test_throughput_that_still_rises_is_not_called_saturated():
    assert saturating(lambda b: 1.0, noise=0.01).batch is None
    assert saturating(lambda b: b, noise=0.0).batch.value == 1
