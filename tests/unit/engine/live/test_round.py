"""Streams of a round: what each says, when it starts, what is warm-up, and what the client did meanwhile."""

from dataclasses import replace
from itertools import pairwise

import pytest
from live_rounds import held, known, utterance

from speechmeter.analysis.live import measurements
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.live import Anchors, Conditions, Live
from speechmeter.engine.live.client import ClientWatch, percentile
from speechmeter.engine.live.round import Script
from speechmeter.engine.live.utterance import chunks_of

FOUR = [utterance(f"u{n}") for n in range(4)]


def test_every_stream_says_every_utterance_from_another_one_on():
    exchanges = held(known(FOUR), FOUR, streams=2).exchanges
    said = {stream: [e.utterance for e in exchanges if e.stream == stream] for stream in (0, 1)}
    assert said == {0: ["u0", "u1", "u2", "u3"], 1: ["u2", "u3", "u0", "u1"]}
    assert [e.turn for e in exchanges if e.stream == 1] == [0, 1, 2, 3]


def test_the_next_conversation_is_due_when_the_one_before_it_ended():
    exchanges = held(known(FOUR), FOUR).exchanges
    assert len(exchanges) == 4
    for before, after in pairwise(exchanges):
        assert after.due_s == pytest.approx(before.started_s + before.ended_s)


def test_warm_up_utterances_are_not_measured():
    found = held(known(FOUR), FOUR, warmup_turns=1, streams=2)
    assert [e.utterance for e in found.exchanges if e.warm_up] == ["u0", "u0"]
    assert {e.utterance for e in found.exchanges if not e.warm_up} == {"u1", "u2", "u3"}
    measured = sum(len(e.sends) for e in found.exchanges if not e.warm_up)
    assert len(found.round.watch.late_s) == measured


def test_a_single_utterance_goes_without_warm_up_and_says_so():
    script, warnings = Script.of_all(FOUR[:1], warmup_turns=1, streams=1, seed="0")
    assert script.warm_up == ()
    assert "no warm-up" in warnings[0]
    with pytest.raises(InputError, match="2 utterances are too few"):
        Script.of_all(FOUR[:2], warmup_turns=2, streams=1, seed="0")


def test_a_system_that_changes_its_samples_does_not_change_the_utterance():
    one = utterance("changed")
    heard = [float(abs(chunk.pcm).sum()) for chunk in chunks_of(one, 4.0, 0.1)]
    for chunk in chunks_of(one, 4.0, 0.1):
        chunk.pcm[:] = 0
    assert [float(abs(chunk.pcm).sum()) for chunk in chunks_of(one, 4.0, 0.1)] == heard
    assert max(heard) > 0


def test_turns_and_duration_end_a_stream():
    assert len(held(known(FOUR), FOUR, turns=6).exchanges) == 6
    # a conversation takes 4 s: after 9 s the third one is under way, and ends
    assert len(held(known(FOUR), FOUR, duration_s=9.0).exchanges) == 3


def test_streams_start_together_or_spread_over_an_utterance_by_the_seed():
    aligned = held(known(FOUR), FOUR, streams=3).exchanges
    assert {e.started_s for e in aligned if e.turn == 0} == {0.0}
    spread = [e.started_s for e in held(known(FOUR), FOUR, streams=3, phase="random", seed="7").exchanges if not e.turn]
    again = [e.started_s for e in held(known(FOUR), FOUR, streams=3, phase="random", seed="7").exchanges if not e.turn]
    other = [e.started_s for e in held(known(FOUR), FOUR, streams=3, phase="random", seed="8").exchanges if not e.turn]
    assert spread == again != other
    assert len(set(spread)) == 3
    assert all(0 <= start < 4.0 for start in spread)


def test_progress_counts_utterances_late_sends_and_partials():
    found = held(known(FOUR, fail=1.0), FOUR, silence_s=1.0)
    assert found.round.tally.line() == "4 of 4 utterances, 0 late sends, 16 partials, 4 failed"


