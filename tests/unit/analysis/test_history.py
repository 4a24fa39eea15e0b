"""Levels of a series, and the shifts between them."""

import math
import random

import numpy as np
import pytest
from conftest import make_case

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.history import (
    LEAST,
    Point,
    history_exit,
    joined,
    level_starts,
    machine_of,
    noise_of,
    series_of,
    settled,
)
from speechmeter.core import metrics

FLOOR = 0.002


def starts(values, least_step=0.0):
    return joined(list(values), level_starts(list(values), noise_of(list(values), FLOOR)), least_step)


def series(seed, spread, *levels):
    """(ratio, runs) of each level, as logarithms with normal noise."""
    noise = np.random.default_rng(seed).normal(0, spread, sum(runs for _, runs in levels))
    return np.concatenate([np.full(runs, math.log(ratio)) for ratio, runs in levels]) + noise


@pytest.mark.parametrize("spread", [0.003, 0.01, 0.03, 0.08, 0.2])
def test_fifty_flat_histories_have_no_shift(spread):
    lengths = [4, 5, 8, 12, 20, 30, 50, 8, 15, 25] * 5
    assert [starts(series(seed, spread, (1.0, runs))) for seed, runs in enumerate(lengths)] == [[0]] * 50


@pytest.mark.parametrize("seed", range(20))
def test_known_shifts_are_found_within_one_run(seed):
    truth = [(1.0, 12), (1.3, 9), (1.1, 14), (1.25, 6)]
    found = starts(series(seed, 0.02, *truth))
    assert len(found) == 4
    assert np.abs(np.array(found) - [0, 12, 21, 35]).max() <= 1


@pytest.mark.parametrize(("before", "after"), [(2, 2), (10, 2), (2, 10), (30, 2)])
def test_two_runs_at_either_end_are_a_level(before, after):
    flat = [0.001 * (-1) ** n for n in range(before + after)]
    assert starts([value + (0.3 if n >= before else 0.0) for n, value in enumerate(flat)]) == [0, before]


@pytest.mark.parametrize("place", [0, 1, 7, 18, 19])
@pytest.mark.parametrize("height", [0.05, 0.1, 0.5, 3.0])
def test_a_single_wild_run_is_no_shift_wherever_it_stands(place, height):
    values = [0.01 * math.sin(3 * n) for n in range(20)]
    values[place] += height
    assert starts(values) == [0]


def test_a_wild_run_does_not_move_the_border_beside_it():
    values = [0.002 * (-1) ** n + (0.3 if n >= 10 else 0.0) for n in range(20)]
    values[8] += 2.0
    assert starts(values) == [0, 10]


def test_steps_that_do_not_count_are_joined_and_larger_ones_stay():
    values = [0.0] * 8 + [0.03] * 8 + [0.3] * 8
    assert starts(values) == [0, 8, 16]
    assert starts(values, least_step=0.05) == [0, 16]


def test_of_every_level_some_run_is_settled():
    assert settled([0.0, 1.0, 0.0, 9.0, 1.0], [0, 3], FLOOR) == [True, False, True, True, True]


def test_every_level_has_at_least_two_runs():
    for seed in range(30):
        values = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], 25)
        borders = [*starts(values), 25]
        assert np.diff(borders).min() >= LEAST


def test_noise_is_that_of_the_series_without_its_shifts():
    found = noise_of(list(series(3, 0.05, (1.0, 200), (3.0, 200), (0.5, 200))), FLOOR)
    assert found == pytest.approx(0.05, rel=0.1)
    assert noise_of([1.0, 1.0, 1.0], FLOOR) == FLOOR
    assert noise_of([1.0], FLOOR) == FLOOR


def points(values, metric=metrics.LATENCY, half=0.001, facts=None):
    return [
        Point(
            run=f"r{n}",
            started=f"2026-05-{n + 1:02d}",
            figure=Estimate(
                metric=metric, value=v, low=v * (1 - half), high=v * (1 + half), rounds=3, samples_per_round=1
            ),
            facts={"git": f"c{n}", **(facts or {}).get(n, {})},
        )
        for n, v in enumerate(values)
    ]


def found(values, metric=metrics.LATENCY, min_effect=0.05, **options):
    return series_of(make_case(), metric, "desk", points(values, metric, **options), min_effect)


def test_a_shift_has_its_commit_the_one_before_and_its_ratio():
    made = found([1.0, 1.01, 0.99, 1.0, 1.3, 1.31, 1.29, 1.3])
    first, second = made.levels
    assert (first.shift, len(first.points), len(second.points)) == (None, 4, 4)
    assert (second.points[0].commit, second.shift.before.commit) == ("c4", "c3")
    mean = math.prod([1.3, 1.31, 1.29, 1.3]) / math.prod([1.0, 1.01, 0.99, 1.0])
    assert second.shift.ratio == pytest.approx(mean**0.25)
    assert second.shift.low < second.shift.ratio < second.shift.high
    assert (second.shift.word, second.shift.regression, made.regressed) == ("SLOWER", True, True)


