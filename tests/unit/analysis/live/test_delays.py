"""Delays of conversations made by hand: the answer follows from the construction, exactly."""

from dataclasses import replace

import pytest
from live_talks import EVENTS, anchors, endpoint, final, measured, partial, sends, talk, values

from speechmeter.analysis.live.measure import READERS
from speechmeter.core import metrics
from speechmeter.core.live import Anchors
from speechmeter.core.metrics import Metric
from speechmeter.core.slo import DELAYS

USUAL = {
    metrics.FIRST_PARTIAL_FROM_SEND: (0.75,),
    metrics.FIRST_PARTIAL_FROM_ONSET: (0.5,),
    metrics.FINAL_DELAY: (0.625,),
    metrics.FINALIZE_DELAY: (0.5,),
    metrics.FINALIZE_SERVICE: (0.375,),
    metrics.CHUNK_WAIT: (0.125,),
    metrics.PARTIAL_GAP: (0.5, 0.25, 0.25, 0.5),
    metrics.LIVE_COMPLETENESS: (100.0,),
    metrics.EARLY_TEXT: (0.0,),
    metrics.TTFS_PIPECAT: (0.625,),
    metrics.TTFT_VLLM: (0.75,),
}


@pytest.mark.parametrize("metric", USUAL, ids=lambda metric: metric.name)
def test_a_usual_conversation_has_the_delays_that_it_was_made_with(metric: Metric):
    assert values(metric, talk()) == USUAL[metric]


def test_a_late_client_delays_what_counts_from_due_and_not_what_counts_from_the_send():
    late = talk(sends=sends(3.25, late_s=0.125))
    assert values(metrics.FIRST_PARTIAL_FROM_SEND, late) == (0.75,)
    assert values(metrics.FIRST_PARTIAL_SERVICE, late) == (0.625,)
    assert values(metrics.TTFT_VLLM, late) == (0.625,)


def test_text_before_speech_is_a_negative_delay_and_counts_as_early():
    early = talk(partial(0.25, "hm"), *EVENTS)
    assert values(metrics.FIRST_PARTIAL_FROM_ONSET, early) == (-0.25,)
    assert values(metrics.EARLY_TEXT, early, talk()) == (100.0, 0.0)


def test_a_final_before_the_end_of_speech_is_a_negative_delay():
    assert values(metrics.FINAL_DELAY, talk(final(1.75, "one two"))) == (-0.125,)
    assert values(metrics.FINALIZE_DELAY, talk(final(1.75, "one two"))) == (-0.25,)


def test_a_final_that_repeats_the_text_or_changes_no_word_does_not_move_the_delay():
    repeated = talk(*EVENTS, final(3.0, "One two three."), final(3.25, "one, two, three"))
    assert values(metrics.FINAL_DELAY, repeated) == (0.625,)


def test_a_final_that_changes_a_word_moves_the_delay():
    assert values(metrics.FINAL_DELAY, talk(*EVENTS, final(3.0, "one two free"))) == (1.125,)


def test_an_empty_final_is_no_final():
    assert values(metrics.FINAL_DELAY, talk(*EVENTS, final(3.0, " . ", segment=1))) == (0.625,)
    assert measured(metrics.FINAL_DELAY, talk(final(3.0, " . "))).notes["missing"] == [0]


def test_a_missing_final_is_neither_dropped_nor_the_timeout():
    found = measured(metrics.FINAL_DELAY, talk(), talk(partial(1.0, "one")), talk(error="reset", error_kind="refused"))
    assert found.values == (0.625,)
    assert found.notes["of"] == [0]
    assert found.notes["missing"] == [1, 2]
    assert found.notes["timeout_s"] == 30.0


def test_a_round_without_any_final_says_so():
    found = measured(metrics.FINAL_DELAY, talk(partial(1.0, "one")))
    assert found.values == ()
    assert found.unavailable == "in all conversations no text came within 30 s after the audio"
    assert found.notes["missing"] == [0]


