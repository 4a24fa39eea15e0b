"""Rank correlation: against scipy's, ties, and what is too little."""

import math
import random

import pytest

from speechmeter.analysis.intervals import rank_correlation


@pytest.mark.parametrize("seed", range(5))
def test_rho_is_scipys(seed):
    stats = pytest.importorskip("scipy.stats", reason="needs scipy")
    draw = random.Random(seed)
    first = [draw.choice([1, 2, 3, 5, 8]) + draw.random() * (seed % 2) for _ in range(9)]
    second = [value + 4 * draw.random() for value in first]
    found = rank_correlation(first, second)
    assert found.value == pytest.approx(stats.spearmanr(first, second).statistic)
    assert found.low < found.value < found.high
    assert found.samples_per_round == 9


def test_a_perfect_order_of_few_says_less_than_one_of_many():
    few = rank_correlation([1, 2, 3, 4, 5], [10, 20, 30, 40, 50])
    many = rank_correlation(list(range(20)), list(range(20)))
    assert few.value == many.value == pytest.approx(1.0)
    assert few.low < 0.5 < 0.9 < many.low < 1.0


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    """Pairs of normals with a known correlation: rho = 6 / pi · asin(r / 2)."""
    draw = random.Random(1)
    truth = 6 / math.pi * math.asin(0.6 / 2)
    held = 0
    for _ in range(400):
        first = [draw.gauss(0, 1) for _ in range(12)]
        second = [0.6 * a + 0.8 * draw.gauss(0, 1) for a in first]
        found = rank_correlation(first, second)
        held += found.low <= truth <= found.high
    assert 0.90 <= held / 400 <= 0.99


@pytest.mark.parametrize(("first", "second"), [([1, 2, 3], [1, 2, 3]), ([1, 1, 1, 1], [1, 2, 3, 4])])
def test_too_few_points_or_no_spread_have_none(first, second):
    assert rank_correlation(first, second) is None
