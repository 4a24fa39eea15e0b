"""Two live cases compared over the utterances that both heard."""

import random
from dataclasses import replace
from statistics import median_low

import pytest
from live_talks import conditions, final, partial, talk
from tests.live_records import PROTOCOL, case, delays, ratios, record, rounds

from speechmeter.analysis.compare import Lasting, verdict
from speechmeter.analysis.conditions import case_differences
from speechmeter.analysis.live import measurements
from speechmeter.analysis.live.change import paired_change
from speechmeter.core import metrics

NAMES = [f"u{number:02}" for number in range(60)]
BASE, NEW = case("base"), case("new")


def heard(draw, added=0.0, names=NAMES, count=5, noise=0.01):
    """Utterances differ by seconds, rounds and values by milliseconds: only pairs show a small change."""
    own = {name: 0.5 + random.Random(name).random() for name in names}
    return [{name: [own[name] + added + draw.gauss(0, noise)] for name in names} for _ in range(count)]


def judged(first, second, metric=metrics.FINAL_DELAY, effect=0.05, *, together=True, statistic=""):
    return verdict(first, second, metric, effect, together=together, statistic=statistic)


def two(added=0.0, seed=1, **more):
    draw = random.Random(seed)
    return rounds(BASE, heard(draw, **more)), rounds(NEW, heard(draw, added, **more))


def test_a_small_change_is_seen_in_pairs_though_utterances_differ_far_more():
    found = judged(*two(0.04), effect=Lasting(0.03))
    assert (found.word, found.regression) == ("SLOWER", True)
    assert found.change.value == pytest.approx(0.04, abs=0.005)
    assert 0.03 < found.change.low < 0.04 < found.change.high < 0.05
    assert judged(*two(-0.04), effect=Lasting(0.03)).word == "FASTER"
    assert judged(*two(0.04), effect=Lasting(0.1)).word == "SAME"
    assert judged(*two(0.04, noise=0.5), effect=Lasting(0.03)).word == "CANNOT TELL"


def test_an_unchanged_pair_is_not_called_different():
    words = [judged(*two(seed=seed), effect=Lasting(0.001)).word for seed in range(40)]
    assert sum(word in ("SLOWER", "FASTER") for word in words) <= 4


def test_a_share_is_of_the_figure_of_base_and_two_times_may_differ_without_a_change():
    first, second = two(0.04)  # the median is about 1 s
    assert judged(first, second, effect=0.10).word == "SAME"
    assert judged(first, second, effect=0.02).word == "SLOWER"
    later = judged(first, second, effect=0.02, together=False)
    assert later.word == "CANNOT TELL"
    assert "two runs at different times can differ by 5%" in later.reason
    assert judged(*two(0.3), effect=0.02, together=False).word == "SLOWER"


def test_the_tail_is_the_difference_of_percentiles():
    first, second = two()
    slow = set(NAMES[:6])
    later = [
        {name: [value + (1.0 if name in slow else 0.0) for value in values] for name, values in one.items()}
        for one in (heard(random.Random(9)))
    ]
    second = rounds(NEW, later)
    assert judged(first, second, effect=Lasting(0.03)).word == "SAME"  # of a typical utterance
    tail = judged(first, second, effect=Lasting(0.03), statistic="p95")
    assert tail.word == "SLOWER"
    assert tail.change.value == pytest.approx(tail.new.value - tail.base.value)
    few = judged(*two(names=NAMES[:40]), statistic="p95")
    assert (few.word, few.base) == ("CANNOT TELL", None)


def test_a_missing_answer_counts_as_the_timeout_on_its_side():
    first, _ = two()
    lost = [{**one, **{name: [None] for name in NAMES[:40]}} for one in heard(random.Random(3))]
    found = judged(first, rounds(NEW, lost))
    assert found.word == "SLOWER"
    assert found.change.value > 28


@pytest.mark.parametrize("share, count", [(0.15, 5), (0.04, 20)])
def test_answers_that_are_missing_now_and_then_are_no_delay(share, count):
    """Two equal systems, of which one loses some finals at random. In the typical utterance nothing changed."""
    draw = random.Random(4)
    first, second = heard(draw, count=count), heard(draw, count=count)
    lost = [{name: [None] if draw.random() < share else one for name, one in each.items()} for each in second]
    found = judged(rounds(BASE, first), rounds(NEW, lost), effect=Lasting(0.03))
    assert found.word == "SAME"
    # the truth without any array: all differences of the same utterance and round, a missing answer being the longest
    told = median_low(
        (new[name][0] or 30.0) - base[name][0] for base, new in zip(first, lost, strict=True) for name in NAMES
    )
    assert found.change.value == pytest.approx(told)
    assert -0.02 < found.change.low <= told <= found.change.high < 0.02


def test_a_decision_that_one_side_did_not_take_is_no_other_reference_text():
    pairs = {name: (float(place < 3), 1.0) for place, name in enumerate(NAMES)}
    first = record(BASE, 0, NAMES, ratios(pairs, metrics.EARLY_ENDPOINT))
    undecided = ratios(dict(list(pairs.items())[:-1]), metrics.EARLY_ENDPOINT)
    undecided = replace(undecided, notes={**undecided.notes, "missing": [59], "timeout_s": 30.0})
    found = paired_change([first], [record(NEW, 0, NAMES, undecided)], metrics.EARLY_ENDPOINT, together=True)
    assert found.estimate.value == pytest.approx(100 * (3 / 59 - 3 / 60))


