"""An SLO: what it bounds, how many conversations it needs, and what cannot be one."""

import math

import pytest

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.slo import slo_of


def test_each_bound_has_its_metric_limit_and_share():
    slo = slo_of("final_delay_p95_s=0.8, live_completeness=99%,keep_up=0.01")
    assert [(one.metric, one.limit, one.share) for one in slo.bounds] == [
        (metrics.FINAL_DELAY, 0.8, 0.95), (metrics.LIVE_COMPLETENESS, 99.0, 0.99), (metrics.KEEP_UP, 0.01, None),
    ]  # fmt: skip
    assert slo_of({"final_delay_p95_s": 0.8, "live_completeness": "99%", "keep_up": 0.01}).bounds == tuple(
        slo_of("final_delay_p95_s=0.8,live_completeness=99%,keep_up=0.01").bounds
    )


def test_units_of_time():
    assert slo_of("final_delay_p50_ms=800").bounds[0].limit == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("text", "count"), [("final_delay_p95_s=1", 59), ("live_completeness=99%", 299), ("live_completeness=99.9%", 2995)]
)
def test_how_many_faultless_conversations_it_needs(text, count):
    (bound,) = slo_of(text).bounds
    assert bound.least_conversations == count
    # one fewer without a fault would still be seen in more than 5 % of all cases at the limit itself
    assert bound.share**count <= 0.05 < bound.share ** (count - 1)
    assert math.isclose(slo_of(text).least_conversations, count)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("final_delay", "'final_delay' is not metric=limit"),
        ("", "slo is empty"),
        ("final_dely_p95_s=1", "an SLO cannot bound 'final_dely_p95_s'; did you mean 'final_delay_p95_s'"),
        ("word_lag_p95_s=1", "an SLO cannot bound"),
        ("final_delay=1", "the percentile of final_delay is missing or not supported; write final_delay_p95_s"),
        ("final_delay_p80_s=1", "the percentile of final_delay_p80_s is missing or not supported"),
        ("keep_up_p95=1", "keep_up has no percentile"),
        ("keep_up=fast", "keep_up takes a number of at least 0, not 'fast'"),
        ("keep_up=-1", "keep_up takes a number of at least 0"),
        ("live_completeness=0.99", "write live_completeness=99%"),
        ("live_completeness=100%", "below 100 %; no number of conversations can show 100 %"),
        ("keep_up=1,keep_up=2", "keep_up is given twice"),
    ],
)
def test_what_cannot_be_one_says_what_to_write(text, reason):
    with pytest.raises(InputError) as raised:
        slo_of(text)
    assert reason in str(raised.value)
