"""A conversation with a server over a connection that stays open: audio goes up, messages come down.

A `Wire` carries messages; a `Dialect` says what they mean. So each protocol is a few pure functions, and what can go
wrong with a connection is handled once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from speechmeter.core.errors import ConversationError
from speechmeter.core.live import CONNECTION, GARBAGE, SYSTEM, Clock, Event
from speechmeter.subjects.servers.secrets import Secret

Message: TypeAlias = Any
"""What a wire carries: text, bytes, or a value of its own."""
_SHOWN = 200
"""Characters of a server's text that a message shows."""


class Wire(Protocol):
    """A connection to a server."""

    async def connect(self) -> None:
        """Connect. Raises ConversationError or OSError."""
        ...

    async def send(self, message: Message) -> None:
        """Send; waits while the server takes nothing. Raises ConversationError when the connection is lost."""
        ...

    async def receive(self) -> Message | None:
        """The next message; None when the server has closed the connection in order."""
        ...

    async def close(self) -> None:
        """Free the connection, in whatever state it is."""
        ...


class Dialect(Protocol):
    """What the messages of one conversation are and mean. It keeps the state of that conversation."""

    greeting: str
    """Type of the message that the server begins with and that is awaited; empty where it does not greet."""
    accepting: str
    """Type of the message that answers the hello and is awaited; empty where none is."""

    def hello(self) -> Sequence[Message]:
        """What is sent before the audio."""
        ...

    def audio(self, pcm: Any) -> Sequence[Message]:
        """The messages for samples, a float32 array at 16 kHz."""
        ...

    def finish(self) -> Sequence[Message]:
        """What says that there is no more audio."""
        ...

    def hear(self, message: Message, now_s: float) -> Iterable[Event]:
        """The events in a message; `closed` where the server will say nothing more. A ConversationError for garbage."""
        ...


class WireConversation:
    """One utterance over a wire (see `core.live.Conversation`)."""

    def __init__(self, clock: Clock, wire: Wire, dialect: Dialect, secret: Secret) -> None:
        self._clock, self._wire, self._dialect, self._secret = clock, wire, dialect, secret
        self._finished = False

    async def open(self) -> None:
        """Connect, and say hello."""
        await self._wire.connect()
        await self._await(self._dialect.greeting)
        for message in self._dialect.hello():
            await self._wire.send(message)
        await self._await(self._dialect.accepting)

    async def send(self, pcm: Any) -> None:
        """Send samples."""
        for message in self._dialect.audio(pcm):
            await self._wire.send(message)

    async def finish(self) -> None:
        """Say that there is no more audio."""
        self._finished = True
        for message in self._dialect.finish():
            await self._wire.send(message)

    async def events(self) -> AsyncIterator[Event]:
        """Events until the server says that it is done, or closes the connection after the end of the audio."""
        while (message := await self._wire.receive()) is not None:
            for event in self._dialect.hear(message, self._clock.now()):
                yield self._secret.masked(event)
                if event.kind == "closed":
                    return
        if not self._finished:
            raise too_early()
        yield Event(kind="closed", moment_s=self._clock.now())

    async def close(self) -> None:
        """Disconnect."""
        await self._wire.close()

    async def _await(self, kind: str) -> None:
        """Wait for a message of that type. What else comes before it means nothing yet."""
        while kind:
            message = await self._wire.receive()
            if message is None:
                raise ConversationError(f"the server closed the connection before {kind!r}", kind=CONNECTION)
            found = mapping_in(message).get("type")
            if found == "error":
                text = self._secret.hidden(error_text(mapping_in(message)))
                raise ConversationError(f"the server reported an error: {text}", kind=SYSTEM)
            if found == kind:
                return


def too_early() -> ConversationError:
    """The error for an orderly close while there is audio left."""
    return ConversationError("the server closed the connection before the end of the audio", kind=CONNECTION)


def mapping_in(message: Message) -> Mapping[str, Any]:
    """The JSON mapping that a message is. Raises ConversationError for anything else."""
    if isinstance(message, str | bytes):
        with suppress(ValueError):
            found = json.loads(message)
            if isinstance(found, dict):
                return found
    raise ConversationError(f"the server sent a message that is not a JSON object: {shown(message)}", kind=GARBAGE)


def shown(text: Any) -> str:
    """The beginning of what a server sent, for a message."""
    plain = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    plain = " ".join(plain.split())
    return repr(plain if len(plain) <= _SHOWN else plain[:_SHOWN] + "…")


def error_text(data: Mapping[str, Any]) -> str:
    """The text of an error that a server reports: `error` as text or a mapping with `message`, `message`, or all."""
    error = data.get("error", data)
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("description") or error.get("detail") or json.dumps(dict(error))
    return " ".join(str(error).split())[:_SHOWN]


def number(value: Any) -> float | None:
    """A number of a server's answer; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def text_in(data: Mapping[str, Any], key: str) -> str:
    """A text of a server's answer; empty where it is missing. Raises ConversationError for anything else."""
    value = data.get(key, "")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConversationError(
            f"the field {key!r} of the server's answer is not a string: {shown(value)}", kind=GARBAGE
        )
    return value


async def give_up(close: Any, after_s: float) -> None:
    """Close something without waiting for a server that does not answer."""
    with suppress(Exception):
        await asyncio.wait_for(close, after_s)
