"""Speech to speech as a chain: a recogniser hears the user, its text goes through models of text, a synthesiser speaks.

The user's turn is over when the recogniser gives a final text after it has ended the turn, or has said all. Then all
finals so far go on as one text, once: what is heard later has no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, cast

from speechmeter.core.live import CUT, Clock, Conversation, Event, Interruptible, Live

Think = Callable[[str], str]
"""The answer of a model of text."""


def relayed(hear: Live, think: Sequence[Think], speak: Live) -> Live:
    """The chain as one system that is spoken to and speaks."""

    def converse(clock: Clock) -> Conversation:
        return Relay(clock, hear.converse(clock), think, speak.converse(clock))

    return Live(
        converse=converse,
        fixed_cadence=hear.fixed_cadence,
        append_only=hear.append_only,
        finishes=hear.finishes,
        endpoints=hear.endpoints,
        texts=hear.texts,
        speaks=True,
        interrupts=speak.interrupts,
        whole=hear.whole,
        isolation="shared",
        virtual=hear.virtual and speak.virtual,
        processes=_together(hear, speak),
    )


class Relay:
    """One conversation (see `core.live.Conversation`)."""

    def __init__(self, clock: Clock, hear: Conversation, think: Sequence[Think], speak: Conversation) -> None:
        self._clock, self._hear, self._think, self._speak = clock, hear, think, speak
        self._events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()
        self._finals: dict[int, str] = {}
        self._ended = self._answered = False
        self._notes: Mapping[str, Any] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Open both ends."""
        await self._hear.open()
        await self._speak.open()

    async def send(self, pcm: Any) -> None:
        """Samples for the recogniser."""
        await self._hear.send(pcm)

    async def finish(self) -> None:
        """The user says no more."""
        await self._hear.finish()

    async def interrupt(self) -> None:
        """Let the synthesiser stop."""
        await cast(Interruptible, self._speak).interrupt()

    async def events(self) -> AsyncIterator[Event]:
        """What was heard, the text of the answer, and its sound. Raises what either end raised."""
        self._tasks.append(asyncio.ensure_future(self._guarded(self._listen)))
        while (event := await self._events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
        cut = {CUT: True} if self._notes.get(CUT) else {}
        yield Event(kind="closed", moment_s=self._clock.now(), notes=cut)

    async def close(self) -> None:
        """Close both ends, the second one also where the first fails."""
        for task in self._tasks:
            task.cancel()
        try:
            await self._hear.close()
        finally:
            await self._speak.close()

    async def _listen(self) -> None:
        """Pass on what is heard, and answer at the end of the turn."""
        async for event in self._hear.events():
            if event.kind != "closed":
                self._events.put_nowait(event)
            self._ended |= event.kind == "endpoint"
            if event.kind == "final":
                self._finals[event.segment] = event.text
                if self._ended:
                    await self._answer()
        await self._answer()
        if len(self._tasks) == 1:  # nothing was said, so there is no answer
            self._events.put_nowait(None)

    async def _answer(self) -> None:
        text = " ".join(part for _, part in sorted(self._finals.items()) if part.strip())
        if self._answered or not text:
            return
        self._answered = True
        for think in self._think:
            text = await asyncio.to_thread(think, text)
        self._events.put_nowait(Event(kind="text", moment_s=self._clock.now(), text=text))
        self._tasks.append(asyncio.ensure_future(self._guarded(self._say)))
        await self._speak.send(text)
        await self._speak.finish()

    async def _say(self) -> None:
        async for event in self._speak.events():
            if event.kind != "closed":
                self._events.put_nowait(event)
            else:
                self._notes = event.notes
        self._events.put_nowait(None)

    async def _guarded(self, work: Callable[[], Any]) -> None:
        try:
            await work()
        except Exception as error:
            self._events.put_nowait(error)


def _together(hear: Live, speak: Live) -> Callable[[], Sequence[int]] | None:
    """The processes of both ends; None where neither has any."""
    each = [one.processes for one in (hear, speak) if one.processes is not None]
    return (lambda: [process for processes in each for process in processes()]) if each else None
