"""Figures as text: three digits, the unit, and what rounding does at the edge of a prefix."""

import pytest

from speechmeter.analysis.estimate import Estimate
from speechmeter.core import metrics
from speechmeter.report.numbers import figure, number


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.1234, "1", "0.123"),
        (1.0, "1", "1.00"),
        (123.4, "1", "123"),
        (94371712, "1", "94,371,712"),
        (0.0000123, "1", "1.23e-05"),
        (0.2012, "s", "201 ms"),
        (2e-6, "s", "2.00 µs"),
        (61.0, "s", "61.0 s"),
        (503 * 2**20, "bytes", "503 MiB"),
        (9.2 * 2**30, "bytes", "9.20 GiB"),
        (0, "bytes", "0 B"),
        (4.5, "1/s", "4.50 1/s"),
        (999.9999e9, "flop/s", "1.00 TFLOP/s"),
        (0.9999, "s", "1.00 s"),
        (999.7, "1", "1,000"),
        (1023.9 * 2**20, "bytes", "1,024 MiB"),
        (12.3e9, "flop", "12.3 GFLOP"),
    ],
)
def test_three_digits_with_the_unit(value, unit, text):
    assert number(value, unit) == text


def test_exponents_on_request():
    assert number(0.0408, "1", sci=True) == "4.08E-02"


def test_an_interval_is_shown_as_a_share():
    made = Estimate(metric=metrics.LATENCY, value=1.0, low=0.96, high=1.04, rounds=5, samples_per_round=3)
    assert figure(made) == "1.00 s ±4%"
    hopeless = Estimate(metric=metrics.LATENCY, value=1.0, low=1e-9, high=1e9, rounds=2, samples_per_round=3)
    assert figure(hopeless) == "1.00 s ±>999%"
