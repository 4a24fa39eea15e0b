"""The verdict on a level: known to be kept, known to be broken, or neither, from rounds made by hand."""

from dataclasses import replace

import pytest
from conftest import make_case, make_record
from scipy.stats import binomtest
from simulated_queue import outcome

from speechmeter.analysis.live.capacity import goodput
from speechmeter.analysis.live.verdict import verdict
from speechmeter.core import metrics
from speechmeter.core.slo import slo_of
from speechmeter.core.types import Measurement

SLO = slo_of("request_latency_p95_s=1")


def rounds(*delays, **fields):
    case = make_case()
    return [make_record(case, *outcome(own, **fields).measurements, round=place) for place, own in enumerate(delays)]


def test_fifty_nine_faultless_conversations_pass_and_fifty_eight_do_not():
    assert verdict(rounds([0.5] * 30, [0.5] * 29), SLO).word == "passes"
    assert verdict(rounds([0.5] * 29, [0.5] * 29), SLO).word == "undecided"


def test_a_share_that_is_known_to_be_too_small_fails():
    found = verdict(rounds(*[[0.5] * 80 + [2.0] * 20] * 2), SLO)
    assert found.word == "fails"
    assert found.judged[0].value == pytest.approx(0.8)
    # both rounds agree exactly, so the bounds are those of the binomial
    exact = binomtest(160, 200).proportion_ci(0.9, method="exact")
    assert (found.judged[0].low, found.judged[0].high) == pytest.approx((exact.low, exact.high), abs=1e-6)


def test_rounds_that_disagree_decide_nothing():
    assert verdict(rounds([0.5] * 100, [2.0] * 100), SLO).word == "undecided"


def test_one_round_alone_decides_nothing_however_long():
    assert verdict(rounds([0.5] * 5000), SLO).word == "undecided"
    assert verdict(rounds([0.5] * 5000), SLO).is_within


def test_a_missing_answer_is_beyond_the_limit():
    kept = rounds(*[[0.5] * 100] * 2)
    lost = rounds(*[[0.5] * 100] * 2, missing=range(100, 130))
    assert (verdict(kept, SLO).word, verdict(lost, SLO).word) == ("passes", "fails")


def test_a_probe_that_is_too_short_does_not_pass():
    found = verdict(rounds(*[[0.5] * 100] * 2, span_s=24.0), SLO)  # fewer than 50 delays of 0.5 s
    assert found.word == "undecided" and "at least 25 s are needed (50 times the mean delay)" in found.reasons[0]
    assert verdict(rounds(*[[0.5] * 100] * 2, span_s=25.0), SLO).word == "passes"


def opened(*delays):
    made = rounds(*[[0.5] * 100] * 2)
    late = Measurement.of(metrics.OPEN_DELAY, list(delays))
    return [replace(record, measurements=(*record.measurements, late)) for record in made]


def test_speakers_who_waited_for_a_connection_do_not_pass_unseen():
    late = opened(*[0.0] * 90, *[12.0] * 10)
    assert verdict(late, SLO).word == "undecided"
    assert "20 of 200 conversations were opened more than 1 s late, up to 12 s" in verdict(late, SLO).reasons[0]
    assert verdict(opened(*[0.0] * 96, *[12.0] * 4), SLO).word == "passes"  # one in twenty may be late
    assert verdict(late, slo_of("request_latency_p95_s=1,open_delay_p95_s=1")).word == "fails"


def test_delays_that_grow_within_a_probe_do_not_pass():
    growing = [0.1 + 0.8 * place / 100 for place in range(100)]
    found = verdict(rounds(growing, growing), SLO)
    assert found.word == "undecided" and "delays grew by 81 %" in found.reasons[0]
    assert verdict(rounds(growing, growing[::-1]), SLO).word == "passes"


def slopes(*values):
    case = make_case()
    answered = Measurement.of(metrics.LIVE_ANSWERED, [1.0], notes={"utterances": ["u"]})
    return [
        make_record(case, answered, Measurement.of(metrics.KEEP_UP, [one]), round=place)
        for place, one in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "word"),
    [((0.0, 0.001), "passes"), ((0.1, 0.11), "fails"), ((0.0, 0.1), "undecided"), ((0.0,), "undecided")],
)
def test_a_mean_is_judged_over_rounds(values, word):
    assert verdict(slopes(*values), slo_of("keep_up=0.01")).word == word


def test_the_bound_that_broke_is_named():
    found = verdict(rounds(*[[2.0] * 60] * 2), slo_of("request_latency_p95_s=1,live_completeness=95%"))
    assert [one.bound.metric for one in found.broken] == [metrics.REQUEST_LATENCY]


def test_goodput_counts_conversations_within_the_limit_alone():
    assert goodput(rounds([0.5] * 30 + [2.0] * 10), SLO) == pytest.approx(0.75)


def test_a_stream_that_failed_does_not_keep_up():
    case = make_case()
    notes = {"utterances": ["u"] * 4, "errors": ["", "", "", "refused"]}
    answered = Measurement.of(metrics.LIVE_ANSWERED, [1.0, 1.0, 1.0, 0.0], notes=notes)
    steady = Measurement.of(metrics.KEEP_UP, [0.0] * 3, notes={"of": [0, 1, 2]})
    found = verdict([make_record(case, answered, steady, round=n) for n in range(2)], slo_of("keep_up=0.01"))
    assert (found.word, found.judged[0].value) == ("fails", 0.25)
