"""Conversations on the virtual clock: when chunks are due, when they end, and what errors become."""

import asyncio

import pytest
from live_rounds import held, known, utterance

from speechmeter.core.errors import ConversationError, InputError
from speechmeter.core.live import Anchors, Event, Live
from speechmeter.engine.live import conversation


class Talker:
    """A system made of what a test gives it."""

    def __init__(self, clock, events=(), send=None, finish=None, close=None, open=None, listens=False):
        self.clock, self._events = clock, events
        self._send, self._finish, self._close, self._open = send, finish, close, open
        self.closed, self._listens = False, listens

    async def open(self):
        if self._open:
            await self._open(self)

    async def send(self, pcm):
        if self._send:
            await self._send(self)

    async def finish(self):
        if self._finish:
            await self._finish(self)
        self._listens = False

    async def events(self):
        for moment, event in self._events:
            await self.clock.sleep_until(moment)
            if isinstance(event, Exception):
                raise event
            yield event
        if self._listens:
            await forever(self)

    async def close(self):
        self.closed = True
        if self._close:
            await self._close(self)


def talk(one=None, *, live=None, protocol=None, **parts):
    made = []

    def converse(clock):
        made.append(Talker(clock, **parts))
        return made[-1]

    system = Live(converse=converse, isolation="shared", virtual=True, **(live or {}))
    found = held(system, [one or utterance()], **(protocol or {})).exchanges[0]
    return found, made[0]


def event(kind, moment, text=""):
    return moment, Event(kind=kind, moment_s=moment, text=text)


async def forever(talker):
    await asyncio.get_running_loop().create_future()


def test_chunk_n_is_due_when_a_microphone_has_delivered_it():
    one = utterance(audio_s=1.05)
    found = held(known([one]), [one], chunk_s=0.1, silence_s=0.2).exchanges[0]
    assert [send.due_s for send in found.sends] == pytest.approx([0.1 * n for n in range(1, 13)] + [1.25], abs=1e-12)
    assert [send.due_s for send in found.sends] == [send.sent_s for send in found.sends]
    assert found.sends[-1].to_s == 1.25
    assert [send.from_s for send in found.sends[1:]] == [send.to_s for send in found.sends[:-1]]
    assert found.finish_s == found.finished_s == 1.25


def test_the_silence_follows_the_speech_sample_by_sample():
    heard = []
    one = utterance(audio_s=0.25)

    class Keeping(Talker):
        async def send(self, pcm):
            heard.append(pcm)

    live = Live(converse=lambda clock: Keeping(clock, events=[(9.0, None)]), virtual=True, isolation="shared")
    held(live, [one], chunk_s=0.1, silence_s=0.15)
    samples = [sample for pcm in heard for sample in pcm]
    assert len(samples) == 6400
    assert samples[:4000] == list(one.pcm)
    assert set(samples[4000:]) == {0.0}


def test_an_oracle_finishes_after_the_true_end_of_speech():
    one = utterance(end_s=2.53)
    found = held(known([one]), [one], turn_end="oracle", turn_delay_s=0.2).exchanges[0]
    assert found.finish_s == pytest.approx(2.73)
    assert found.sends[-1].to_s == pytest.approx(2.73)
    assert found.fed_s == 3.0


def test_an_oracle_without_an_anchor_is_bad_input():
    one = utterance()
    silent = type(one)(name="x", pcm=one.pcm, anchors=Anchors())
    with pytest.raises(InputError, match="needs the true end of speech"):
        held(known([silent]), [silent], turn_end="oracle")


def test_a_client_that_listens_for_silence_finishes_after_its_stop_time():
    one = utterance(audio_s=2.0)  # noise throughout, so that speech ends where the silence begins
    found = held(
        known([one]), [one], turn_end="client-vad", turn_vad="energy", turn_delay_s=0.5, silence_s=3.0
    ).exchanges[0]
    assert found.finish_s == pytest.approx(2.5)


def test_as_fast_as_possible_nothing_waits():
    one = utterance(audio_s=60.0)
    found = held(known([one]), [one], pace="fast").exchanges[0]
    assert {send.sent_s for send in found.sends} == {0.0}
    assert found.ended_s == 0.0


@pytest.mark.parametrize(
    "moment, heard",
    [(0.0, "after 0 s of"), (1.05, "after 1 s of"), (2.45, "after 2.4 s of"), (2.55, ""), (3.5, "")],
    ids=["at once", "in mid-speech", "just before the end of speech", "just after it", "in the silence"],
)
def test_a_system_that_ends_before_the_end_of_speech_failed(moment, heard):
    """Speech is from 0.5 to 2.5 s of 3 s; a second of silence follows."""
    found, talker = talk(events=[event("final", moment, "one")])
    assert found.error_kind == ("ended" if heard else "")
    assert heard in found.error
    assert found.finish_s is None, "it is not fed further"
    assert [one.text for one in found.of_kind("final")] == ["one"]
    assert talker.closed


