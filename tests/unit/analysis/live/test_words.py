"""Words of conversations made by hand: when each came, which changed again, and which never came."""

import pytest
from live_talks import EVENTS, anchors, final, measured, partial, talk, values

from speechmeter.core import metrics
from speechmeter.core.live import Anchors
from speechmeter.core.metrics import Metric

USUAL = {
    metrics.WORD_LAG: (0.25, 0.5, 0.625),
    metrics.WORD_LAG_FIRST: (0.25, 0.5, 0.625),
    metrics.WORD_COVERAGE: (100.0,),
    metrics.PARTIAL_CHURN: (2 / 3,),
    metrics.PARTIAL_CHURN_RAW: (4 / 3,),  # one → One, tree → three., too → two
    metrics.PARTIAL_CHURN_LENIENT: (2 / 3,),
    metrics.PARTIAL_REVISIONS: (2.0,),
    metrics.TAIL_LOSS: (0.0,),
    metrics.MUTE_LONGEST: (0.25,),
    metrics.LAAL: (1.0,),
    metrics.LIVE_WER: (0.0,),
}


@pytest.mark.parametrize("metric", USUAL, ids=lambda metric: metric.name)
def test_a_usual_conversation_has_the_figures_that_it_was_made_with(metric: Metric):
    assert values(metric, talk()) == USUAL[metric]


def test_a_word_that_is_lost_again_is_stable_only_when_it_is_back():
    lost = talk(partial(1.0, "one"), partial(1.25, "won"), partial(1.5, "one two"), final(2.0, "one two three"))
    assert values(metrics.WORD_LAG_FIRST, lost) == (0.25, 0.25, 0.125)
    assert values(metrics.WORD_LAG, lost) == (0.75, 0.25, 0.125)


def test_a_word_before_it_ended_has_a_negative_lag():
    assert values(metrics.WORD_LAG, talk(partial(0.5, "one"), final(2.0, "one")))[0] == -0.25


def test_a_wrong_word_in_front_does_not_move_the_words_behind_it():
    """A word is in its place by alignment with the final text, not by its number."""
    found = talk(partial(1.0, "one"), partial(1.5, "one two"), final(2.0, "oh one two three"))
    assert values(metrics.WORD_LAG, found) == (0.25, 0.25, 0.125)


def test_lag_is_over_correct_words_and_names_them():
    found = talk(partial(1.0, "one"), final(2.0, "one too three"))
    measurement = measured(metrics.WORD_LAG, found)
    assert measurement.values == (0.25, 0.125)
    assert measurement.notes["word"] == [0, 2]
    assert measured(metrics.WORD_COVERAGE, found).notes["above"] == [2]
    assert measured(metrics.WORD_COVERAGE, found).notes["below"] == [3]


def test_a_word_of_two_tokens_has_the_time_of_the_word_twice():
    hyphen = anchors([("thirty-one", 0.5, 1.0), ("days", 1.0, 1.5)])
    found = measured(metrics.WORD_LAG, talk(final(2.0, "thirty one days"), anchors=hyphen))
    assert found.values == (1.0, 1.0, 0.5)


def test_a_repeated_word_is_not_taken_for_its_first_occurrence():
    words = [("go", 0.5, 0.75), ("now", 0.75, 1.0), ("go", 1.25, 1.5)]
    found = talk(partial(1.0, "go"), partial(1.25, "go now"), final(2.0, "go now go"), anchors=anchors(words))
    assert values(metrics.WORD_LAG, found) == (0.25, 0.25, 0.5)


def test_segments_follow_one_another_by_number():
    found = talk(
        partial(1.0, "one"), final(1.25, "one", 0), partial(1.5, "two", 1), partial(1.75, "two tree", 1),
        final(2.25, "two three", 1), reference="one two three",
    )  # fmt: skip
    assert values(metrics.WORD_LAG, found) == (0.25, 0.25, 0.375)
    assert values(metrics.PARTIAL_CHURN, found) == (1 / 3,)
    assert values(metrics.LIVE_WER, found) == (0.0,)


def test_a_final_may_change_its_own_segment_later():
    found = talk(final(1.5, "one too"), final(2.0, "one two three"))
    assert values(metrics.FINAL_DELAY, found) == (0.125,)
    assert values(metrics.WORD_LAG, found) == (0.75, 0.75, 0.125)


def test_a_partial_behind_its_final_does_not_open_the_segment_again():
    assert values(metrics.PARTIAL_CHURN, talk(*EVENTS, partial(3.0, "what"))) == (2 / 3,)


