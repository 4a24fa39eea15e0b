"""Speech to speech on the virtual clock: recogniser, model of text and voice in a chain, and the parts of its delay."""

import pytest
from live_rounds import PROTOCOL, held, known, utterance
from live_voices import conditions, values

from speechmeter.analysis.live import measurements
from speechmeter.core import metrics, plugins
from speechmeter.core.axes import Axes
from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Case, Spec
from speechmeter.subjects.known_voice import VoiceScript, known_voice
from speechmeter.subjects.live.relay import relayed

SAID = utterance(audio_s=3.0, start_s=0.5, end_s=2.5)
PARTS = (metrics.VOICE_RECOGNITION, metrics.VOICE_THINKING, metrics.VOICE_SYNTHESIS, metrics.VOICE_ONSET)
SPOKEN_TO = {"reads": False, "texts": True, "pace": "realtime", "endpoints": True}


def answered(hear, voice=VoiceScript(), **protocol):
    live = relayed(known([SAID], **hear), [], known_voice(voice))
    return held(live, [SAID], **protocol).exchanges[0]


def test_the_parts_of_voice_to_voice_are_known_and_add_up():
    # speech ends at 2.5 s, the turn 0.5 s later, the text comes after 0.25 s, sound after 0.125 s, audible after 0.5 s
    found = answered({"endpoint_s": 0.5, "final_s": 0.25}, VoiceScript(first_s=0.125, leading_s=0.5))
    made = {one.metric: one.values for one in measurements([found], conditions(**SPOKEN_TO))}
    assert [made[part.id] for part in PARTS] == [
        pytest.approx((true,)) for true in (0.75, 0.0, 0.125, 0.5)
    ]  # fmt: skip
    assert made[metrics.VOICE_TO_VOICE.id] == pytest.approx((1.375,))
    total = sum(made[part.id][0] for part in PARTS)
    assert total == pytest.approx(made[metrics.VOICE_TO_VOICE.id][0], abs=1e-9)
    assert made[metrics.FINAL_DELAY.id] == pytest.approx((0.75,))
    assert [event.text for event in found.of_kind("text")] == ["one two three four"]


def test_a_recogniser_that_does_not_end_turns_answers_after_the_input():
    found = answered({"final_s": 0.25}, turn_end="oracle", turn_delay_s=0.5)
    assert values(metrics.VOICE_TO_VOICE, [found], **{**SPOKEN_TO, "endpoints": False, "turn_end": "oracle"}) == (
        pytest.approx(0.5 + 0.25 + 0.25),
    )
    withheld = {one.metric: one for one in measurements([found], conditions(**{**SPOKEN_TO, "endpoints": False}))}
    assert "cannot end a turn by itself" in withheld[metrics.VOICE_TO_VOICE.id].unavailable


def test_a_turn_without_words_has_no_answer():
    found = answered({"lose_all": 1.0})
    assert (found.error, found.sound) == ("", None)
    made = {one.metric: one for one in measurements([found], conditions(**SPOKEN_TO))}
    assert made[metrics.VOICE_TO_VOICE.id].notes["missing"] == [0]


@pytest.mark.parametrize("end", ["hear", "speak"])
def test_an_error_at_either_end_is_that_of_the_conversation(end):
    found = answered({"fail": 1.0} if end == "hear" else {}, VoiceScript(fail=float(end == "speak")))
    assert (found.error_kind, found.error) == ("system", "asked to fail")


def test_models_of_text_answer_in_between():
    live = relayed(
        known([SAID], virtual=False), [str.upper, lambda text: f"{text}!"], known_voice(VoiceScript(), virtual=False)
    )
    found = held(live, [SAID], pace="fast").exchanges[0]
    assert [event.text for event in found.of_kind("text")] == ["ONE TWO THREE FOUR!"]


AXES = {
    "device": "cpu", "dtype": "float32", "threads": 1, "pace": "realtime", "chunk": 0.1, "streams": 1, "seconds": 1.0,
    "batch": 1,
}  # fmt: skip


def cascade(*loads):
    stages = [{"name": f"s{place}", "load": load} for place, load in enumerate(loads)]
    workload = Spec(plugin="audio", name="sample", source="sample")
    subject = Spec(plugin="cascade", name="c", options={"stages": stages})
    return Case(subject=subject, workload=workload, axes=Axes(AXES), meters=(), protocol=PROTOCOL)


def test_a_cascade_of_a_plan_is_live_where_its_ends_are():
    subject = plugins.subject("cascade")
    assert subject.not_live(cascade("known:live", "known-voice")) is None
    with pytest.raises(SubjectError, match="log-mel cannot be measured live"):
        subject.not_live(cascade("log-mel", "known-voice"))
    with pytest.raises(SubjectError, match="does not turn text into speech"):
        subject.not_live(cascade("known:live", "known:live"))
    live = subject.prepare(cascade("known:live", "known-voice"), "cpu").live
    assert (live.speaks, live.texts) == (True, True)
