"""Durations with their units."""

import pytest

from speechmeter.core.durations import seconds_of


@pytest.mark.parametrize(
    "text, seconds",
    [("100ms", 0.1), ("20ms", 0.02), ("1s", 1.0), ("1.5 s", 1.5), ("10min", 600.0), ("1h", 3600.0), ("2", 2.0),
     (".5", 0.5)],
)  # fmt: skip
def test_texts_with_and_without_a_unit(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("value", ["fast", "1 day", "-1s", "1e400s", "", "ms", 3, 2.5, None, True, [1]])
def test_anything_else_is_left_to_whoever_checks_it(value):
    assert seconds_of(value) is value