def test_a_last_word_that_only_grew_is_no_churn_for_the_lenient_variant():
    grown = talk(partial(1.0, "some"), partial(1.5, "something"), final(2.0, "something else"))
    assert values(metrics.PARTIAL_CHURN, grown) == (0.5,)
    assert values(metrics.PARTIAL_CHURN_LENIENT, grown) == (0.0,)
    shrunk = talk(partial(1.0, "some"), partial(1.5, ""), final(2.0, "other"))
    assert values(metrics.PARTIAL_CHURN_LENIENT, shrunk) == (1.0,)


def test_partials_that_ended_in_no_word_still_show():
    found = measured(metrics.PARTIAL_CHURN, talk(partial(1.0, "hm well"), final(2.0, "")))
    assert found.values == (2.0,)
    assert (found.notes["above"], found.notes["below"]) == ([2], [0])


def test_without_partials_there_is_no_churn():
    assert measured(metrics.PARTIAL_CHURN, talk(final(2.0, "one"))).unavailable == "the system sent no partial text"


def test_only_growing_text_has_no_churn():
    assert values(metrics.PARTIAL_CHURN, talk(partial(1.0, "one"), final(2.0, "one two"))) == (0.0,)


def test_the_tail_is_what_follows_the_last_correct_word():
    assert values(metrics.TAIL_LOSS, talk(final(2.0, "one"))) == (100 * 2 / 3,)
    assert values(metrics.TAIL_LOSS, talk(final(2.0, "three"))) == (0.0,)
    assert values(metrics.TAIL_LOSS, talk(partial(2.0, "three"))) == (100.0,)


def test_mute_is_the_speech_that_passes_without_a_new_word():
    assert values(metrics.MUTE_LONGEST, talk(final(2.0, "one two three"))) == (0.875,)  # all words, no pauses
    assert values(metrics.MUTE_LONGEST, talk(partial(1.0, "one"), final(2.0, "one"))) == (0.625,)
    shorter = talk(partial(1.0, "one two"), partial(1.25, "one"), final(2.0, "one two three"))
    assert values(metrics.MUTE_LONGEST, shorter) == (0.625,)  # a text that only lost a word is nothing new


def test_a_missing_final_is_all_words_deleted():
    found = measured(metrics.LIVE_WER, talk(), talk(partial(1.0, "one two three")))
    assert found.values == (0.0, 100.0)
    assert (found.notes["above"], found.notes["below"]) == ([0, 3], [3, 3])


def test_a_conversation_that_failed_has_no_final_text_whatever_came_before():
    """Ten conversations of three words: one lost, one failed after its final, and one word of the others is wrong."""
    whole = [talk(final(2.5, "one two tree")) for _ in range(8)]
    failed = talk(final(2.5, "one two three"), error="reset", error_kind="connection")
    each = (*whole, talk(partial(1.0, "one")), failed)

    def share(metric):
        notes = measured(metric, *each).notes
        return sum(notes["above"]), sum(notes["below"])

    assert share(metrics.LIVE_WER) == (8 + 3 + 3, 30)
    assert share(metrics.WORD_COVERAGE) == (8 * 2, 30)
    assert share(metrics.TAIL_LOSS) == (8 * 1 + 3 + 3, 30)
    assert share(metrics.LIVE_COMPLETENESS) == (8, 10)
    lags = measured(metrics.WORD_LAG, *each)
    assert len(lags.values) == 8 * 2, "as many words as are covered"
    assert "the conversation failed (1 of 10)" in lags.notes["withheld"]


def test_words_where_there_is_no_speech_are_errors():
    noise = talk(final(1.0, "thank you"), reference="", anchors=Anchors())
    assert measured(metrics.LIVE_WER, noise).notes["above"] == [2]
    assert measured(metrics.LIVE_WER, noise).notes["below"] == [0]


def test_what_the_data_lack_is_withheld_with_the_reason():
    bare = talk(anchors=Anchors(), reference=None)
    for metric in (metrics.WORD_LAG, metrics.WORD_COVERAGE, metrics.TAIL_LOSS, metrics.MUTE_LONGEST):
        assert (
            measured(metric, bare).unavailable
            == "the times of the words are unknown; add them with: speechmeter data anchors"
        )
    for metric in (metrics.LAAL, metrics.LIVE_WER):
        assert measured(metric, bare).unavailable == "the utterance has no reference text"


def test_lagging_that_begins_after_the_audio_is_that_of_the_first_word():
    assert values(metrics.LAAL, talk(final(2.5, "one two three"))) == (2.5,)


def test_text_is_compared_as_the_conditions_say():
    shout = talk(final(2.0, "ONE TWO THREE"))
    assert values(metrics.LIVE_WER, shout, normaliser="basic.v2") == (0.0,)
    assert values(metrics.LIVE_WER, shout, normaliser="none.v1") == (100.0,)
    assert measured(metrics.LIVE_WER, shout, normaliser="none.v1").notes["normaliser"] == "none.v1"
