"""Metrics of systems that speak, against a simulated voice on the virtual clock whose figures are known beforehand."""

from dataclasses import replace

import numpy as np
import pytest
from live_voices import TEXT, conditions, measured, spoken, values

from speechmeter.analysis.live import measurements, speech
from speechmeter.core import metrics
from speechmeter.core.live import Sound
from speechmeter.core.types import Speech
from speechmeter.engine.live.sound import sound_of

# Pieces of 250 ms come every 62.5 ms from 0.25 s on; those from 0.5 s on are 0.5 s late, the last one 1 s more.
_GAPS = {"gaps": ((0.5, 0.5), (0.75, 1.0))}
_PIECES = (0.25, 0.3125, 0.875, 1.9375)


def test_a_plain_answer_has_exactly_the_figures_it_was_made_with():
    exchanges = spoken(leading_s=0.25, trailing_s=0.125, piece_s=0.125)
    found = {one.metric: one.values for one in measurements(exchanges, conditions())}
    last = 0.25 + 10 * 0.03125
    truths = {
        metrics.LIVE_COMPLETENESS: 100.0,
        metrics.FIRST_BYTE: 0.25,
        metrics.FIRST_SOUND: 0.5,
        metrics.LEADING_SILENCE: 0.25,
        metrics.SPEECH_RTF: last / 1.375,
        metrics.SPEECH_CHARACTERS: 16 / last,
        metrics.SPEECH_WORDS: 2 / last,
        metrics.SOUND_MADE: 1.375,
        metrics.UNDERRUN_LONGEST: 0.0,
        metrics.UNDERRUN_COUNT: 0.0,
        metrics.PREBUFFER_NEEDED: 0.0,
        metrics.REPEATED_TEXTS: 0.0,
        metrics.CLIPPING: 0.0,
    }
    assert {metric.name: found[metric.id] for metric in truths} == {
        metric.name: pytest.approx((true,)) for metric, true in truths.items()
    }


@pytest.mark.parametrize("metric", speech.READERS)
def test_every_metric_is_read_of_a_voice(metric):
    assert measured(metric, spoken()) is not None


# pre-buffer: playback begins, pauses. 0: at 0.25 s with 0.5 s of sound by 0.3125 s, dry at 0.75 s, and at 1.125 s.
# 0.5: from 0.3125 s, dry at 0.8125 s and 1.125 s. 0.75: from 0.875 s on, dry at 1.625 s. 1.0: when all is there.
@pytest.mark.parametrize(
    ("prebuffer_s", "pauses"),
    [(0.0, (0.125, 0.8125)), (0.5, (0.0625, 0.8125)), (0.75, (0.3125,)), (1.0, ())],
)
def test_underruns_follow_from_planted_gaps_and_the_prebuffer(prebuffer_s, pauses):
    exchanges = spoken(**_GAPS)
    assert [one.moment_s for one in exchanges[0].events if one.kind == "audio"] == pytest.approx(_PIECES)
    more = {"prebuffer_s": prebuffer_s}
    assert values(metrics.UNDERRUN_TOTAL, exchanges, **more) == pytest.approx((sum(pauses),))
    assert values(metrics.UNDERRUN_LONGEST, exchanges, **more) == pytest.approx((max(pauses, default=0.0),))
    assert values(metrics.UNDERRUN_COUNT, exchanges, **more) == (len(pauses),)


def test_playback_that_starts_later_by_the_delay_that_is_needed_has_no_pause():
    exchanges = spoken(**_GAPS)
    assert values(metrics.PREBUFFER_NEEDED, exchanges) == pytest.approx((1.9375 - 0.25 - 0.75,))
    assert values(metrics.PREBUFFER_NEEDED, exchanges) == pytest.approx(values(metrics.UNDERRUN_TOTAL, exchanges))
    assert values(metrics.SOUND_GAP, exchanges) == pytest.approx(np.diff(_PIECES))