def test_the_order_is_that_of_time_whatever_order_runs_are_read_in():
    given = points([1.0, 1.01, 0.99, 1.0, 1.3, 1.31, 1.29, 1.3])
    made = series_of(make_case(), metrics.LATENCY, "desk", given[::-1], 0.05)
    assert [point.run for point in made.points] == [f"r{n}" for n in range(8)]
    assert made.levels[1].points[0].commit == "c4"


def test_a_regression_that_was_mended_is_none_any_more():
    made = found([1.0] * 4 + [1.5] * 4 + [1.0] * 4)
    assert [level.shift and level.shift.word for level in made.levels] == [None, "SLOWER", "FASTER"]
    assert (made.regressed, history_exit([made])) == (False, 0)


def test_of_a_rate_less_is_worse():
    made = found([10.0] * 5 + [8.0] * 5, metrics.RTFX)
    assert (made.levels[1].shift.word, made.regressed, history_exit([made])) == ("SLOWER", True, 1)


def test_what_is_counted_shifts_by_the_smallest_step_and_has_no_interval():
    made = found([1000.0] * 3 + [1001.0] * 3, metrics.PARAMETERS)
    assert (made.levels[1].shift.word, made.levels[1].shift.low) == ("MORE", None)
    assert len(found([1000.0] * 3 + [1001.0] * 3).levels) == 1


def test_a_single_run_with_another_count_is_a_shift_and_none_is_wild():
    made = found([1e9, 1e9, 1e9, 1.5e9], metrics.FLOPS)
    assert [(len(level.points), level.wild) for level in made.levels] == [(3, 0), (1, 0)]
    assert made.regressed and made.levels[1].shift.ratio == pytest.approx(1.5)
    assert found([1e9, 2e9], metrics.FLOPS).judged and not found([1e9], metrics.FLOPS).judged


def test_what_changed_with_a_shift_is_named_beside_it_and_the_commit_is_not_repeated():
    new = {"packages": {"torch": "3"}}
    facts = {n: {"packages": {"torch": "2"}} if n < 4 else new for n in range(8)}
    made = found([1.0] * 4 + [1.5] * 4, facts=facts)
    assert made.levels[1].shift.changed == ("packages torch: '2' before, '3' after",)


def test_a_wild_run_is_counted_apart_and_does_not_move_its_level():
    made = found([1.0, 1.01, 0.99, 1.0, 4.0, 1.0, 1.01, 0.99, 1.0])
    assert (len(made.levels), made.levels[0].wild) == (1, 1)
    assert made.levels[0].figure.value == pytest.approx(1.0, rel=0.005)


@pytest.mark.parametrize(("before", "after"), [(10, 10), (2, 2), (11, 10), (3, 17)])
def test_a_shift_too_small_to_count_makes_no_run_wild(before, after):
    made = found([1.0] * before + [1.03] * after)
    (level,) = made.levels
    assert (level.wild, level.figure.rounds) == (0, before + after)
    assert level.figure.value == pytest.approx(1.03 ** (after / (before + after)))


def test_a_wild_run_beside_a_shift_too_small_to_count_is_still_wild():
    noise = random.Random(1)
    values = [(1.0 if n < 10 else 1.04) * math.exp(noise.gauss(0, 0.003)) for n in range(20)]
    values[5] = 2.0
    assert [(len(level.points), level.wild) for level in found(values).levels] == [(20, 1)]


def test_rounds_that_spread_inside_a_run_widen_the_noise_between_runs():
    steps = [1.0, 1.0, 1.2, 1.2, 1.0, 1.0]
    assert found(steps, half=0.5).noise > 0.1
    assert len(found(steps, half=0.5).levels) == 1


def test_three_runs_are_too_few_and_say_so_in_the_exit():
    made = found([1.0, 1.0, 2.0])
    assert (made.judged, len(made.levels), history_exit([made])) == (False, 1, 3)
    assert history_exit([made, found([1.0] * 4)]) == 0


def test_a_machine_is_its_host_processor_cores_and_gpu():
    facts = {"host": "a", "cpu": "x", "cores": [0, 1], "system": "1"}
    assert machine_of(facts, "") == machine_of({**facts, "system": "2"}, "")
    assert machine_of(facts, "") != machine_of({**facts, "cpu": "y"}, "")
    assert machine_of({}, "a") != machine_of({}, "b")
