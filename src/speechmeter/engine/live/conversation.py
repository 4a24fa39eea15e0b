"""One conversation from start to end, as an exchange. Whatever goes wrong in it is part of the exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, cast

from speechmeter.core.axes import FAST
from speechmeter.core.errors import ConversationError
from speechmeter.core.live import (
    CONNECTION,
    CUT_OFF,
    ENDED,
    ERROR,
    REFUSED,
    SYSTEM,
    TIMEOUT,
    Clock,
    Conversation,
    Event,
    Exchange,
    Interruptible,
    Live,
    Send,
)
from speechmeter.core.protocol import LiveProtocol
from speechmeter.engine.failures import classify
from speechmeter.engine.live.events import checked
from speechmeter.engine.live.sound import SoundTaken, sound_of
from speechmeter.engine.live.turns import Turn, turn_of
from speechmeter.engine.live.utterance import Chunk, Utterance, chunks_of

CLOSING_S = 5.0
"""How long closing a conversation may take."""
_SAMPLE_S = 1e-6
"""Positions that differ by less are equal."""
MOST_EVENTS = 100_000
"""In one conversation: a system that says more is broken. An hour at 20 events a second has 72,000."""


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How conversations are held, the same for all of a case."""

    live: Live
    protocol: LiveProtocol
    pace: str
    chunk_s: float


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Which conversation it is: its stream, its turn in it, and when it is due on the clock. `zero_s` is the start of
    the round there. One that `arrives` begins when it is due, whatever happened before.
    """

    stream: int = 0
    turn: int = 0
    due_s: float
    zero_s: float
    warm_up: bool = False
    arrives: bool = False


class _SystemError(Exception):
    """The system reported an error."""


@dataclass(kw_only=True)
class _Progress:
    """What has happened in a conversation so far."""

    start_s: float
    began_s: float
    """When the conversation was begun to be opened, on the clock."""
    sends: list[Send] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    finish_s: float | None = None
    finished_s: float | None = None
    latest_s: float = 0.0
    """When the latest event arrived."""
    fed_s: float = 0.0
    """When feeding ended."""
    error: str = ""
    error_kind: str = ""
    notes: dict[str, Any] = field(default_factory=dict)
    sound: SoundTaken = field(default_factory=SoundTaken)
    interrupt_s: float | None = None

    def passed_s(self, clock_s: float) -> float:
        """A moment of the clock, counted from the start of the conversation in whole nanoseconds."""
        return round(clock_s - self.start_s, 9)


async def hold(
    utterance: Utterance,
    manner: Manner,
    slot: Slot,
    clock: Clock,
    *,
    sent: Callable[[float], None] = lambda late_s: None,
    heard: Callable[[Event], None] = lambda event: None,
) -> Exchange:
    """One conversation about one utterance. It ends: every wait in it has a limit.

    The connection is opened before the utterance is due. `sent` is called with the lateness of every chunk, `heard`
    with every event. Raises InputError for an utterance that cannot be fed as the protocol asks.
    """
    is_file = manner.live.whole and manner.pace == FAST
    turn = turn_of(utterance, manner.protocol, silence=not is_file)
    progress = _Progress(start_s=slot.due_s, began_s=clock.now())
    conversation: Conversation | None = None
    try:
        conversation = manner.live.converse(clock)
        await _within(conversation.open(), manner.protocol.timeout_s, "opening the conversation took too long")
        # of a turn that is due when the one before it ends, opening delays the start; a request is late if it is
        if not (slot.arrives and manner.pace == FAST):
            progress.start_s = max(slot.due_s, clock.now())
        await clock.sleep_until(progress.start_s)
        await _Talk(conversation, utterance, turn, manner, clock, progress, sent, heard).run()
    except Exception as error:
        progress.error, progress.error_kind = _explained(error)
    finally:
        ended_s = clock.now()
        if conversation is not None:
            progress.notes |= await _close(conversation)
    return _exchange(utterance, turn, manner, slot, progress, ended_s)


def cut_off(utterance: Utterance, manner: Manner, slot: Slot) -> Exchange:
    """The exchange of a conversation that was due, but that the round broke off before, or in the middle of it."""
    progress = _Progress(
        start_s=slot.due_s, began_s=slot.due_s, error="the round broke off before this conversation was complete",
        error_kind=CUT_OFF,
    )  # fmt: skip
    made = _exchange(utterance, Turn(fed_s=utterance.audio_s), manner, slot, progress, slot.due_s)
    return replace(made, began_s=None)


async def _close(conversation: Conversation) -> dict[str, str]:
    """A note where closing fails: what was said before counts."""
    try:
        await _within(conversation.close(), CLOSING_S, "no answer in time")
    except Exception as error:
        return {"closing": f"closing the conversation failed: {_explained(error)[0]}"}
    return {}


class _Talk:
    """The part of a conversation that is clocked: feeding, listening, and waiting for the end."""

    def __init__(
        self,
        conversation: Conversation,
        utterance: Utterance,
        turn: Turn,
        manner: Manner,
        clock: Clock,
        progress: _Progress,
        sent: Callable[[float], None],
        heard: Callable[[Event], None],
    ) -> None:
        self._conversation, self._utterance, self._turn = conversation, utterance, turn
        self._manner, self._clock, self._progress = manner, clock, progress
        self._sent, self._heard = sent, heard
        self._final, self._sounds = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Feed, finish, and listen until the system is done. Raises what the system raised, or TimeoutError."""
        listening = asyncio.ensure_future(self._listen())
        interrupting = asyncio.ensure_future(self._interrupt())
        try:
            fed = asyncio.ensure_future(self._feed(listening))
            try:
                while not fed.done():
                    waiting = {fed} if listening.done() else {fed, listening}
                    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=self._most_s())
                    _raise_of(listening)  # a lost connection explains a failed send better than the send does
                    if not done:
                        raise TimeoutError(f"the system did not accept all of the {self._input} in time")
                _raise_of(fed)
            finally:
                await _stop(fed)
            self._progress.fed_s = self._progress.passed_s(self._clock.now())
            await self._await_end(listening)
            _raise_of(interrupting)
        finally:
            await _stop(interrupting)
            await _stop(listening)

    @property
    def _input(self) -> str:
        return "audio" if self._utterance.text is None else "text"

    def _most_s(self) -> float:
        """Seconds from now until the conversation is given up."""
        return max(0.0, self._progress.start_s + self._limit_s() - self._clock.now())

    def _limit_s(self) -> float:
        """The moment at which the conversation is given up: so long after the end of the audio."""
        ends_s = min(self._utterance.audio_s, self._turn.fed_s)
        return max(self._turn.fed_s, ends_s + self._manner.protocol.timeout_s)

    async def _feed(self, listening: asyncio.Future[None]) -> None:
        """Every chunk when it is due, then `finish`; nothing more once the system has ended the conversation.

        Raises ConversationError where it did so in the middle of speech: what was said later, it cannot have heard.
        """
        clock, progress = self._clock, self._progress
        due_s = 0.0
        for chunk in chunks_of(self._utterance, self._turn.fed_s, self._manner.chunk_s):
            due_s = await self._until_due(chunk)
            if listening.done():
                self._check_heard_all()
                return
            await self._send(chunk, due_s)
            if self._turn.detector is not None and self._turn.detector.ended(chunk.pcm):
                break
        if listening.done() or not self._manner.live.finishes:
            return
        progress.finish_s = progress.passed_s(clock.now()) if self._manner.pace == FAST else due_s
        progress.finished_s = progress.passed_s(clock.now())
        await self._conversation.finish()

    def _check_heard_all(self) -> None:
        heard_s = self._progress.sends[-1].to_s if self._progress.sends else 0.0
        end_s = self._utterance.anchors.speech_end_s
        speech_s = min(self._utterance.audio_s if end_s is None else end_s, self._turn.fed_s)
        if heard_s < speech_s - _SAMPLE_S:
            text = (
                f"the system ended the conversation after {heard_s:.6g} s of {self._input}, but "
                f"{'speech' if self._utterance.text is None else 'it'} ends at {speech_s:.6g} s"
            )
            raise ConversationError(text, kind=ENDED)

    async def _until_due(self, chunk: Chunk) -> float:
        """Wait for the moment at which a microphone has delivered the chunk; as fast as possible, that is now."""
        if self._manner.pace == FAST:
            await asyncio.sleep(0)
            return self._progress.passed_s(self._clock.now())
        await self._clock.sleep_until(self._progress.start_s + chunk.to_s)
        return round(chunk.to_s, 9)

    async def _send(self, chunk: Chunk, due_s: float) -> None:
        sent_s = self._progress.passed_s(self._clock.now())
        await self._conversation.send(chunk.pcm)
        done_s = self._progress.passed_s(self._clock.now())
        self._progress.sends.append(
            Send(due_s=due_s, sent_s=sent_s, done_s=done_s, from_s=round(chunk.from_s, 9), to_s=round(chunk.to_s, 9))
        )
        self._sent(sent_s - due_s)

    async def _listen(self) -> None:
        """Take every event until the system has no more. An error that it reports ends the conversation."""
        progress = self._progress
        async for given in self._conversation.events():
            if len(progress.events) == MOST_EVENTS:
                raise _SystemError(f"the system sent more than {MOST_EVENTS:,} events")
            event = checked(given, began_s=progress.began_s, now_s=self._clock.now())
            moved = replace(event, moment_s=progress.passed_s(event.moment_s))
            if event.kind == "audio":
                moved = progress.sound.take(moved)
                if progress.sound.samples:
                    self._sounds.set()
            progress.events.append(moved)
            progress.latest_s = max(progress.latest_s, moved.moment_s)
            self._heard(moved)
            if (event.kind == "final" and event.text.strip()) or event.sound is not None:
                self._final.set()
            if event.kind == "error":
                raise _SystemError(event.text or "the system reported an error")

    async def _interrupt(self) -> None:
        """Tell the system to stop so long after its first sound, where it can be told."""
        after_s = self._manner.protocol.interrupt_s
        if after_s is None or not self._manner.live.interrupts:
            return
        await self._sounds.wait()
        await self._clock.sleep_until(self._clock.now() + after_s)
        self._progress.interrupt_s = self._progress.passed_s(self._clock.now())
        await cast(Interruptible, self._conversation).interrupt()

    async def _await_end(self, listening: asyncio.Future[None]) -> None:
        """Until the system has said all; where it cannot say so, until it was quiet for long enough after an answer."""
        while not listening.done():
            left_s = self._most_s()
            if not self._manner.live.finishes and self._final.is_set():
                quiet_s = max(self._progress.latest_s, self._progress.fed_s) + self._manner.protocol.quiet_s
                left_s = min(left_s, self._progress.start_s + quiet_s - self._clock.now())
                if left_s <= 0:
                    return
            elif left_s <= 0:
                how = "did not finish" if self._progress.events else "did not answer at all"
                raise TimeoutError(
                    f"the system {how} within {self._manner.protocol.timeout_s:g} s after the end of the "
                    f"{self._input}; raise `answer_timeout`, or measure fewer streams"
                )
            await self._news(listening, left_s)
        _raise_of(listening)

    async def _news(self, listening: asyncio.Future[None], limit_s: float) -> None:
        """Wait for the end of listening, or for the first answer, from which on quiet is waited for."""
        if self._final.is_set():
            await asyncio.wait({listening}, timeout=limit_s)
            return
        final = asyncio.ensure_future(self._final.wait())
        try:
            both: set[asyncio.Future[Any]] = {listening, final}
            await asyncio.wait(both, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            final.cancel()


async def _within(work: Coroutine[Any, Any, None], limit_s: float, otherwise: str) -> None:
    """Do something that may hang, also when it is cancelled. Raises TimeoutError."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=limit_s)
        if not task.done():
            raise TimeoutError(otherwise)
        task.result()
    finally:
        await _stop(task)


def _raise_of(task: asyncio.Future[None]) -> None:
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        raise error


async def _stop(task: asyncio.Future[None]) -> None:
    """End a task; one that does not let itself be cancelled is left behind."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CLOSING_S)
    if task.done() and not task.cancelled():
        task.exception()  # else asyncio complains that nobody asked for it


def _explained(error: BaseException) -> tuple[str, str]:
    """(what went wrong, its kind)."""
    if isinstance(error, asyncio.TimeoutError | TimeoutError):
        return str(error) or "no answer in time", TIMEOUT
    if isinstance(error, _SystemError):
        return str(error), SYSTEM
    text = classify(error)[1]
    if isinstance(error, ConversationError):
        return text, error.kind
    if isinstance(error, ConnectionRefusedError):
        return text, REFUSED
    return text, CONNECTION if isinstance(error, ConnectionError | EOFError) else ERROR


def _exchange(
    utterance: Utterance, turn: Turn, manner: Manner, slot: Slot, progress: _Progress, ended_s: float
) -> Exchange:
    def moment(clock_s: float) -> float:
        """On the clock of the round. Nanoseconds are enough: what is finer is rounding."""
        return round(clock_s - slot.zero_s, 9)

    speech = progress.sound.speech()
    busy = [event.notes["busy_s"] for event in progress.events if event.kind == "closed" and "busy_s" in event.notes]
    return Exchange(
        utterance=utterance.name,
        reference=utterance.reference,
        speaker=utterance.speaker,
        anchors=utterance.anchors,
        audio_s=utterance.audio_s,
        silence_s=max(0.0, turn.fed_s - utterance.audio_s),
        stream=slot.stream,
        turn=slot.turn,
        due_s=moment(slot.due_s),
        started_s=moment(progress.start_s),
        began_s=moment(progress.began_s),
        sends=tuple(progress.sends),
        finish_s=progress.finish_s,
        finished_s=progress.finished_s,
        events=tuple(progress.events),
        ended_s=progress.passed_s(ended_s),
        timeout_s=manner.protocol.timeout_s,
        busy_s=float(busy[-1]) if busy else None,
        error=progress.error,
        error_kind=progress.error_kind,
        warm_up=slot.warm_up,
        notes=progress.notes,
        text=utterance.text,
        sound=None if speech is None else sound_of(speech),
        interrupt_s=progress.interrupt_s,
        speech=speech,
    )