def test_leading_silence_separates_first_byte_and_first_sound():
    exchanges = spoken(leading_s=0.3, rate=22_050)
    first_byte, first_sound = (values(metric, exchanges)[0] for metric in (metrics.FIRST_BYTE, metrics.FIRST_SOUND))
    assert first_sound - first_byte == pytest.approx(0.3, abs=0.01)


def test_sound_that_dries_up_before_the_onset_delays_the_first_sound():
    exchanges = spoken(leading_s=0.5, gaps=((0.5, 1.0),))
    assert values(metrics.FIRST_SOUND, exchanges) == pytest.approx((0.25 + 2 * 0.0625 + 1.0,))


def test_a_header_is_no_sound():
    exchanges = spoken(header=0.125)
    assert exchanges[0].events[0].moment_s == 0.125
    assert exchanges[0].events[0].audio == 0
    assert values(metrics.FIRST_BYTE, exchanges) == (0.25,)
    assert len(values(metrics.SOUND_GAP, exchanges)) == 3


def test_an_answer_in_one_piece_is_not_streamed():
    found = measured(metrics.UNDERRUN_TOTAL, spoken(whole=True))
    assert (found.values, found.unavailable) == ((), "not streamed: the sound came in one piece")
    assert values(metrics.FIRST_BYTE, spoken(whole=True)) == (0.25 + 3 * 0.0625,)


def test_a_constant_in_all_samples_is_no_sound_and_clipping_is_counted():
    assert values(metrics.LEADING_SILENCE, spoken(leading_s=0.25, offset=0.25)) == (0.25,)
    assert 50 < values(metrics.CLIPPING, spoken(clip=True))[0] < 100


def test_level_and_speaking_rate_are_those_of_the_speech_alone():
    exchanges = spoken(leading_s=1.0, trailing_s=1.0)
    assert values(metrics.SOUND_LEVEL, exchanges) == pytest.approx((20 * np.log10(0.5 / np.sqrt(2)),), abs=0.05)
    assert values(metrics.SPEAKING_RATE, exchanges) == pytest.approx((2.0,), rel=0.02)
    assert values(metrics.TRAILING_SILENCE, exchanges) == pytest.approx((1.0,), abs=0.02)


def test_the_cold_conversation_is_told_apart():
    exchanges = spoken("One.", "Two.", "Three.", cold_s=2.0, round_={"warmup_turns": 1})
    assert values(metrics.FIRST_SOUND_COLD, exchanges) == (2.25,)
    assert values(metrics.FIRST_SOUND, exchanges) == (0.25, 0.25)
    assert "warm-up" in measured(metrics.FIRST_SOUND_COLD, spoken()).unavailable


def test_repeated_texts_are_told_apart():
    exchanges = spoken("One.", "Two.", "One.", cached_s=0.0)
    assert values(metrics.REPEATED_TEXTS, exchanges) == (0.0, 0.0, 100.0)
    assert values(metrics.FIRST_SOUND_REPEATED, exchanges) == (0.0,)


def test_a_text_that_comes_token_by_token_is_counted_from_its_first_token():
    # sixt, een, lett with its blank, ers.
    exchanges = spoken(text_pace=4.0)
    assert [send.due_s for send in exchanges[0].sends] == [0.0, 0.25, 0.5, 0.75]
    assert values(metrics.FIRST_BYTE, exchanges, pace="realtime", text_pace=4.0) == (1.0,)
    assert "waiting" in measured(metrics.SPEECH_RTF, exchanges, pace="realtime", text_pace=4.0).unavailable


def test_a_voice_that_begins_with_the_first_sentence_is_heard_earlier():
    said = "One. Two. Three four five six."
    late, early = (
        values(metrics.FIRST_SOUND, spoken(said, text_pace=4.0, early=early), pace="realtime", text_pace=4.0)[0]
        for early in (False, True)
    )
    assert early == 0.5 < late  # the second token, which begins with a blank, is the end of the first sentence


