import math

import numpy as np
import pytest
from scipy import stats

from speechmeter.analysis.difference import Variance, moderated


def drawn(count, degrees, prior_degrees=math.inf, common=0.04, seed=0):
    """Sample variances of cells whose true variances scatter as the prior says."""
    noise = np.random.default_rng(seed)
    true = np.full(count, common)
    if not math.isinf(prior_degrees):
        true = common * prior_degrees / noise.chisquare(prior_degrees, count)
    return true, [Variance(value=v * noise.chisquare(degrees) / degrees, degrees=degrees) for v in true]


def test_equal_variances_become_one_that_all_cells_know():
    _, found = drawn(200, 4)
    steadied = moderated(found)
    assert np.mean([one.value for one in steadied]) == pytest.approx(0.04, rel=0.1)
    assert np.ptp([one.value for one in steadied]) < 0.1 * np.ptp([one.value for one in found])
    assert steadied[0].degrees > 100


@pytest.mark.parametrize("prior", [4, 10])
def test_the_weight_of_the_common_variance_is_found(prior):
    _, found = drawn(4000, 4, prior, seed=prior)
    assert moderated(found)[0].degrees - 4 == pytest.approx(prior, rel=0.3)


def test_steadied_variances_are_nearer_to_the_truth():
    true, found = drawn(300, 4, 10, seed=5)
    own = np.mean([(math.log(one.value) - math.log(t)) ** 2 for one, t in zip(found, true, strict=True)])
    steadied = np.mean(
        [(math.log(one.value) - math.log(t)) ** 2 for one, t in zip(moderated(found), true, strict=True)]
    )
    assert steadied < 0.5 * own


def test_a_test_with_them_keeps_its_level():
    """Five rounds of sixty equal cells: t with the steadied variance and its degrees exceeds its 99 % point in 1 %."""
    noise = np.random.default_rng(2)
    beyond = []
    for _ in range(200):
        rounds = noise.normal(0, 0.07, (60, 5))
        steadied = moderated([Variance(value=float(row.var(ddof=1)), degrees=4) for row in rounds])
        t = [row.mean() / math.sqrt(one.value / 5) for row, one in zip(rounds, steadied, strict=True)]
        beyond += [stats.t.sf(value, one.degrees) < 0.01 for value, one in zip(t, steadied, strict=True)]
    assert np.mean(beyond) == pytest.approx(0.01, abs=0.003)


@pytest.mark.parametrize("values", [[], [0.1], [0.1, 0.2, 0.3, 0.4], [0.0] * 8])
def test_too_few_cells_or_none_that_vary_are_left_as_they_are(values):
    found = [Variance(value=value, degrees=4) for value in values]
    assert moderated(found) == found


def test_a_cell_that_does_not_vary_is_not_trusted_among_others_that_do():
    steadied = moderated([Variance(value=value, degrees=4) for value in (0.0, 0.1, 0.2, 0.1, 0.15, 0.12)])
    assert steadied[0].value > 0.005
