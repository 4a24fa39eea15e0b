"""Streams whose delay grows by a known slope, and the speech that text has not covered yet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_talks import anchors, conditions, final, measured, partial, sends, talk, values

from speechmeter.analysis.live.backlog import over_time, slope
from speechmeter.analysis.live.talk import talks
from speechmeter.core import metrics
from speechmeter.core.live import Anchors, Exchange

STREAM_S = 64.0


def stream(leak: float, *, spans: bool = True) -> Exchange:
    """A word every second, whose final comes half a second after its end, and later by `leak` for each second."""
    words = [(f"w{place}", place - 0.5, float(place)) for place in range(1, 64)]
    finals = [
        final(end + 0.5 + leak * end, text, place, end_s=end if spans else None)
        for place, (text, _, end) in enumerate(words)
    ]
    return talk(
        *finals, audio_s=STREAM_S, anchors=anchors(words), reference=" ".join(text for text, _, _ in words),
        sends=sends(STREAM_S), ended_s=80.0,
    )  # fmt: skip


@pytest.mark.parametrize("spans", [True, False], ids=["by the spans of finals", "by times of words"])
@pytest.mark.parametrize("leak", [0.0, 0.03125, 0.25, -0.0078125])
def test_the_slope_is_the_leak(leak: float, spans: bool):
    assert values(metrics.KEEP_UP, stream(leak, spans=spans)) == pytest.approx((leak,), abs=1e-12)


def test_the_first_ten_seconds_do_not_count():
    """A cold start: the first texts are late, then all come at once."""
    cold = stream(0.0)
    late = [
        final(max(event.moment_s, 9.0), event.text, event.segment, end_s=event.end_s) for event in cold.of_kind("final")
    ]
    assert values(metrics.KEEP_UP, talk(*late, audio_s=STREAM_S, anchors=cold.anchors)) == (0.0,)


def test_a_short_stream_has_no_slope():
    assert (
        measured(metrics.KEEP_UP, talk()).unavailable
        == "the stream is shorter than 60 s; join utterances with: speechmeter data join"
    )


def test_a_line_has_its_slope():
    assert slope([(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]) == 2.0


def test_the_backlog_is_the_speech_that_was_due_and_is_not_covered():
    one, two = partial(1.0, "one"), partial(1.5, "one two")
    found = talk(one, two, final(3.0, "one two three"))
    # words of 0.25, 0.25 and 0.375 s: each of the first two is shown before the next ends, the third at 3.0
    assert values(metrics.BACKLOG, found) == (0.375,)
    assert values(metrics.BACKLOG, talk(final(3.0, "one two three"))) == (0.875,)
    assert values(metrics.BACKLOG, talk(partial(1.0, "one"), error="lost")) == (0.875,), "without a final, all of it"


def test_a_pause_is_no_backlog():
    """The last word ended at 0.75 and is covered; then nothing is said for seconds."""
    words = [("one", 0.5, 0.75), ("two", 8.0, 8.5)]
    found = talk(partial(1.0, "one"), final(8.75, "one two"), anchors=anchors(words), audio_s=9.0)
    curve = over_time(talks([found], conditions())[0])
    assert (1.0, 0.0) in curve
    assert (8.5, 0.0) in curve, "until the second word ends, nothing is due"
    assert values(metrics.BACKLOG, found) == (0.5,)  # the second word, from its end to its final


@pytest.mark.parametrize("shift", [0.0, 2.5, 40.0])
def test_silence_before_speech_is_no_backlog(shift: float):
    words = [("one", 0.5 + shift, 0.75 + shift), ("two", 1.0 + shift, 1.5 + shift)]
    found = talk(partial(0.875 + shift, "one"), final(1.625 + shift, "one two"), anchors=anchors(words), audio_s=50.0)
    assert values(metrics.BACKLOG, found) == (0.5,)
    spans = talk(final(4.0 + shift, "one two", end_s=1.5 + shift), audio_s=50.0,
                 anchors=Anchors(speech_start_s=0.5 + shift, speech_end_s=1.5 + shift))  # fmt: skip
    assert values(metrics.BACKLOG, spans) == (1.0,), "nor without times of words"


def test_stating_the_end_of_finals_never_makes_a_system_look_worse():
    texts = (partial(1.0, "one"), partial(1.5, "one two"))
    plain = talk(*texts, final(3.0, "one two three"))
    for end_s in (0.75, 1.25, 1.875, 30.0):
        stated = talk(*texts, final(3.0, "one two three", end_s=end_s))
        assert values(metrics.BACKLOG, stated) == values(metrics.BACKLOG, plain)
        assert min(behind for _, behind in over_time(talks([stated], conditions())[0])) == 0.0


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 12)), min_size=1, max_size=8, unique_by=lambda one: one[0]
    ),
    lags=st.lists(st.integers(-6, 40), min_size=8, max_size=8),
)
def test_the_curve_is_the_speech_that_ended_and_is_not_covered(spans, lags):
    """Against a count of ticks of a 16th of a second, each of which is speech or not, due or not, covered or not."""
    words = sorted((start / 16, (start + length) / 16) for start, length in spans)
    ends = sorted(end for _, end in words)
    finals = sorted((end + lag / 16, end) for end, lag in zip(ends, lags, strict=False) if end + lag / 16 >= 0)
    found = talk(
        *(final(moment, f"w{place}", place, end_s=end) for place, (moment, end) in enumerate(finals)), audio_s=6.0,
        anchors=anchors([(f"v{place}", *word) for place, word in enumerate(words)]), ended_s=9.0,
    )  # fmt: skip
    speech = {tick for start, end in words for tick in range(round(start * 16), round(end * 16))}

    def told(moment):
        due = max([end for end in ends if end <= moment], default=0.0)
        seen = max([end for at, end in finals if at <= moment], default=0.0)
        return sum(seen * 16 <= tick < due * 16 for tick in speech) / 16

    curve = over_time(talks([found], conditions())[0])
    after = dict(curve)  # of two points at one moment, the one after what happened
    assert after == pytest.approx({moment: told(moment) for moment in after})
    assert values(metrics.BACKLOG, found) == pytest.approx((max(map(told, after)),))


def test_without_times_of_words_the_spans_of_finals_say_what_is_covered():
    found = talk(final(2.0, "one", 0, end_s=1.0), final(3.0, "two", 1, end_s=2.0), anchors=Anchors(speech_end_s=2.0))
    assert over_time(talks([found], conditions())[0]) == [
        (0.0, 0.0), (2.0, 2.0), (2.0, 1.0), (3.0, 1.0), (3.0, 0.0), (5.5, 0.0),
    ]  # fmt: skip


def test_without_either_there_is_no_backlog():
    assert measured(metrics.BACKLOG, talk(anchors=Anchors(speech_end_s=1.0))).unavailable


def test_nothing_is_behind_where_audio_is_fed_as_fast_as_possible():
    assert measured(metrics.BACKLOG, talk(), pace="fast").unavailable
    assert measured(metrics.KEEP_UP, stream(0.0), pace="fast").unavailable
