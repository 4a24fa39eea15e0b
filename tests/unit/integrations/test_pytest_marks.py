"""What markers ask for, the nearest before those of class and file."""

import pytest

from speechmeter.core.errors import InputError
from speechmeter.integrations.pytest import marks


def asked_by(keywords):
    """What markers with these keywords ask for, the nearest first."""
    return marks.asked_by(pytest.mark.speechmeter(**given).mark for given in keywords)


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
        ({"min_effect": "lots"}, "not a percentage"),
        ({"metric": 5}, "metric must be a name or a list of names, not 5; such as metric='latency'"),
        ({"metric": ["latency", 5]}, "metric must be a name or a list of names"),
        ({"metric": []}, "metric must be a name or a list of names"),
    ],
)
def test_what_means_nothing_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        asked_by([given])


def test_an_argument_without_its_keyword_is_refused():
    with pytest.raises(InputError, match="'5%' needs a keyword; such as min_effect='5%'"):
        marks.asked_by([pytest.mark.speechmeter("5%").mark])
