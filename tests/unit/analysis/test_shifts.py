"""Level shifts on synthetic series whose truth is known."""

import math

import numpy as np
import pytest

from speechmeter.analysis.history import LEAST, joined, level_starts, noise_of, settled

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