def test_reasons_that_differ_between_conversations_are_all_said():
    whole, lost = talk(final(2.5, "one two three")), talk(error="too slow", error_kind="timeout")
    silent = replace(lost, events=())
    found = measured(metrics.FIRST_TOKEN, whole, silent, silent, pace="fast")
    assert found.unavailable == (
        "in 2 of 3 conversations no text came within 30 s after the audio; the whole answer came in one message"
    )


def test_a_turn_that_was_not_ended_is_no_missing_text():
    found = measured(metrics.ENDPOINT_DELAY, talk(), turn_end="system", endpoints=True)
    assert found.unavailable == "in all conversations the system did not end the turn within 30 s after the audio"


def test_without_an_end_of_speech_there_is_no_final_delay():
    found = measured(metrics.FINAL_DELAY, talk(anchors=Anchors()))
    assert found.unavailable == "the end of speech is unknown; add it with: speechmeter data anchors"
    assert "missing" not in found.notes


def test_some_conversations_without_an_anchor_are_counted():
    found = measured(metrics.FINAL_DELAY, talk(anchors=Anchors()), talk())
    assert found.notes["withheld"] == ["the end of speech is unknown; add it with: speechmeter data anchors (1 of 2)"]
    assert found.notes["of"] == [1]


def test_a_system_that_is_only_final_on_finish_has_no_final_delay_where_it_was_to_end_the_turn():
    assert measured(metrics.FINAL_DELAY, talk(), turn_end="system", endpoints=False).unavailable
    assert values(metrics.FINAL_DELAY, talk(), turn_end="system", endpoints=True) == (0.625,)


def test_without_finish_there_is_no_delay_after_it():
    assert measured(metrics.FINALIZE_DELAY, talk(), finishes=False).unavailable
    assert measured(metrics.FINALIZE_DELAY, talk(finish_s=None, finished_s=None)).unavailable


def test_a_fixed_cadence_withholds_the_delay_of_the_first_text():
    assert measured(metrics.FIRST_PARTIAL_FROM_SEND, talk(), fixed_cadence=True).unavailable
    assert values(metrics.FIRST_PARTIAL_FROM_ONSET, talk(), fixed_cadence=True) == (0.5,)


def test_the_last_endpoint_counts_for_the_delay_and_the_first_for_being_early():
    twice = talk(*EVENTS, endpoint(1.25), endpoint(2.25))
    assert values(metrics.ENDPOINT_DELAY, twice, endpoints=True) == (0.375,)
    assert values(metrics.EARLY_ENDPOINT, twice, endpoints=True) == (100.0,)
    late = talk(*EVENTS, endpoint(1.875))
    assert values(metrics.EARLY_ENDPOINT, late, twice, endpoints=True) == (0.0, 100.0)


def test_an_endpoint_that_never_came_is_missing_and_of_a_system_that_has_none_unavailable():
    assert measured(metrics.ENDPOINT_DELAY, talk(), endpoints=True, turn_end="system").notes["missing"] == [0]
    ended = measured(metrics.ENDPOINT_DELAY, talk(), endpoints=True, turn_end="oracle")
    assert ended.unavailable == "the input ended before the system ended the turn"
    assert not ended.notes.get("missing")
    assert measured(metrics.ENDPOINT_DELAY, talk()).unavailable == "the system does not report when a turn ends"


def test_an_end_of_speech_on_the_edge_of_a_chunk_waits_for_nothing():
    assert values(metrics.CHUNK_WAIT, talk(anchors=anchors(speech=(0.5, 1.75)))) == (0.0,)


def test_audio_that_is_fed_as_fast_as_possible_is_spoken_when_its_chunk_is_due():
    fast = talk(final(0.5, "one two three"), sends=sends(3.25)[:8])  # as sent in the first 2 s
    assert values(metrics.FINAL_DELAY, fast, pace="fast") == (-1.5,)  # the end is in the chunk due at 2.0
    assert measured(metrics.CHUNK_WAIT, fast, pace="fast").unavailable
    unsent = talk(sends=sends(1.0))
    assert measured(metrics.FINAL_DELAY, unsent, pace="fast").unavailable


