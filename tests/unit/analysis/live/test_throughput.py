"""Throughput at a level: audio of complete conversations in a second of full load."""

import pytest
from conftest import make_case, make_record
from live_rounds import held, known, utterance

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.live import measurements
from speechmeter.core import metrics
from speechmeter.core.live import Conditions

SLOTS, WORK_S, AUDIO_S = 2, 0.25, 3.0


def throughput(streams=1, *, turns=None, rate=None, seed="0", script=None, **protocol):
    one = utterance(audio_s=AUDIO_S)
    live = known([one], service_s=WORK_S, slots=SLOTS, **(script or {}))
    made = held(
        live, [one], pace="fast", chunk_s=AUDIO_S, streams=streams, turns=turns, rate=rate, silence_s=0.0,
        arrivals="constant" if rate else "", seed=seed, **protocol,
    )  # fmt: skip
    conditions = Conditions(
        pace="fast", chunk_s=AUDIO_S, turn_end="system", quiet_s=3.0, streams=streams,
        arrivals="constant" if rate else "",
    )  # fmt: skip
    return make_record(make_case(), *measurements(made.exchanges, conditions))


def value(record):
    return estimate([record], metrics.LIVE_THROUGHPUT).value


@pytest.mark.parametrize("streams", [1, 2, 3, 6])
def test_a_closed_loop_gets_through_as_much_as_its_slots_can(streams):
    # min(N, c) conversations of 3 s of audio, each taking 0.25 s
    assert value(throughput(streams, turns=40)) == pytest.approx(min(streams, SLOTS) / WORK_S * AUDIO_S, rel=0.03)


def test_below_its_edge_it_is_what_arrives():
    assert value(throughput(rate=4.0, turns=100)) == pytest.approx(4.0 * AUDIO_S, rel=0.03)


def test_beyond_its_edge_it_is_what_the_system_can():
    assert value(throughput(rate=16.0, turns=400, timeout_s=1000.0)) == pytest.approx(
        SLOTS / WORK_S * AUDIO_S, rel=0.03
    )


def test_conversations_without_an_answer_do_not_count():
    assert value(throughput(1, turns=10, script={"lose_all": 1.0}, timeout_s=3.0)) == 0.0


def test_it_is_withheld_where_each_stream_holds_one_conversation():
    found = throughput(4, turns=1).find(metrics.LIVE_THROUGHPUT.id)
    assert not found.values and "raise `turns`, or set `duration`" in found.unavailable
