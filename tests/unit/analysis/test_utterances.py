"""Figures over the utterances of a dataset: truths worked out by hand."""

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.utterances import by_utterance, over_utterances
from speechmeter.core import metrics
from speechmeter.core.types import Measurement

AUDIO = [1.0, 2.0, 4.0]


def dataset(*rounds, items=(1.0, 1.0, 1.0), audio=AUDIO):
    """Rounds of three utterances; a round lists its passes."""
    return [
        make_record(
            make_case("mine"),
            Measurement.of(metrics.ITEMS, items),
            Measurement.of(metrics.AUDIO_SECONDS, audio),
            Measurement.of(metrics.LATENCY, [v for one in passes for v in one], notes={"batches": 3}),
            Measurement.of(metrics.FLOPS, [10.0, 20.0, 60.0]),
            round=number,
        )
        for number, passes in enumerate(rounds)
    ]


def test_an_utterance_has_the_median_of_its_samples():
    records = dataset([(1.0, 2.0, 4.0), (3.0, 2.0, 5.0), (2.0, 9.0, 6.0)])
    assert by_utterance(records, metrics.LATENCY) == pytest.approx([2.0, 2.0, 5.0])
    assert by_utterance(records, metrics.RTF) == pytest.approx([2.0, 1.0, 1.25])
    assert by_utterance(records, metrics.FLOPS) == [10.0, 20.0, 60.0]


def test_rounds_are_joined_by_their_geometric_mean_and_give_the_mean_its_interval():
    records = dataset([(1.0, 4.0, 9.0)], [(4.0, 1.0, 4.0)])
    assert by_utterance(records, metrics.LATENCY) == pytest.approx([2.0, 2.0, 6.0])
    found = over_utterances(records, metrics.LATENCY)
    assert found["mean"].value == pytest.approx((14 / 3 * 3.0) ** 0.5)
    assert found["mean"].low < found["mean"].value < found["mean"].high
    assert found["p50"].value == pytest.approx(2.0)
    assert found["max"].value == pytest.approx(6.0)


def test_a_percentile_waits_for_enough_utterances():
    assert over_utterances(dataset([(1.0, 2.0, 3.0)]), metrics.LATENCY)["p95"] is None
    many = make_record(
        make_case("mine"),
        Measurement.of(metrics.ITEMS, [1.0] * 100),
        Measurement.of(metrics.LATENCY, [float(v) for v in range(100, 0, -1)], notes={"batches": 100}),
    )
    assert over_utterances([many], metrics.LATENCY)["p95"].value == 95.0


def test_several_utterances_a_call_have_no_figure_of_their_own():
    assert over_utterances(dataset([(1.0, 2.0, 3.0)], items=(2.0, 2.0, 1.0)), metrics.LATENCY) == {}
    assert by_utterance([make_record(make_case("mine"), Measurement.of(metrics.LATENCY, [1.0]))], metrics.LATENCY) == []


def test_real_time_factors_need_seconds_of_every_utterance():
    assert by_utterance(dataset([(1.0, 2.0, 3.0)], audio=[1.0]), metrics.RTF) == []