def test_pipecat_leaves_out_what_is_negative_late_or_missing():
    early, late = talk(final(1.0, "one two three")), talk(final(4.25, "one two three"))
    found = measured(metrics.TTFS_PIPECAT, talk(), early, late, talk(partial(1.0, "one")))
    assert found.values == (0.625,)
    assert "missing" not in found.notes


def test_pipecat_counts_a_repeated_final():
    assert values(metrics.TTFS_PIPECAT, talk(*EVENTS, final(3.0, "One two three."))) == (1.125,)


def test_vllm_counts_an_empty_first_text():
    assert values(metrics.TTFT_VLLM, talk(partial(0.5, ""), *EVENTS)) == (0.25,)
    assert values(metrics.FIRST_PARTIAL_FROM_SEND, talk(partial(0.5, ""), *EVENTS)) == (0.75,)


def test_warm_ups_are_not_measured():
    found = measured(metrics.LIVE_ANSWERED, talk(warm_up=True), talk(utterance="v"))
    assert found.notes["utterances"] == ["v"]


def test_an_utterance_without_words_needs_no_answer():
    silent = talk(partial(1.0, ""), reference=".", anchors=Anchors(speech_end_s=1.0))
    assert values(metrics.LIVE_COMPLETENESS, silent) == (100.0,)
    assert "missing" not in measured(metrics.FINAL_DELAY, silent).notes


def test_busy_time_is_over_the_audio_and_the_silence():
    found = measured(metrics.LIVE_RTF, talk(busy_s=1.625))
    assert found.values == (0.5,)
    assert (found.notes["above"], found.notes["below"]) == ([1.625], [3.25])


def test_a_voice_detector_has_endpoints_and_no_figures_of_text():
    heard = talk(endpoint(2.375))
    given = {"texts": False, "endpoints": True, "turn_end": "system"}
    assert values(metrics.ENDPOINT_DELAY, heard, **given) == (0.5,)
    assert values(metrics.LIVE_COMPLETENESS, heard, **given) == (100.0,)
    for metric in (metrics.LIVE_WER, metrics.FINAL_DELAY, metrics.WORD_COVERAGE, metrics.BACKLOG, metrics.TAIL_LOSS):
        assert measured(metric, heard, **given).unavailable == "the system gives no text; it only says when a turn ends"


def test_an_utterance_without_speech_has_no_end_to_be_added():
    """Data anchors would find none: the reference is empty."""
    silent = talk(reference="", anchors=Anchors(), events=())
    for metric in (metrics.FINAL_DELAY, metrics.FIRST_PARTIAL_FROM_ONSET, metrics.CHUNK_WAIT, metrics.TTFS_PIPECAT):
        assert measured(metric, silent).unavailable == "the reference text is empty"
    assert "speechmeter data anchors" in measured(metrics.FINAL_DELAY, talk(anchors=Anchors())).unavailable


REFUSED = {"sends": (), "finish_s": None, "finished_s": None, "events": (), "ended_s": 0.0}
"""Of a conversation whose connection was never opened."""


@pytest.mark.parametrize("metric", [one for one in DELAYS if one in READERS], ids=lambda metric: metric.name)
def test_a_conversation_that_was_never_opened_is_missing_from_no_delay(metric: Metric):
    # of systems that have the metric; the request is one that is fed as fast as possible
    how = {"endpoints": True, "turn_end": "system"} if metric == metrics.ENDPOINT_DELAY else {}
    how |= {"pace": "fast"} if metric in (metrics.REQUEST_LATENCY, metrics.FIRST_TOKEN) else {}
    whole = talk(*EVENTS, endpoint(2.5)) if how.get("endpoints") else talk()
    found = measured(metric, whole, talk(error="nobody", error_kind="refused", **REFUSED), **how)
    assert len(found.values) == 1
    assert found.notes["missing"] == [1]


def test_a_request_of_which_no_audio_was_sent_is_missing_and_does_not_lack_an_end_of_speech():
    found = measured(metrics.FINAL_DELAY, talk(error="nobody", error_kind="refused", **REFUSED), pace="fast")
    assert found.notes["missing"] == [0]
