"""Conversations with engines that block: in a thread, in a process, and generators of users."""

import asyncio
import os
import threading

import numpy as np
import pytest
from live_talk import Clock

from speechmeter.subjects.live.hearing import Heard, Hearing, hearing
from speechmeter.subjects.live.worker import Workers
from speechmeter.subjects.python import _hear as from_texts


class Counting:
    """Says how many samples it was fed, and the whole at the end."""

    def __init__(self, gate=None):
        self.fed, self.sizes, self.closed, self._gate = 0, [], False, gate

    def feed(self, samples):
        if self._gate is not None:
            self._gate.wait(10)
        self.fed += len(samples)
        self.sizes.append(len(samples))
        yield Heard(kind="partial", text=str(self.fed))

    def finish(self):
        yield Heard(kind="final", text=f"{self.fed} {os.getpid()}")

    def close(self):
        self.closed = True


class Failing(Counting):
    def feed(self, samples):
        raise ValueError("no such sound")


class Dying(Counting):
    def feed(self, samples):
        os._exit(7)


def counting():
    return Counting


def failing():
    return Failing


def dying():
    return Dying


def refusing():
    raise OSError("no model here")


def converse(hear, chunks, **options):
    async def talk():
        conversation = Hearing(Clock(), hear, **options)
        await conversation.open()
        try:
            for chunk in chunks:
                await conversation.send(np.zeros(chunk, np.float32))
            await conversation.finish()
            return [event async for event in conversation.events()]
        finally:
            await conversation.close()

    return asyncio.run(asyncio.wait_for(talk(), 60))


def test_events_come_in_order_and_closed_is_last():
    events = converse(hearing(Counting), [160, 320])
    assert [(event.kind, event.text.split(" ")[0]) for event in events] == [
        ("partial", "160"), ("partial", "480"), ("final", "480"), ("closed", "")
    ]  # fmt: skip
    moments = [event.moment_s for event in events]
    assert moments == sorted(moments)
    assert events[-1].notes["busy_s"] >= 0


def test_sending_never_waits_for_decoding_and_waiting_is_not_computing():
    gate = threading.Event()

    async def talk():
        conversation = Hearing(Clock(), hearing(lambda: Counting(gate)))
        await conversation.open()
        for _ in range(50):
            await conversation.send(np.zeros(160, np.float32))  # would never return if it waited: the gate is closed
        gate.set()
        await conversation.finish()
        events = [event async for event in conversation.events()]
        await conversation.close()
        return events

    events = asyncio.run(asyncio.wait_for(talk(), 60))
    assert [event.kind for event in events] == ["partial"] * 50 + ["final", "closed"]


def test_chunks_that_wait_are_joined_where_the_engine_wants_them():
    gate, engines = threading.Event(), []

    def make():
        engines.append(Counting(gate))
        return engines[-1]

    async def talk():
        conversation = Hearing(Clock(), hearing(make), joins=True)
        await conversation.open()
        for _ in range(5):
            await conversation.send(np.zeros(100, np.float32))
        await conversation.finish()
        gate.set()
        events = [event async for event in conversation.events()]
        await conversation.close()
        return events

    events = asyncio.run(asyncio.wait_for(talk(), 60))
    (engine,) = engines
    assert sum(engine.sizes) == 500
    assert len(engine.sizes) <= 2
    assert events[-2].kind == "final"
    assert engine.closed


def test_what_the_engine_raises_reaches_the_reader_of_events():
    with pytest.raises(ValueError, match="no such sound"):
        converse(hearing(Failing), [160])


def test_a_conversation_that_is_given_up_ends_its_thread():
    async def talk():
        conversation = Hearing(Clock(), hearing(Counting))
        await conversation.open()
        await conversation.send(np.zeros(160, np.float32))
        await conversation.close()
        return conversation._thread.is_alive()

    assert asyncio.run(asyncio.wait_for(talk(), 60)) is False


def test_a_worker_decodes_in_another_process_and_serves_the_next_conversation():
    workers = Workers(counting)
    try:
        first, second = (converse(workers.hear, [160, 320]) for _ in range(2))
    finally:
        workers.close()
    finals = [events[-2].text.split() for events in (first, second)]
    assert [text for text, _ in finals] == ["480", "480"]
    (process,) = {int(process) for _, process in finals}
    assert process != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize(
    ("make", "says"), [(failing, "ValueError: no such sound"), (dying, "ended unexpectedly")], ids=["raises", "dies"]
)
def test_a_worker_that_fails_is_an_error_of_its_conversation(make, says):
    workers = Workers(make)
    try:
        with pytest.raises(RuntimeError, match=says):
            converse(workers.hear, [160])
    finally:
        workers.close()


def test_a_worker_that_cannot_load_its_model_says_why():
    with pytest.raises(RuntimeError, match="OSError: no model here"):
        Workers(refusing)


def test_texts_of_a_generator_are_partials_and_the_last_one_is_final():
    heard = list(from_texts(iter(["a", ("a b", True), "c"])))
    assert [(one.kind, one.text, one.segment) for one in heard] == [
        ("partial", "a", 0), ("final", "a b", 0), ("partial", "c", 1), ("final", "c", 1)
    ]  # fmt: skip
    assert [(one.kind, one.text) for one in from_texts(iter([]))] == [("final", "")]


@pytest.mark.parametrize("said", [3, None, b"a", ("a",), ("a", True, 1), ("a", "b"), ("a", None), (b"a", True)])
def test_what_is_no_text_is_refused_by_name(said):
    with pytest.raises(TypeError, match=r"yields a text or \(text, True\), not "):
        list(from_texts(iter([said])))


def test_an_engine_that_exits_fails_its_conversation_alone():
    def leave(chunks):
        yield from ()
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match=r"sys.exit: SystemExit\(3\)"):
        converse(leave, [160])