def test_only_utterances_of_both_count_and_few_of_them_decide_nothing():
    draw = random.Random(2)
    first = rounds(BASE, heard(draw, names=NAMES[:30]))
    second = rounds(NEW, heard(draw, 0.1, names=NAMES[20:]))
    found = judged(first, second)
    assert found.change.samples_per_round == 10
    assert "10 utterances in both (BASE has 30, NEW 40)" in found.reason
    fewer = judged(rounds(BASE, heard(draw, names=NAMES[:25])), second)
    assert fewer.word == "CANNOT TELL"
    assert "needs at least 10 shared utterances, but there are 5" in fewer.reason
    none = judged(rounds(BASE, heard(draw, names=NAMES[:9])), second)
    assert "no utterance in common" in none.reason


def test_words_are_compared_where_both_got_them_right():
    lags = {name: [0.1, 0.2, 0.3] for name in NAMES[:20]}
    first = delays(lags, metrics.WORD_LAG)
    later = delays({name: [value + 0.2 for value in values] for name, values in lags.items()}, metrics.WORD_LAG)
    # the second system got the first word of each wrong: the lags that are left are of words 1 and 2
    kept = [index for index, place in enumerate(later.notes["word"]) if place > 0]
    later = replace(
        later,
        values=tuple(later.values[index] for index in kept),
        notes={"of": [later.notes["of"][i] for i in kept], "word": [later.notes["word"][i] for i in kept]},
    )
    sides = [[record(of, number, NAMES[:20], one) for number in range(5)] for of, one in ((BASE, first), (NEW, later))]
    found = paired_change(*sides, metrics.WORD_LAG, together=True)
    assert found.estimate.value == pytest.approx(0.2)  # unpaired medians differ by 0.25
    assert (found.estimate.low, found.estimate.high) == (pytest.approx(0.2), pytest.approx(0.2))


def test_words_of_measured_conversations_are_told_apart():
    """Word 2 of each utterance comes 0.4 s later, words 1 and 3 as before: the typical word did not change."""
    sides = []
    for of, moments in ((BASE, (1.0, 1.5, 2.0)), (NEW, (1.0, 1.9, 2.0))):
        exchanges = [
            talk(*(partial(at, "one two three"[:end]) for at, end in zip(moments, (3, 7, 13), strict=True)),
                 final(2.5, "one two three"), utterance=name)
            for name in NAMES[:12]
        ]  # fmt: skip
        sides.append([replace(record(of, 0, NAMES[:12]), measurements=tuple(measurements(exchanges, conditions())))])
    found = paired_change(*sides, metrics.WORD_LAG, together=True)
    assert found.estimate.value == 0.0  # 24 of 36 differences; of utterances as a whole it would be 0.4 s


@pytest.mark.parametrize(
    "metric, faults, word, regression",
    [
        (metrics.PARTIAL_CHURN, 3.0, "MORE", True),
        (metrics.LIVE_WER, 3.0, "MORE", True),
        (metrics.LIVE_COMPLETENESS, 0.0, "LESS", True),
        (metrics.LIVE_WER, 0.0, "LESS", False),
    ],
)
def test_ratios_are_compared_by_their_difference(metric, faults, word, regression):
    before = dict.fromkeys(NAMES, (1.0, 10.0))
    after = {name: (faults, 10.0) if place % 2 else (1.0, 10.0) for place, name in enumerate(NAMES)}
    sides = [
        [record(of, n, NAMES, ratios(one, metric)) for n in range(5)] for of, one in ((BASE, before), (NEW, after))
    ]
    found = judged(*sides, metric)
    assert (found.word, found.regression) == (word, regression)
    scale = 100 if metric.unit == "%" else 1
    assert found.change.value == pytest.approx(scale * (faults - 1) / 20)
    same = judged(sides[0], [replace(one, case=NEW) for one in sides[0]], metric)
    assert (same.word, same.change.value) == ("SAME", 0.0)


def test_intervals_of_changes_hold_the_truth():
    held = 0
    for seed in range(60):
        first, second = two(0.1, seed, names=NAMES[:30], noise=0.1)
        change = paired_change(first, second, metrics.FINAL_DELAY, together=True).estimate
        held += change.low <= 0.1 <= change.high
    assert held >= 53


def test_live_cases_that_were_held_differently_are_not_compared_and_every_field_is_named():
    other = case("base", replace(PROTOCOL, silence_s=1.0, turn_end="system"), chunk=0.02, streams=4)
    assert case_differences(BASE, other, ["model"]) == [
        "chunk: 0.1 in BASE, 0.02 in NEW",
        "streams: 1 in BASE, 4 in NEW",
        "turn_end: 'oracle' in BASE, 'system' in NEW",
        "silence_s: 2.0 in BASE, 1.0 in NEW",
    ]
