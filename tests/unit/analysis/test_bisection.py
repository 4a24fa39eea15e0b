"""A search by halves finds what trying all finds, in few trials, from wherever it starts."""

import math

import pytest

from speechmeter.analysis.frontier import Bounds, largest_and_smallest, next_size, trials_left


def searched(truth, bounds):
    """Sizes tried, and which of them fit: all up to `truth` do."""
    tried = {}
    while (size := next_size(tried, bounds)) is not None:
        assert size not in tried and 1 <= size <= bounds.most
        tried[size] = size <= truth
    return tried


@pytest.mark.parametrize("start", [1, 3, 64, 500])
@pytest.mark.parametrize("truth", [0, 1, 2, 3, 17, 63, 64, 65, 127, 300, 511, 512])
def test_finds_what_trying_all_finds_and_shows_both_sides_of_the_edge(truth, start):
    fits, fails = largest_and_smallest(searched(truth, Bounds(start=start, most=512)))
    assert fits == max((size for size in range(1, 513) if size <= truth), default=None)
    assert fails == (truth + 1 if truth < 512 else None)


@pytest.mark.parametrize("truth", [1, 10, 1000, 65_000])
def test_the_number_of_trials_grows_with_the_logarithm(truth):
    assert len(searched(truth, Bounds(start=1, most=10**6))) <= 2 * math.log2(truth) + 3


def test_within_a_share_the_search_ends_sooner_and_stays_within_it():
    tried = searched(12_345, Bounds(start=1, most=10**6, within=0.05))
    fits, fails = largest_and_smallest(tried)
    assert fits <= 12_345 < fails and fails - fits <= 0.05 * fits
    assert len(tried) < len(searched(12_345, Bounds(start=1, most=10**6)))


def test_nothing_above_the_cap_is_tried():
    tried = searched(10**9, Bounds(start=3, most=100))
    assert max(tried) == 100
    assert largest_and_smallest(tried) == (100, None)


def test_what_fits_above_a_failure_does_not_count():
    assert largest_and_smallest({4: True, 5: False, 8: True}) == (4, 5)


@pytest.mark.parametrize("truth", [5, 200])
def test_once_both_sides_are_known_the_trials_left_are_never_fewer_than_come(truth):
    bounds = Bounds(start=8, most=512)
    order = list(searched(truth, bounds).items())
    known = [made for made in range(len(order) + 1) if len({fits for _, fits in order[:made]}) == 2]
    assert len(known) > 2
    for made in known:
        assert 0 <= trials_left(dict(order[:made]), bounds) - (len(order) - made) <= 1


def test_some_trials_are_expected_before_both_sides_are_known_and_none_at_the_cap():
    bounds = Bounds(start=8, most=512)
    assert trials_left({}, bounds) > 0 and trials_left({8: True}, bounds) > 0 and trials_left({8: False}, bounds) > 0
    assert trials_left({512: True}, bounds) == 0
