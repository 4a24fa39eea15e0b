"""Differences by pairs and the front, on systems whose relation is known."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import make_case, make_record

from speechmeter.analysis.compare import verdict
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.quality import System, order_of, paired_difference, standings
from speechmeter.core import metrics
from speechmeter.core.types import Measurement

WORDS = np.random.default_rng(3).integers(5, 25, size=200)


def errors_at(rate, seed, base=None):
    draw = np.random.default_rng(seed)
    return draw.binomial(WORDS, rate) if base is None else base + draw.binomial(1, rate, size=200)


def scored(name, errors, words=WORDS, ids=None):
    ids = [f"u{i}" for i in range(len(errors))] if ids is None else ids
    return [
        make_record(
            make_case(name),
            Measurement.of(metrics.ANSWERED, [1.0] * len(errors), notes={"utterances": list(ids)}),
            Measurement.of(metrics.WORD_ERRORS, [float(e) for e in errors]),
            Measurement.of(metrics.REFERENCE_WORDS, [float(w) for w in words]),
        )
    ]


COMMON = errors_at(0.15, 1)


def test_a_small_difference_is_resolved_by_pairs_though_intervals_overlap():
    first, second = scored("a", COMMON), scored("b", errors_at(0.2, 2, base=COMMON))
    alone = [estimate(records, metrics.WER) for records in (first, second)]
    assert order_of(*alone) == "not resolvable"
    found = paired_difference(first, second, metrics.WER)
    assert found.order == "better"
    assert found.estimate.value == pytest.approx(alone[0].value - alone[1].value)
    assert found.estimate.low < found.estimate.value < found.estimate.high < 0
    assert found.estimate.samples_per_round == 200
    other_way = paired_difference(second, first, metrics.WER)
    assert (other_way.order, other_way.estimate.value) == ("worse", -found.estimate.value)


def test_systems_with_the_same_rate_are_seldom_told_apart():
    told = sum(
        paired_difference(scored("a", errors_at(0.1, s)), scored("b", errors_at(0.1, 1000 + s)), metrics.WER).order
        != "not resolvable"
        for s in range(60)
    )
    assert told <= 8


def test_only_shared_utterances_count_whatever_their_order():
    first = scored("a", [1, 2, 3], [10, 10, 10], ["x", "y", "z"])
    second = scored("b", [0, 5, 1], [10, 10, 10], ["z", "w", "x"])
    found = paired_difference(first, second, metrics.WER)
    assert found.estimate.samples_per_round == 2
    assert found.estimate.value == pytest.approx(100 * ((1 + 3) - (1 + 0)) / 20)


def test_few_utterances_resolve_a_large_difference_and_no_small_one():
    sides = [scored(name, [wrong] * 19, [10] * 19) for name, wrong in (("a", 0), ("b", 9))]
    assert paired_difference(*sides, metrics.WER).order == "better"
    close = [scored(name, [wrong, 0] * 9, [10] * 18) for name, wrong in (("a", 1), ("b", 2))]
    assert paired_difference(*close, metrics.WER).order == "not resolvable"


def test_a_single_utterance_has_no_interval():
    sides = [scored(name, [wrong], [10]) for name, wrong in (("a", 0), ("b", 9))]
    found = paired_difference(*sides, metrics.WER)
    assert (found.order, found.estimate.low) == ("not resolvable", None)
    assert found.reason == "an interval needs at least 2 shared utterances, but there are 1"


def test_equal_counts_are_the_same():
    assert paired_difference(scored("a", COMMON), scored("b", COMMON), metrics.WER).order == "same"


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (scored("b", [1, 1], [9, 9], ["p", "q"]), "not measured on the same utterances"),
        (scored("b", [1, 1], [9, 8], ["u0", "u1"]), "different reference texts"),
        ([make_record(make_case("b"))], "was not measured for both systems"),
        ([make_record(make_case("b"), Measurement.of(metrics.WER, [5.0], source="imported"))], "imported"),
    ],
)
def test_what_cannot_be_paired_says_why(second, reason):
    found = paired_difference(scored("a", [1, 2], [9, 9]), second, metrics.WER)
    assert found.estimate is None
    assert reason in found.reason


def figure(metric, value, half):
    return Estimate(metric=metric, value=value, low=value - half, high=value + half, rounds=5, samples_per_round=3)


def point(name, wer, rtf, wer_half=0.1, rtf_half=0.001):
    records = [make_record(make_case(name))]
    score, cost = figure(metrics.WER, wer, wer_half), figure(metrics.RTF, rtf, rtf_half)
    return System(name=name, records=records, score=score, cost=cost)


def words(*systems):
    return {
        system.name: (found.word, found.others)
        for system, found in zip(systems, standings(systems, metrics.WER), strict=True)
    }


def test_the_front_holds_what_nobody_beats_in_both():
    found = words(point("exact", 3.0, 0.5), point("quick", 9.0, 0.05), point("poor", 9.5, 0.6))
    assert found["exact"] == ("yes", ())
    assert found["quick"] == ("yes", ())
    assert found["poor"] == ("no", ("exact", "quick"))


def test_overlapping_intervals_are_not_resolvable_rather_than_off_the_front():
    found = words(point("a", 5.0, 0.10), point("b", 5.05, 0.50))
    assert found == {"a": ("yes", ()), "b": ("not resolvable", ("a",))}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "intervals of WER overlap"),
        ({"rounds": 1, "low": None, "high": None, "metric": metrics.RTF}, "one round: no interval of real-time factor"),
    ],
)
def test_what_is_not_resolvable_says_why(change, reason):
    first, second = point("a", 5.0, 0.5), point("b", 5.05, 0.6)
    if change:
        second = replace(second, cost=replace(second.cost, **change))
    found = standings([first, second], metrics.WER)[1]
    assert found.word == "not resolvable"
    assert reason in found.reasons


def test_without_an_interval_nothing_is_resolved():
    single = System(
        name="quick",
        records=[make_record(make_case("quick"))],
        score=figure(metrics.WER, 1.0, 0.1),
        cost=Estimate(metric=metrics.RTF, value=0.1, low=None, high=None, rounds=1, samples_per_round=3),
    )
    assert words(single, point("slow", 9.0, 0.9))["slow"] == ("not resolvable", ("quick",))


def test_a_system_without_cost_is_not_placed():
    lost = System(name="lost", records=[], score=figure(metrics.WER, 1.0, 0.1), cost=None)
    assert standings([lost, point("a", 5.0, 0.1)], metrics.WER)[0] is None
    assert standings([lost, point("a", 5.0, 0.1)], metrics.WER)[1].word == "yes"


def test_the_same_words_faster_beat_the_same_words():
    fast, slow = (
        System(name=name, records=scored(name, COMMON), score=figure(metrics.WER, 15, 1), cost=cost)
        for name, cost in (("fast", figure(metrics.RTF, 0.1, 0.01)), ("slow", figure(metrics.RTF, 0.2, 0.01)))
    )
    assert words(fast, slow) == {"fast": ("yes", ()), "slow": ("no", ("fast",))}


def test_compare_judges_scores_over_utterances():
    base, worse = scored("a", COMMON), scored("a", COMMON + 1)
    found = verdict(base, worse, metrics.WER, 0.05, together=False)
    assert (found.word, found.regression) == ("MORE", True)
    assert found.ratio == pytest.approx((COMMON.sum() + 200) / COMMON.sum())
    assert verdict(worse, base, metrics.WER, 0.05, together=False).regression is False
    assert verdict(base, base, metrics.WER, 0.05, together=False).word == "SAME"


def test_compare_cannot_tell_where_utterances_go_either_way():
    """The same rate, 2 words better or worse in every other of 200 utterances: 20 % ± 2.8, wider than 5 % of it."""
    base, new = ([2.0] * 200, [0.0, 4.0] * 100)
    found = verdict(*(scored("a", side, [10.0] * 200) for side in (base, new)), metrics.WER, 0.05, together=False)
    assert found.word == "CANNOT TELL"
    assert (found.low, found.high) == pytest.approx((1 - 0.139, 1 + 0.139), abs=0.02)


def test_fewer_answers_are_a_regression():
    sides = [
        [make_record(make_case("m"), Measurement.of(metrics.ANSWERED, values))] for values in ([1.0, 1.0], [1.0, 0.0])
    ]
    found = verdict(*sides, metrics.COMPLETENESS, 0.05, together=False)
    assert (found.word, found.regression) == ("LESS", True)


def judged(base, new):
    """The verdict on the WER of utterances with so many errors in 10 words each."""
    made = [scored(name, errors, [10] * len(errors)) for name, errors in (("a", base), ("b", new))]
    return verdict(*made, metrics.WER, 0.05, together=True)


@pytest.mark.parametrize("errors", [[1, 2, 0], [0, 0, 0], [0] * 30])
def test_the_same_counts_are_the_same_however_few(errors):
    found = judged(errors, errors)
    assert (found.word, found.regression) == ("SAME", False)
    assert found.reason == f"{len(errors)} utterances in both"


def test_few_utterances_cannot_tell_and_say_how_few_they_are():
    found = judged([1, 2, 0], [1, 1, 0])
    assert (found.word, found.reason) == ("CANNOT TELL", "3 utterances in both; measure more utterances to decide")
    assert judged([2], [1]).reason == "an interval needs at least 2 shared utterances, but there are 1"


def test_any_error_counts_against_a_base_without_one():
    found = judged([0] * 30, [1] * 30)
    assert (found.word, found.regression, found.ratio) == ("MORE", True, None)


def test_utterances_that_one_side_lacks_are_counted_in_the_reason():
    found = judged([1] * 20, [1] * 10)
    assert found.reason == "10 utterances in both (BASE has 20, NEW 10)"


def test_the_ratio_of_scores_has_no_end_below_zero():
    found = judged([3] + [0] * 19, [0] * 20)
    assert (found.ratio, found.low) == (0.0, 0.0)