def test_a_client_that_ends_the_turn_in_mid_speech_is_no_failure_of_the_system():
    found, _ = talk(utterance(end_s=2.5), events=[event("final", 3.3, "one")],
                    protocol={"turn_end": "client-vad", "turn_vad": "energy", "turn_delay_s": 0.2})  # fmt: skip
    assert not found.error


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"moment_s": -5.0}, "moment_s of an event is 5 s before the conversation was opened"),
        ({"moment_s": 1001.0}, "moment_s of an event is 1000 s in the future; use moment_s=clock.now()"),
        ({"moment_s": float("nan")}, "moment_s of an event is nan"),
        ({"moment_s": None}, "moment_s of an event is None"),
        ({"kind": "finished"}, "the unknown kind 'finished'; kinds are opened, partial, final, audio, text, endpoint"),
        ({"kind": "partial", "text": 42}, "the text of an event is int, not str"),
        ({"kind": "partial", "text": None}, "the text of an event is NoneType, not str"),
        ({"segment": "a"}, "the segment of an event is 'a'"),
        ({"end_s": float("inf")}, "start_s and end_s of an event are None and inf"),
    ],
)
def test_an_event_that_no_conversation_can_have_is_refused(wrong, says):
    fields = {"kind": "final", "moment_s": 1.0, "text": "one", **wrong}
    found, _ = talk(events=[(1.0, Event(**fields))])
    assert found.error_kind == "garbage"
    assert says in found.error
    assert found.events == ()


def test_an_event_may_come_while_the_conversation_is_opened():
    async def slowly(talker):
        await talker.clock.sleep_until(0.7)

    found, _ = talk(open=slowly, events=[(0.0, Event(kind="opened", moment_s=0.3)), event("final", 4.0, "one")])
    assert (found.error, found.events[0].moment_s) == ("", pytest.approx(-0.4))


def test_without_a_finish_quiet_is_also_waited_for_after_a_late_final():
    found, _ = talk(events=[event("final", 9.0, "one")], live={"finishes": False}, listens=True)
    assert (found.ended_s, found.error) == (9.0 + 3.0, "")


def test_an_error_of_a_known_kind_keeps_it():
    async def fail(talker):
        raise ConversationError("busy", kind="http-5xx")

    found, _ = talk(open=fail)
    assert (found.error, found.error_kind) == ("busy", "http-5xx")


def test_without_a_finish_the_answer_is_complete_after_a_quiet_period():
    found, _ = talk(events=[event("final", 2.6, "a"), (1000.0, Event(kind="closed", moment_s=1000.0))],
                    live={"finishes": False})  # fmt: skip
    assert found.finish_s is None
    assert found.ended_s == 4.0 + 3.0  # fed until 4 s, quiet for 3 s
    assert not found.error


def test_a_late_final_is_awaited_up_to_the_timeout():
    late = event("final", 32.5, "late")
    found, _ = talk(events=[late], live={"finishes": False})
    assert [one.text for one in found.of_kind("final")] == ["late"]
    missing, talker = talk(events=[event("final", 33.5, "too late")])
    assert missing.error_kind == "timeout"
    assert missing.ended_s == 33.0  # 30 s after the end of 3 s of audio
    assert missing.events == ()
    assert talker.closed


@pytest.mark.parametrize(
    "parts, kind",
    [
        ({"events": [(1.0, RuntimeError("broken"))]}, "error"),
        ({"events": [(1.0, ConnectionResetError("gone"))]}, "connection"),
        ({"events": [event("error", 1.0, "no licence")]}, "system"),
        ({"events": [(1.0, "a text")]}, "error"),
        ({"events": [(500.0, event("final", 500.0)[1])]}, "timeout"),
        ({"send": forever, "listens": True}, "timeout"),
        ({"finish": forever, "listens": True}, "timeout"),
        ({"open": forever}, "timeout"),
    ],
)
def test_whatever_goes_wrong_is_an_exchange_that_ends(parts, kind):
    found, talker = talk(**parts)
    assert found.error_kind == kind
    assert found.error
    assert found.ended_s <= 33.0
    assert talker.closed


def test_a_system_that_floods_is_given_up(monkeypatch):
    monkeypatch.setattr(conversation, "MOST_EVENTS", 3)
    enough, _ = talk(events=[*[event("partial", 0.0)] * 2, event("partial", 2.6)])
    assert (enough.error, len(enough.events)) == ("", 3)
    flooded, talker = talk(events=[event("partial", 0.0)] * 4)
    assert (flooded.error, flooded.error_kind) == ("the system sent more than 3 events", "system")
    assert talker.closed


def test_refused_connections_are_told_apart():
    async def refuse(talker):
        raise ConnectionRefusedError("nobody listens")

    found, _ = talk(open=refuse)
    assert found.error_kind == "refused"
    assert found.sends == ()


def test_closing_that_hangs_or_fails_does_not_undo_what_was_said():
    for close in (forever, lambda talker: broken()):
        found, _ = talk(events=[event("final", 2.6, "one")], close=close)
        assert not found.error
        assert "closing the conversation failed" in found.notes["closing"]


async def broken():
    raise RuntimeError("cannot close")


def test_a_constructor_that_fails_is_an_exchange_too():
    def converse(clock):
        raise RuntimeError("no stream left")

    found = held(Live(converse=converse, isolation="shared", virtual=True), [utterance()]).exchanges[0]
    assert "no stream left" in found.error


def test_a_send_that_waits_makes_the_next_ones_late():
    async def slow(talker):
        await talker.clock.sleep_until(talker.clock.now() + 0.25)

    found, _ = talk(send=slow, events=[event("final", 9.0, "x")])
    late = [send.sent_s - send.due_s for send in found.sends]
    assert late[:3] == pytest.approx([0.0, 0.15, 0.3])
    assert found.sends[0].done_s - found.sends[0].sent_s == pytest.approx(0.25)


def test_opening_is_not_part_of_the_conversation():
    async def slowly(talker):
        await talker.clock.sleep_until(talker.clock.now() + 0.7)

    found, _ = talk(open=slowly, events=[event("final", 9.0)])
    assert found.due_s == 0.0
    assert found.started_s == 0.7
    assert found.sends[0].sent_s == pytest.approx(0.1)
