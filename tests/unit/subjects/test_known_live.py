"""The simulated recogniser does to the nanosecond what it was told, so that every live metric has a known answer."""

import asyncio

import pytest
from live_rounds import held, known, utterance

from speechmeter.subjects.known_conversation import KnownConversation, Script, Spoken

ONE = utterance()  # "one two three four", words end at 1.0, 1.5, 2.0 and 2.5 s; 3 s of audio and 1 s of silence


def events(kind, *, one=ONE, chunk_s=0.1, protocol=None, **script):
    (exchange,) = held(known([one], **script), [one], chunk_s=chunk_s, **(protocol or {})).exchanges
    return [(event.moment_s, event.text) for event in exchange.of_kind(kind)]


def test_words_come_with_the_chunk_that_holds_their_end():
    assert events("partial") == [(1.0, "one"), (1.5, "one two"), (2.0, "one two three"), (2.5, "one two three four")]
    assert [moment for moment, _ in events("partial", chunk_s=0.3)] == [1.2, 1.5, 2.1, 2.7]


def test_text_is_delayed_and_finals_by_their_own_delay():
    assert events("partial", delay_s=0.07)[0] == (1.07, "one")
    assert events("final", final_s=0.25) == [(4.25, "one two three four")]  # finish is due at 4 s
    assert events("final", final_s=0.25, extra_s=0.15) == [(4.4, "one two three four")]


def test_the_system_ends_the_turn_after_silence():
    script = {"endpoint_s": 0.5, "final_s": 0.2}
    assert events("endpoint", **script) == [(3.0, "")]
    assert events("final", **script) == [(3.2, "one two three four")]


def test_a_turn_that_ends_too_early_leaves_a_second_segment():
    assert events("endpoint", early_s=0.8) == [(1.7, "")]
    assert events("final", early_s=0.8) == [(1.7, "one two"), (4.0, "three four")]


def test_unstable_words_are_wrong_until_others_follow():
    assert events("partial", unstable_words=1) == [
        (1.0, "um"), (1.5, "one um"), (2.0, "one two um"), (2.5, "one two three um")
    ]  # fmt: skip


def test_partials_at_a_cadence_of_audio():
    moments = [moment for moment, _ in events("partial", cadence_s=0.7)]
    assert moments == [1.4, 2.1, 2.8]


def test_words_before_their_end_and_words_that_nobody_said():
    assert events("partial", guess_s=0.3)[0] == (0.7, "one")
    assert events("partial", hallucinate_s=0.2)[:2] == [(0.2, "um"), (1.0, "one")]


def test_segments_are_committed_by_words():
    assert events("final", segment_words=2) == [(2.0, "one two"), (4.0, "three four")]


@pytest.mark.parametrize("option", ["lose_final", "lose_all", "fail"])
def test_conversations_are_lost_in_the_share_that_was_asked_for(option):
    many = [utterance(f"u{n}") for n in range(100)]
    exchanges = held(known(many, **{option: 0.3}), many, pace="fast").exchanges
    lost = sum(not exchange.of_kind("final") for exchange in exchanges)
    assert 20 <= lost <= 40
    assert sum(bool(exchange.error) for exchange in exchanges) == (lost if option == "fail" else 0)
    again = held(known(many, **{option: 0.3}), many, pace="fast").exchanges
    assert [e.of_kind("final") for e in again] == [e.of_kind("final") for e in exchanges]


def test_words_are_lost_and_swapped():
    assert events("final", lose_word=2) == [(4.0, "one three")]
    assert events("final", swap_word=3) == [(4.0, "one two threex four")]


def test_a_leak_adds_its_share_of_every_second():
    (exchange,) = held(known([ONE], leak=0.1), [ONE]).exchanges
    assert [e.moment_s for e in exchange.of_kind("partial")] == pytest.approx([1.1, 1.65, 2.2, 2.75], abs=1e-9)
    assert exchange.of_kind("final")[0].moment_s == pytest.approx(4.4, abs=1e-9)


@pytest.mark.parametrize("streams, stable", [(2, True), (4, True), (5, False), (8, False)])
def test_paced_streams_keep_up_until_their_work_fills_the_slots(streams, stable):
    """N streams with d seconds of processing for each chunk of p seconds on c slots: stable while N·d ≤ c·p."""
    long = utterance("long", " ".join(["word"] * 100), audio_s=60.0, end_s=59.0)
    live = known([long], service_s=0.05, slots=2)  # 2 · 0.1 / 0.05 = 4 streams
    exchanges = held(live, [long], streams=streams, silence_s=0.0, timeout_s=100.0).exchanges
    delays = [e.of_kind("final")[0].moment_s - e.finish_s for e in exchanges]
    growth = max(0.0, streams * 0.05 / (2 * 0.1) - 1)
    if stable:
        assert max(delays) <= 0.1 + 1e-9
    else:
        assert delays == pytest.approx([60.0 * growth] * streams, abs=0.1 * (1 + growth))
    assert {round(e.busy_s, 9) for e in exchanges} == {30.0}


def test_random_delays_follow_the_seed_or_differ():
    fixed = {events("final", spread_s=1.0)[0][0] for _ in range(3)}
    loose = {events("final", spread_s=1.0, seed=None)[0][0] for _ in range(3)}
    assert len(fixed) == 1
    assert len(loose) == 3
    assert all(4.0 <= moment <= 5.0 for moment in fixed | loose)


class Backwards:
    """A clock that wakes whoever waits in the order opposite to that in which they began."""

    def __init__(self):
        self.time_s, self._waiting = 0.0, []

    def now(self):
        return self.time_s

    async def sleep_until(self, moment_s):
        reached = asyncio.get_running_loop().create_future()
        self._waiting.append(reached)
        await reached

    def wake(self, moment_s):
        self.time_s = moment_s
        for reached in reversed(self._waiting):
            reached.set_result(None)


def test_events_of_one_moment_keep_their_order_whoever_wakes_first():
    async def talk():
        clock = Backwards()
        said = Spoken(name=ONE.name, pcm=ONE.pcm, words=ONE.anchors.words, speech_end_s=2.5)
        conversation = KnownConversation(Script(final_s=1.0, partials=False), [said], asyncio.Semaphore(1), clock)
        await conversation.open()
        await conversation.send(ONE.pcm)
        await conversation.finish()
        for _ in range(5):
            await asyncio.sleep(0)
        clock.wake(1.0)
        return [event.kind async for event in conversation.events()]

    assert asyncio.run(talk()) == ["opened", "final", "closed"]


def test_sound_that_it_does_not_know_has_no_words():
    other = utterance("other")
    (exchange,) = held(known([ONE]), [other]).exchanges
    assert [event.text for event in exchange.of_kind("final")] == [""]
