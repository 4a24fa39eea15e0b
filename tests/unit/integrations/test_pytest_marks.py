"""What markers ask for, the nearest before those of class and file."""

import pytest

from speechmeter.core.errors import InputError
from speechmeter.integrations.pytest.marks import asked_by


def test_nothing_asked_is_latency_by_five_percent():
    asked = asked_by([])
    assert (asked.metrics, asked.min_effect, asked.limits, asked.meters) == (("latency",), 0.05, (), ["latency"])


def test_the_nearest_marker_wins_and_the_others_fill_in():
    asked = asked_by([{"min_effect": "20%", "max_rtf": 0.1}, {"min_effect": "10%", "rounds": 7, "max_rtf": 9}])
    assert asked.min_effect == pytest.approx(0.2)
    assert asked.plan == {"rounds": 7}
    assert [(limit.key, limit.value) for limit in asked.limits] == [("max_rtf", 0.1)]


def test_meters_are_those_that_metrics_and_limits_need():
    asked = asked_by([{"metric": ["latency", "memory"], "max_flops": 1e9, "max_rtf": 1}])
    assert asked.meters == ["latency", "memory", "flops"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"min_efect": "5%"}, "did you mean 'min_effect'"),
        ({"max_latency": 3}, "max_latency_ms"),
        ({"min_effect": "lots"}, "not a share"),
    ],
)
def test_what_is_misspelt_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        asked_by([given])
