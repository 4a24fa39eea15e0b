"""Scores from counts: sums, the bootstrap interval against simulated truth, imported figures."""

import numpy as np
import pytest
from conftest import make_case, make_record

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.scores import score_interval, score_of
from speechmeter.core import metrics
from speechmeter.core.types import Measurement


def rows_of(errors, words):
    return tuple(zip(map(float, errors), map(float, words), strict=True))


def scored(errors, words, **case):
    return make_record(
        make_case(**case),
        Measurement.of(metrics.WORD_ERRORS, errors),
        Measurement.of(metrics.REFERENCE_WORDS, words),
    )


def test_an_error_rate_is_of_sums_not_a_mean_of_rates():
    found = estimate([scored([1, 0], [1, 99])], metrics.WER)
    assert found.value == 1.0  # the mean of the two rates would be 50
    assert (found.statistic, found.samples_per_round) == ("betting", 2)


def test_a_later_round_without_counts_changes_nothing():
    first = scored([1, 2, 0], [5, 6, 7])
    later = make_record(first.case, Measurement.of(metrics.LATENCY, [1.0]), round=1)
    assert estimate([first, later], metrics.WER) == estimate([first], metrics.WER)
    assert estimate([later], metrics.WER) is None


def test_the_interval_is_near_that_of_resampling_by_hand():
    """The lower end is a bootstrap-t; the upper one allows for one more utterance that is entirely wrong."""
    draw = np.random.default_rng(5)
    words = draw.integers(3, 30, size=150)
    errors = draw.binomial(words, 0.1)
    low, high = score_interval(rows_of(errors, words), metrics.WER.id)
    other = np.random.default_rng(77)
    picks = other.integers(0, 150, size=(20_000, 150))
    rates = 100 * errors[picks].sum(axis=1) / words[picks].sum(axis=1)
    plain = np.percentile(rates, [2.5, 97.5])
    assert low == pytest.approx(plain[0], rel=0.05)
    assert plain[1] < high < plain[1] + 2
    assert score_interval(rows_of(errors, words), metrics.WER.id) == (low, high)  # seeded


@pytest.mark.parametrize(("count", "bounded"), [(1, False), (2, True), (19, True), (20, True)])
def test_a_single_utterance_has_no_interval(count, bounded):
    found = estimate([scored([1] * count, [4] * count)], metrics.WER)
    assert found.value == 25.0
    assert (found.low is not None) is bounded
    assert not bounded or found.low <= 25 <= found.high


def test_no_error_at_all_is_not_certain():
    found = estimate([scored([0] * 20, [10] * 20)], metrics.WER)
    assert (found.value, found.low, found.statistic) == (0.0, 0.0, "betting")
    assert 10 < found.high < 30


def test_completeness_has_the_exact_interval_of_a_share():
    record = make_record(make_case(), Measurement.of(metrics.ANSWERED, [1.0] * 20))
    found = estimate([record], metrics.COMPLETENESS)
    assert (found.value, found.high, found.statistic) == (100.0, 100.0, "exact")
    assert found.low == pytest.approx(100 * 0.025 ** (1 / 20), rel=1e-6)


def test_the_interval_is_over_speakers_where_they_are_known():
    words, errors = [10.0] * 200, [float(n // 20 % 2 * 3) for n in range(200)]
    speakers = [f"s{n // 20}" for n in range(200)]
    notes = {"utterances": [str(n) for n in range(200)], "speakers": speakers}
    counts = [Measurement.of(metrics.WORD_ERRORS, errors), Measurement.of(metrics.REFERENCE_WORDS, words)]
    known, unknown = (
        estimate(
            [make_record(make_case(), Measurement.of(metrics.ANSWERED, [1.0] * 200, notes=one), *counts)], metrics.WER
        )
        for one in (notes, {})
    )
    assert known.high - known.low > 2 * (unknown.high - unknown.low)


def test_the_interval_covers_the_truth_in_simulation():
    """Speakers differ: each utterance has an error rate of its own, so errors cluster and words are not independent."""
    draw = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        words = draw.integers(4, 40, size=120)
        own = draw.beta(0.8, 7.2, size=120)  # mean 0.1, whatever the length
        errors = draw.binomial(words, own)
        low, high = score_interval(rows_of(errors, words), metrics.WER.id)
        covered += low <= 10.0 <= high
    assert covered / 400 >= 0.93


def test_references_without_words_have_no_rate():
    assert score_of(rows_of([2], [0]), metrics.WER) is None
    assert score_of((), metrics.WER) is None


def test_an_imported_score_keeps_its_own_interval():
    notes = {"low": 4.0, "high": 6.0}
    record = make_record(make_case(), Measurement.of(metrics.WER, [5.0], source="imported", notes=notes))
    found = estimate([record], metrics.WER)
    assert (found.value, found.low, found.high, found.statistic) == (5.0, 4.0, 6.0, "imported")
    assert estimate([record], metrics.CER) is None


def test_a_statistic_of_samples_leaves_scores_alone():
    records = [scored([1, 2, 0], [5, 6, 7])]
    assert estimate(records, metrics.WER, statistic="p95") == estimate(records, metrics.WER)
