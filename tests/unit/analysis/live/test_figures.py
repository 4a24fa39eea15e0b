"""Figures of live metrics: percentiles and ratios over utterances and rounds, missing answers, and their intervals."""

import random
from dataclasses import replace
from math import comb
from statistics import median_low

import numpy as np
import pytest
from tests.live_records import case, ratios, record, rounds

from speechmeter.analysis.derived import round_value
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.live import resampling
from speechmeter.core import metrics
from speechmeter.report.numbers import figure

NAMES = [f"u{number:02}" for number in range(60)]


def delays_of(draw, names=NAMES, count=5, spread=0.05, shift=None):
    own = {name: draw.gauss(0.5, 0.2) for name in names}
    shifts = shift or [0.0] * count
    return [{name: [own[name] + shifts[number] + draw.gauss(0, spread)] for name in names} for number in range(count)]


def test_the_figure_is_the_percentile_of_all_values():
    heard = delays_of(random.Random(1))
    records = rounds(case(), heard)
    values = sorted(value for one in heard for (value,) in one.values())
    assert estimate(records, metrics.FINAL_DELAY).value == median_low(values)
    assert estimate(records, metrics.FINAL_DELAY, statistic="p95").value == values[284]  # of 300, 15 are above
    assert estimate(records, metrics.FINAL_DELAY, statistic="max").value == values[-1]
    assert round_value(records[2], metrics.FINAL_DELAY)[0] == median_low([v for (v,) in heard[2].values()])


def test_a_percentile_needs_distinct_utterances_and_not_repeated_ones():
    few = rounds(case(), delays_of(random.Random(1), NAMES[:58]))
    assert estimate(few, metrics.FINAL_DELAY, statistic="p95") is None
    assert estimate(few, metrics.FINAL_DELAY, statistic="p90") is not None
    assert estimate(rounds(case(), delays_of(random.Random(1), NAMES[:59])), metrics.FINAL_DELAY, statistic="p95")


def test_missing_answers_are_longer_than_all_others_and_never_left_out():
    heard = {name: [0.1 * place] for place, name in enumerate(NAMES)}
    some = rounds(case(), [{**heard, **{name: [None] for name in NAMES[:10]}}])
    found = estimate(some, metrics.FINAL_DELAY)
    # of 60 the 30th: 50 answers are left, from 1.0 to 5.9 s, and the smallest 30 of them end at 3.9 s
    assert found.value == pytest.approx(3.9)
    assert found.beyond_s == 30.0
    p95 = estimate(some, metrics.FINAL_DELAY, statistic="p95")
    assert (p95.value, figure(p95).partition(" [")[0]) == (30.0, "> 30 s")
    nobody = estimate(rounds(case(), [{name: [None] for name in NAMES}]), metrics.FINAL_DELAY)
    assert figure(nobody) == "> 30 s [> 30 s, > 30 s]"
    assert estimate(some, metrics.FINAL_DELAY, statistic="mean-sd") is None


def test_weighted_percentiles_are_those_of_repeated_values():
    draw = np.random.default_rng(7)
    values, weights = draw.normal(size=50), draw.integers(0, 4, size=(20, 50)).astype(np.float32)
    for share in (0.5, 0.9, 0.95, 1.0):
        found = resampling.percentiles(values, weights, share)
        told = [resampling.percentile(np.repeat(values, row.astype(int)), share) for row in weights]
        assert found.tolist() == told


def test_rounds_are_resampled_from_five_on_only():
    draw = random.Random(3)
    far = delays_of(draw, count=5, shift=[0.0, 0.0, 0.0, 0.4, 0.4])
    five, four = (estimate(rounds(case(), heard), metrics.FINAL_DELAY) for heard in (far, far[1:]))
    assert five.high - five.low > 2 * (four.high - four.low)
    few = delays_of(draw, NAMES[:9])
    assert estimate(rounds(case(), few), metrics.FINAL_DELAY).low is None  # nine utterances say too little


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """100 studies of 40 utterances and 6 rounds whose true median is 0.5 s; utterances, rounds and noise all vary."""
    draw = random.Random(11)
    held = 0
    for _ in range(100):
        shifts = [draw.gauss(0, 0.05) for _ in range(6)]
        found = estimate(rounds(case(), delays_of(draw, NAMES[:40], 6, 0.05, shifts)), metrics.FINAL_DELAY)
        held += found.low <= 0.5 <= found.high
    assert held >= 90


