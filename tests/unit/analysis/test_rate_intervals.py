"""Intervals of error rates: few errors, rare bad utterances, speakers."""

import numpy as np
import pytest
from scipy import stats

from speechmeter.analysis.rate_intervals import by_speaker, is_by_betting, rate_interval, share_interval


def test_no_error_in_twenty_utterances_is_not_certainly_none():
    low, high = rate_interval(((0.0, 10.0),) * 20)
    assert low == 0.0
    assert 0.1 < high < 0.3  # no interval at 95 % can be shorter than 14 % at its upper end: 0.05 = (1 − 0.14)^20


def test_more_utterances_without_an_error_say_more():
    highs = [rate_interval(((0.0, 10.0),) * n)[1] for n in (20, 80, 320)]
    assert highs == sorted(highs, reverse=True)
    assert highs[-1] < 0.03


def test_one_utterance_has_no_interval_and_two_have_a_wide_one():
    assert rate_interval(((1.0, 10.0),)) is None
    low, high = rate_interval(((1.0, 10.0), (0.0, 10.0)))
    assert low <= 0.05 <= high
    assert high > 0.7


def test_an_interval_holds_its_own_rate_also_beyond_the_cap():
    units = ((30.0, 10.0),) * 25
    low, high = rate_interval(units)
    assert low <= 3.0 <= high


def test_references_without_words_do_not_count():
    assert rate_interval(((2.0, 0.0), (1.0, 0.0))) is None
    units = tuple((float(n % 3 == 0), 5.0) for n in range(60))
    assert rate_interval((*units, (4.0, 0.0))) == pytest.approx(rate_interval(units), abs=0.02)


def sets(count, size, bad, seed):
    """Sets of utterances of which a few are bad; the rest have an error in 50 words."""
    noise = np.random.default_rng(seed)
    for _ in range(count):
        words = np.clip(np.round(np.exp(noise.normal(2.3, 0.5, size))), 1, 60)
        errors = noise.binomial(words.astype(int), 0.02).astype(float)
        wrong = noise.random(size) < bad
        errors[wrong] = np.round(words[wrong] * noise.uniform(0.6, 1.0, wrong.sum()))
        yield tuple(zip(errors.tolist(), words.tolist(), strict=True))


def truth(bad):
    errors, words = np.array(list(next(sets(1, 400_000, bad, 99)))).T
    return errors.sum() / words.sum()


@pytest.mark.parametrize(("size", "bad"), [(20, 0.04), (60, 0.04), (120, 0.02)])
def test_intervals_hold_with_rare_bad_utterances(size, bad):
    rate = truth(bad)
    held = [low <= rate <= high for low, high in map(rate_interval, sets(60, size, bad, size))]
    assert np.mean(held) >= 0.9


def test_many_errors_are_bounded_closely():
    noise = np.random.default_rng(0)
    words = noise.integers(5, 20, 400)
    units = tuple((float(noise.binomial(w, 0.1)), float(w)) for w in words)
    assert not is_by_betting(units)
    low, high = rate_interval(units)
    assert high - low < 0.035
    assert low < 0.1 < high


def test_a_difference_may_be_on_either_side_of_zero():
    few = ((1.0, 10.0), (-1.0, 10.0), *((0.0, 10.0),) * 30)
    low, high = rate_interval(few, signed=True)
    assert low < 0 < high
    many = tuple((float(n % 3), 10.0) for n in range(90))
    assert rate_interval(many, signed=True)[0] > 0
    mirrored = rate_interval(tuple((-errors, words) for errors, words in many), signed=True)
    assert mirrored[1] < 0


def test_utterances_of_one_speaker_are_one_unit():
    units = tuple((float(n % 2), 10.0) for n in range(60))
    speakers = [f"s{n // 10}" for n in range(60)]
    assert by_speaker(units, speakers) == ((5.0, 100.0),) * 6
    assert by_speaker(units, ["a", "b"] * 30) == units  # two speakers say nothing about others
    assert by_speaker(units, [*speakers[:-1], ""]) == units
    assert by_speaker(units, ()) == units


def test_speakers_that_differ_widen_the_interval():
    noise = np.random.default_rng(4)
    rates = noise.uniform(0, 0.4, 30)
    units, speakers = [], []
    for speaker, rate in enumerate(rates):
        for _ in range(10):
            units.append((float(noise.binomial(10, rate)), 10.0))
            speakers.append(str(speaker))
    alone = rate_interval(tuple(units))
    grouped = rate_interval(by_speaker(units, speakers))
    assert grouped[1] - grouped[0] > 1.3 * (alone[1] - alone[0])


@pytest.mark.parametrize(("count", "total"), [(0, 20), (20, 20), (7, 20), (1, 300)])
def test_a_share_has_the_exact_interval(count, total):
    exact = stats.binomtest(count, total).proportion_ci(0.95, method="exact")
    assert share_interval(count, total) == pytest.approx((exact.low, exact.high))