def test_late_sends_make_figures_client_bound():
    watch = ClientWatch(clock=None, late_s=[0.001] * 98 + [0.004] * 2)
    assert watch.warnings("realtime", 0.05) == []
    (warning,) = watch.warnings("realtime", 0.02)
    assert warning.startswith(
        "client-bound: this program sent chunks of 20 ms late, by 4.0 ms at p99 and 4.0 ms at most"
    )
    assert ClientWatch(clock=None, late_s=[0.0] * 999 + [0.021]).warnings("realtime", 0.02)
    assert watch.warnings("fast", 0.02) == []
    values = {m.metric: m.values for m in watch.measurements("realtime")}
    assert values[metrics.CLIENT_SLIP_P99.id] == (0.004,)
    assert values[metrics.CLIENT_SLIP_MAX.id] == (0.004,)


def test_a_percentile_is_a_value_that_was_seen():
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile([1.0, 2.0], 99) == 2.0
    assert percentile([5.0], 50) == 5.0


def test_requests_of_a_client_that_is_late_by_a_tenth_of_their_latency_are_bounded_by_it():
    late = ClientWatch(clock=None, begun_late_s=[0.0] * 90 + [0.03] * 10)
    assert late.late_requests([0.2] * 100)[0].startswith("client-bound: this program began requests 30.0 ms late")
    assert late.late_requests([0.4] * 100) == [] == late.late_requests([])
    busy = ClientWatch(clock=None, lag_s=[0.05] * 100)
    assert busy.late_requests([0.2] * 100) and not busy.late_requests([1.0] * 100)


class Refusing:
    """A system that is not there."""

    def __init__(self, clock):
        pass

    async def open(self):
        raise ConnectionRefusedError("nobody")

    async def close(self):
        pass


def test_a_stream_that_is_refused_at_once_does_not_begin_thousands_of_conversations():
    refusing = Live(converse=Refusing, virtual=True)
    spoken = held(refusing, FOUR, duration_s=40.0).exchanges
    assert [one.due_s for one in spoken] == pytest.approx(
        [4.0 * turn for turn in range(10)]
    )  # as if they had been said
    sent = held(refusing, FOUR, duration_s=0.95, pace="fast").exchanges
    assert len(sent) == 10 and {one.error_kind for one in sent} == {"refused"}


@pytest.mark.parametrize("load", [{}, {"arrivals": "constant", "rate": 1.0}], ids=["streams", "arrivals"])
def test_conversations_of_a_round_that_breaks_off_count_as_failed(load):
    # the third utterance does not say where speech ends, so it cannot be fed as the protocol asks
    said = [replace(one, anchors=Anchors()) if place == 2 else one for place, one in enumerate(FOUR)]
    taken = []
    with pytest.raises(InputError, match="u2 has none"):
        held(known(FOUR), said, turn_end="oracle", take=taken.append, **load)
    assert {one.utterance: one.error_kind for one in taken} == {
        **({"u0": "", "u1": ""} if not load else {"u0": "cut-off", "u1": "cut-off"}), "u2": "cut-off", "u3": "cut-off"
    }  # fmt: skip
    conditions = Conditions(pace="realtime", chunk_s=0.1, turn_end="oracle", quiet_s=3.0)
    found = {one.metric: one for one in measurements(taken, conditions)}
    answered = [float(not one.error) for one in taken]
    assert list(found[metrics.LIVE_ANSWERED.id].values) == answered
    assert found[metrics.FINALIZE_DELAY.id].notes["missing"] == [n for n, value in enumerate(answered) if not value]


def test_no_stream_starts_after_the_end_of_a_round():
    exchanges = held(known(FOUR), FOUR, streams=8, phase="random", duration_s=0.5).exchanges
    assert {one.stream for one in exchanges} == set(range(8))
    assert all(one.due_s < 0.5 for one in exchanges if one.turn == 0)
