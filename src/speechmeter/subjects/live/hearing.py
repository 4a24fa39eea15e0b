"""A conversation with an engine that blocks: sound goes into a queue, and a thread of its own decodes it.

So `send` never waits for decoding: a system that falls behind shows a backlog, not late sends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Literal, Protocol

from speechmeter.core.live import Clock, Event

_CLOSING_S = 10.0
"""How long `close` waits for an engine that is computing."""


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What an engine says: the text so far of a segment, its final text, or that the turn ended.

    `at_s` is the moment on `perf_counter` at which another process said it; None: now.
    """

    kind: Literal["partial", "final", "endpoint"]
    text: str = ""
    segment: int = 0
    start_s: float | None = None
    end_s: float | None = None
    at_s: float | None = None


Hear = Callable[[Iterator[Any]], Iterator[Heard]]
"""One conversation: takes the chunks as they come, float32 arrays at 16 kHz, and yields what it hears."""


class Engine(Protocol):
    """A recogniser that is fed one chunk after another. One for each conversation."""

    def feed(self, samples: Any) -> Iterable[Heard]:
        """What the chunk made it say."""
        ...

    def finish(self) -> Iterable[Heard]:
        """What it says when there is no more sound."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


def hearing(make: Callable[[], Engine]) -> Hear:
    """Conversations with a new engine each."""

    def hear(chunks: Iterator[Any]) -> Iterator[Heard]:
        engine = make()
        try:
            for samples in chunks:
                yield from engine.feed(samples)
            yield from engine.finish()
        finally:
            engine.close()

    return hear


class Hearing:
    """A conversation whose decoding runs in a thread.

    With `joins` all chunks that wait are handed over as one: an engine that decodes everything anew would otherwise
    decode sound again that a newer result replaces at once.
    """

    def __init__(self, clock: Clock, hear: Hear, *, joins: bool = False) -> None:
        self._clock, self._hear, self._joins = clock, hear, joins
        self._chunks: SimpleQueue[Any] = SimpleQueue()
        self._events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()
        self._thread = threading.Thread(target=self._decode, name="speechmeter-decoder", daemon=True)
        self._closed = False
        self._waited_s = 0.0

    async def open(self) -> None:
        """Start the thread."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def send(self, pcm: Any) -> None:
        """Queue a chunk; never waits."""
        self._chunks.put(pcm)

    async def finish(self) -> None:
        """There is no more sound."""
        self._chunks.put(None)

    async def events(self) -> AsyncIterator[Event]:
        """What the engine says, then `closed` with the seconds that it computed. Raises what the engine raised."""
        while (event := await self._events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event

    async def close(self) -> None:
        """End the thread. An engine that computes for longer than that is left behind, and ends with the process."""
        self._closed = True
        self._chunks.put(None)
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join, _CLOSING_S)

    def _decode(self) -> None:
        began_s = perf_counter()
        try:
            for heard in self._hear(self._waiting()):
                if self._closed:
                    break
                self._tell(self._event(heard))
            busy_s = perf_counter() - began_s - self._waited_s
            self._tell(Event(kind="closed", moment_s=self._clock.now(), notes={"busy_s": busy_s}))
            self._tell(None)
        except SystemExit as error:  # an event loop would end with it, and all conversations with the loop
            self._tell(RuntimeError(f"the model's code called sys.exit: {error!r}"))
        except BaseException as error:  # of the engine: the conversation reports it
            self._tell(error)

    def _waiting(self) -> Iterator[Any]:
        """Chunks as they come, until there are no more."""
        while True:
            start_s = perf_counter()
            samples = self._chunks.get()
            self._waited_s += perf_counter() - start_s
            parts = [samples]
            while self._joins and parts[-1] is not None and not self._chunks.empty():
                parts.append(self._chunks.get())
            ended = parts[-1] is None or self._closed
            if any(part is not None for part in parts) and not self._closed:
                yield _joined([part for part in parts if part is not None])
            if ended:
                return

    def _event(self, heard: Heard) -> Event:
        moment_s = self._clock.now()
        if heard.at_s is not None:
            moment_s -= perf_counter() - heard.at_s
        return Event(
            kind=heard.kind,
            moment_s=moment_s,
            text=heard.text,
            segment=heard.segment,
            start_s=heard.start_s,
            end_s=heard.end_s,
        )

    def _tell(self, event: Event | BaseException | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    import numpy as np

    return np.concatenate(parts)