def test_an_answer_without_sound_is_missing_and_counts_as_a_wrong_text():
    exchanges = spoken("One.", "Two.", lose_all=1.0)
    found = measured(metrics.FIRST_SOUND, exchanges)
    assert found.values == ()
    assert found.notes["missing"] == [0, 1]
    assert values(metrics.LIVE_COMPLETENESS, exchanges) == (0.0, 0.0)
    assert values(metrics.ROUND_TRIP_WER, exchanges, heard_by="ear") == (100.0, 100.0)


def test_silence_is_no_answer():
    silent = [replace(one, sound=sound_of(Speech(samples=np.zeros(16_000), rate=16_000))) for one in spoken()]
    assert values(metrics.LIVE_COMPLETENESS, silent) == (0.0,)
    assert measured(metrics.FIRST_SOUND, silent).notes["missing"] == [0]


def test_round_trip_errors_are_those_of_what_was_heard():
    exchanges = [replace(one, heard="sixteen ladders") for one in spoken()]
    found = measured(metrics.ROUND_TRIP_WER, exchanges, heard_by="ear")
    assert (found.values, found.notes["heard_by"]) == ((50.0,), "ear")
    assert "heard_by" in measured(metrics.ROUND_TRIP_WER, exchanges).unavailable


@pytest.mark.parametrize(
    ("levels", "span"),
    [
        ((-120, -50, -50, -50, -120), (0.01, 0.04)),
        ((-50, -50, -120, -120, -120), None),  # two stretches are no onset
        ((-61, -61, -61, -61, -61), None),
        ((-45, -45, -45, 0, 0, 0), (0.03, 0.06)),  # more than 40 dB below the loudest
    ],
)
def test_the_onset_is_three_stretches_above_the_threshold(levels, span):
    from speechmeter.analysis.live.sound import speech_span

    sound = Sound(rate=16_000, samples=160 * len(levels), peak=1.0, clipped=0, levels_db=tuple(map(float, levels)))
    assert speech_span(sound) == span


def test_throughput_of_a_voice_is_sound_made_per_second():
    exchanges = spoken(TEXT, "eight ch", first_s=0.0, speech_rtf=0.25)
    found = measured(metrics.LIVE_THROUGHPUT, exchanges)
    assert sum(found.notes["above"]) == 1.5


@pytest.mark.parametrize(
    ("stop_s", "stops"),
    [(0.0625, 0.0625), (0.0, 0.0), (0.5, 0.25 + 1.0 - 0.5)],  # the last one has said all: its second of sound is played
)
def test_a_voice_that_is_interrupted_is_silent_when_it_stops(stop_s, stops):
    exchanges = spoken(stop_s=stop_s, round_={"interrupt_s": 0.25}, speech_rtf=0.5)
    found = measured(metrics.BARGE_IN_STOP, exchanges, interrupts=True)
    assert exchanges[0].interrupt_s == 0.5
    assert found.values == pytest.approx((stops,))


def test_an_answer_that_is_over_cannot_be_interrupted():
    exchanges = spoken(round_={"interrupt_s": 5.0})
    assert exchanges[0].interrupt_s is None
    assert "ended before" in measured(metrics.BARGE_IN_STOP, exchanges, interrupts=True).unavailable
    assert "not interrupted" in measured(metrics.BARGE_IN_STOP, exchanges).unavailable


def test_voices_that_wait_for_a_slot_are_as_late_as_the_queue_is_long():
    # four streams, two slots, half a second of work: from the second turn on everybody waits for one other
    exchanges = spoken(
        *(f"text {n}" for n in range(4)), service_s=0.5, slots=2, first_s=0.0, speech_rtf=0.0,
        round_={"streams": 4, "turns": 5},
    )  # fmt: skip
    found = sorted(values(metrics.FIRST_SOUND, exchanges))
    assert found == pytest.approx([0.5] * 2 + [1.0] * 18)