@pytest.mark.parametrize("count", [5, 6, 10])
def test_few_rounds_do_not_look_more_alike_than_they_are(count):
    """Means of few rounds whose true mean is 0: Student's t holds 95 %, drawing as many as there are 83 % of 5."""
    weights = resampling.drawn(10, count).rounds
    rows = np.random.default_rng(7).standard_normal((600, count))
    ends = [resampling.middle(weights @ row / weights.sum(axis=1)) for row in rows]
    assert 0.92 <= np.mean([low <= 0 <= high for low, high in ends]) <= 0.98


def test_a_ratio_is_of_sums_and_not_a_mean_of_ratios():
    pairs = {name: (1.0 if place < 6 else 0.0, 1.0 + place) for place, name in enumerate(NAMES)}
    records = [record(case(), number, NAMES, ratios(pairs)) for number in range(5)]
    found = estimate(records, metrics.LIVE_WER)
    assert found.value == pytest.approx(100 * 6 / sum(range(1, 61)))
    assert found.low < found.value < found.high
    assert round_value(records[0], metrics.LIVE_WER)[0] == pytest.approx(found.value)
    assert figure(found).startswith("0.328 % [")


@pytest.mark.parametrize(
    "metric, faults, ends", [(metrics.LIVE_WER, 0.0, "high"), (metrics.LIVE_COMPLETENESS, 1.0, "low")]
)
def test_no_fault_in_some_utterances_is_not_none_at_all(metric, faults, ends):
    pairs = dict.fromkeys(NAMES[:20], (faults, 1.0))
    found = estimate([record(case(), number, NAMES[:20], ratios(pairs, metric)) for number in range(5)], metric)
    assert found.value == 100 * faults
    assert abs(getattr(found, ends) - found.value) > 10  # 3 of 20 could fail: the rule of three


def test_a_share_of_conversations_has_the_exact_interval():
    pairs = {name: (float(place >= 3), 1.0) for place, name in enumerate(NAMES[:30])}
    found = estimate(
        [record(case(), 0, NAMES[:30], ratios(pairs, metrics.LIVE_COMPLETENESS))], metrics.LIVE_COMPLETENESS
    )
    # with each end as the true share, 27 or more, or 27 or fewer, of 30 come in 2.5 % of studies
    low, high = found.low / 100, found.high / 100
    assert sum(comb(30, k) * low**k * (1 - low) ** (30 - k) for k in range(27, 31)) == pytest.approx(0.025)
    assert sum(comb(30, k) * high**k * (1 - high) ** (30 - k) for k in range(28)) == pytest.approx(0.025)


def test_rounds_that_differ_widen_the_interval_of_a_share():
    """As many conversations fail: in one round of five, or spread over all of them."""

    def of(fails):
        made = [
            {name: (float(not fails(place, number)), 1.0) for place, name in enumerate(NAMES[:30])}
            for number in range(5)
        ]
        records = [record(case(), n, NAMES[:30], ratios(one, metrics.LIVE_COMPLETENESS)) for n, one in enumerate(made)]
        return estimate(records, metrics.LIVE_COMPLETENESS)

    spread, bunched = of(lambda place, number: place % 5 == number), of(lambda place, number: number == 2)
    assert spread.value == bunched.value == pytest.approx(80.0)
    assert 61 < spread.low < 62 and 92 < spread.high < 93  # 24 of 30
    assert bunched.low < 45 and 95 < bunched.high < 100


def test_a_conversation_that_a_share_is_not_about_does_not_empty_it():
    found = ratios({name: (float(place == 3), 1.0) for place, name in enumerate(NAMES[:29])}, metrics.EARLY_ENDPOINT)
    found = replace(found, notes={**found.notes, "missing": [29], "timeout_s": 30.0})
    one = record(case(), 0, NAMES[:30], found)
    assert estimate([one], metrics.EARLY_ENDPOINT).value == pytest.approx(100 / 29)
    assert round_value(one, metrics.EARLY_ENDPOINT) == (pytest.approx(100 / 29), 29)


def test_the_same_values_give_the_same_interval():
    heard = delays_of(random.Random(5))
    first = estimate(rounds(case(), heard), metrics.FINAL_DELAY)
    resampling.drawn.cache_clear()
    shuffled = [{name: one[name] for name in reversed(NAMES)} for one in heard]
    assert estimate(rounds(case(), shuffled), metrics.FINAL_DELAY) == first
