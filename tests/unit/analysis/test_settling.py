"""How many rounds or utterances would settle a comparison, checked by making that many."""

import math
import random

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.intervals import over_rounds
from speechmeter.analysis.settling import rounds_to_decide, rounds_to_separate, utterances_to_separate
from speechmeter.core import metrics


def figure(values, metric=metrics.LATENCY):
    value, low, high = over_rounds(values, exact=False)
    return Estimate(metric=metric, value=value, low=low, high=high, rounds=len(values), samples_per_round=1)


def drawn(centre, spread, count):
    """Values whose logarithms have exactly this mean and this standard deviation."""
    draw = random.Random(7)
    raw = [draw.gauss(0, 1) for _ in range(count)]
    mean = sum(raw) / count
    sd = math.sqrt(sum((one - mean) ** 2 for one in raw) / (count - 1))
    return [centre * math.exp(spread * (one - mean) / sd) for one in raw]


def test_as_many_rounds_as_proposed_keep_two_intervals_apart_and_one_fewer_does_not():
    count = rounds_to_separate(figure(drawn(1.0, 0.1, 5)), figure(drawn(1.1, 0.1, 5)))

    def apart(rounds):
        return figure(drawn(1.0, 0.1, rounds)).high < figure(drawn(1.1, 0.1, rounds)).low

    assert count > 5 and apart(count) and not apart(count - 1)


def test_as_many_rounds_as_proposed_keep_an_interval_below_the_limit():
    count = rounds_to_decide(figure(drawn(0.95, 0.1, 5), metrics.RTF), 1.0)
    assert figure(drawn(0.95, 0.1, count)).high < 1 <= figure(drawn(0.95, 0.1, count - 1)).high


def test_figures_that_are_alike_would_need_too_many_rounds():
    assert rounds_to_separate(figure(drawn(1.0, 0.1, 5)), figure(drawn(1.0001, 0.1, 5))) is None


def test_one_round_has_no_spread_to_go_by():
    single = Estimate(metric=metrics.LATENCY, value=1.0, low=None, high=None, rounds=1, samples_per_round=5)
    assert rounds_to_separate(single, figure(drawn(1.1, 0.1, 5))) is None
    assert rounds_to_decide(single, 1.0) is None


def test_an_interval_twice_as_wide_as_the_difference_needs_four_times_the_utterances():
    difference = Estimate(metric=metrics.WER_DIFFERENCE, value=1.0, low=-1.0, high=3.0, rounds=1, samples_per_round=28)
    assert utterances_to_separate(difference) == 4 * 28
