"""Limits: which metric and unit a name means, and what an interval says of it."""

import pytest

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.limits import limit_named
from speechmeter.core import metrics
from speechmeter.core.errors import InputError


def figure(low, value, high, metric=metrics.LATENCY):
    return Estimate(metric=metric, value=value, low=low, high=high, rounds=5, samples_per_round=10)


@pytest.mark.parametrize(
    ("key", "given", "name", "value", "is_most"),
    [
        ("max_latency_ms", 50, "latency", 0.05, True),
        ("max_latency_us", 50, "latency", 50e-6, True),
        ("max_latency_first_s", 2, "latency_first", 2.0, True),
        ("max_memory_mib", 3, "memory", 3 * 1024 * 1024, True),
        ("max_energy", 3, "energy", 3.0, True),
        ("max_quality", 10, "quality", 10.0, True),
        ("max_memory_cpu_load_gib", 1, "memory_cpu_load", 1024**3, True),
        ("max_rtf", 0.3, "rtf", 0.3, True),
        ("min_rtfx", 10, "rtfx", 10.0, False),
        ("max_parameters", 1000, "parameters", 1000.0, True),
    ],
)
def test_a_name_means_a_metric_and_a_unit(key, given, name, value, is_most):
    limit = limit_named(key, given, where="here")
    assert (limit.name, limit.is_most) == (name, is_most)
    assert limit.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("max_latency", 5, "max_latency_ms"),
        ("max_latency_mib", 5, "max_latency_ms"),
        ("max_latencyy_ms", 5, "did you mean 'latency'"),
        ("max_rtf_ms", 5, "write max_rtf"),
        ("max_rtf", "5", "must be a number"),
        ("max_rtf", True, "must be a number"),
        ("max_memory_mib", float("nan"), "max_memory_mib must be a number of at least 0, not nan"),
        ("min_rtfx", float("inf"), "min_rtfx must be a number of at least 0, not inf"),
        ("max_latency_ms", -1, "max_latency_ms must be a number of at least 0, not -1; for example max_latency_ms=50"),
    ],
)
def test_what_means_nothing_is_refused_with_the_way_out(key, given, words):
    with pytest.raises(InputError, match=words):
        limit_named(key, given, where="here")


@pytest.mark.parametrize(
    ("bounds", "judgement"),
    [((0.8, 0.9, 1.0), "within"), ((1.01, 1.1, 1.2), "beyond"), ((0.9, 0.95, 1.05), "undecided")],
)
def test_the_whole_interval_decides(bounds, judgement):
    assert limit_named("max_latency_s", 1, where="").judge(figure(*bounds)) == judgement


@pytest.mark.parametrize(
    ("bounds", "judgement"), [((11, 12, 13), "within"), ((7, 8, 9), "beyond"), ((9, 11, 13), "undecided")]
)
def test_of_a_least_value_the_lower_end_decides(bounds, judgement):
    assert limit_named("min_rtfx", 10, where="").judge(figure(*bounds, metric=metrics.RTFX)) == judgement


def test_a_single_round_decides_only_what_is_counted():
    latency, parameters = (limit_named(key, 1000, where="") for key in ("max_latency_s", "max_parameters"))
    assert latency.judge(figure(None, 1.0, None)) == "undecided"
    assert parameters.judge(figure(None, 1000, None, metrics.PARAMETERS)) == "within"
    assert parameters.judge(figure(None, 1001, None, metrics.PARAMETERS)) == "beyond"
