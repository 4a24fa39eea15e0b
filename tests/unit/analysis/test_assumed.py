"""Figures that rest on what the reader states, and what may be stated."""

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.assumed import assumed_estimate, assumed_metrics, read_assumptions
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Measurement

RECORDS = [
    make_record(
        make_case(),
        Measurement.of(metrics.LATENCY, [0.5]),
        Measurement.of(metrics.AUDIO_SECONDS, [10.0]),
        Measurement.of(metrics.ENERGY_GPU, [20.0 * scale]),
        round=round,
    )
    for round, scale in enumerate((1.0, 1.1))
]


def value(metric, energy=metrics.ENERGY_GPU, **stated):
    found = assumed_estimate(RECORDS, metric, energy, stated)
    return None if found is None else found.value


def test_a_rated_power_times_the_latency():
    assert value(metrics.ENERGY_TDP, tdp_w=700.0) == pytest.approx(350.0)


def test_co2_and_cost_follow_from_the_energy_of_an_audio_hour():
    per_hour_j = 20.0 * 1.1**0.5 / 10 * 3600
    assert value(metrics.CO2_PER_AUDIO_HOUR, co2_g_per_kwh=400.0) == pytest.approx(per_hour_j / 3.6e6 * 400)
    assert value(metrics.COST_PER_1000_AUDIO_HOURS, price_per_kwh=0.3) == pytest.approx(per_hour_j / 3600 * 0.3)


def test_the_interval_grows_with_the_figure():
    found = assumed_estimate(RECORDS, metrics.CO2_PER_AUDIO_HOUR, metrics.ENERGY_GPU, {"co2_g_per_kwh": 400.0})
    assert found.low < found.value < found.high
    assert found.metric is metrics.CO2_PER_AUDIO_HOUR


def test_without_a_reading_there_is_no_co2():
    assert value(metrics.CO2_PER_AUDIO_HOUR, metrics.ENERGY_CPU, co2_g_per_kwh=400.0) is None


def test_words_become_numbers():
    stated = read_assumptions(["tdp_w=65", "price_per_kwh=0.3"])
    assert stated == {"tdp_w": 65.0, "price_per_kwh": 0.3}
    assert assumed_metrics(stated) == [metrics.ENERGY_TDP, metrics.COST_PER_1000_AUDIO_HOURS]


@pytest.mark.parametrize("word", ["tdp=65", "tdp_w", "tdp_w=much", "tdp_w=0", "tdp_w=-3", "tdp_w=nan", "tdp_w=inf"])
def test_anything_else_is_refused_with_the_choices(word):
    with pytest.raises(InputError, match="tdp_w"):
        read_assumptions([word])
