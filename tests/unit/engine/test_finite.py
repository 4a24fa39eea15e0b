from math import inf, nan

import pytest

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.engine.failures import finite


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_reading_that_is_no_number_makes_the_metric_unavailable(bad):
    found = finite(Measurement.of(metrics.LATENCY, [1.0, bad]))
    assert found.values == ()
    assert str(bad) in found.unavailable


def test_notes_say_in_words_what_no_number_can():
    found = finite(Measurement.of(metrics.LATENCY, [1.0], notes={"a": nan, "b": [1.5, {"c": inf}], "d": "x"}))
    assert found.values == (1.0,)
    assert found.notes == {"a": "nan", "b": [1.5, {"c": "inf"}], "d": "x"}
