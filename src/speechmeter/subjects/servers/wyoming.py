"""The Wyoming protocol over TCP, as home assistants use it: `wyoming:tcp://127.0.0.1:10300`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from speechmeter.core.errors import ConversationError
from speechmeter.core.live import CONNECTION, GARBAGE, Clock, Event, Live
from speechmeter.core.protocols import Installed
from speechmeter.subjects.common import RATE
from speechmeter.subjects.servers.secrets import Secret
from speechmeter.subjects.servers.sound import pcm16
from speechmeter.subjects.servers.subject import LANGUAGE, MODEL, Request, ServerSubject
from speechmeter.subjects.servers.web_socket import unreachable
from speechmeter.subjects.servers.wire import WireConversation, error_text, shown, text_in

_MOST_BYTES = 16 << 20
"""Of one message of a server."""
_FORMAT = {"rate": RATE, "width": 2, "channels": 1}


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A message: its type, its data, and bytes of audio."""

    type: str
    data: Mapping[str, Any] = field(default_factory=dict)
    payload: bytes = b""

    def to_bytes(self) -> bytes:
        """One line of JSON, the data, then the payload."""
        data = json.dumps(dict(self.data)).encode() if self.data else b""
        head = {"type": self.type, "data_length": len(data), "payload_length": len(self.payload)}
        return json.dumps(head).encode() + b"\n" + data + self.payload


class WyomingSubject(ServerSubject):
    """One text when the audio has ended; from some servers piece by piece."""

    summary = "a server with the Wyoming protocol: wyoming:tcp://127.0.0.1:10300"
    asked = (MODEL, LANGUAGE)
    schemes = ("tcp",)
    example = "wyoming:tcp://127.0.0.1:10300"

    def installed(self) -> Installed:
        """Needs nothing: the framing is our own."""
        return Installed(version="built in")

    def live(self, request: Request) -> Live:
        """It has no partial results before the end of the audio."""

        def converse(clock: Clock) -> WireConversation:
            return WireConversation(clock, WyomingWire(request.url), WyomingDialect(request), Secret())

        return Live(converse=converse, append_only=True, isolation="shared")


class WyomingWire:
    """Frames over TCP."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 0
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def connect(self) -> None:
        """Connect."""
        try:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        except OSError as error:
            raise unreachable(error) from None

    async def send(self, message: Frame) -> None:
        """Send a frame."""
        assert self._writer is not None
        try:
            self._writer.write(message.to_bytes())
            await self._writer.drain()
        except OSError:
            raise ConversationError("the connection was lost", kind=CONNECTION) from None

    async def receive(self) -> Frame:
        """The next frame. The connection has to last until the text has come."""
        assert self._reader is not None
        try:
            line = await self._reader.readline()
            if not line:
                raise ConversationError("the server closed the connection before its answer", kind=CONNECTION)
            head = _mapping(line)
            data = head.get("data") or {}
            if not isinstance(data, dict):
                raise _foreign(line)
            data = data | _mapping(await self._part(head, "data_length"))
            return Frame(type=str(head.get("type", "")), data=data, payload=await self._part(head, "payload_length"))
        except asyncio.IncompleteReadError:
            raise ConversationError("the connection ended inside a message", kind=CONNECTION) from None
        except ValueError:  # of a line that is longer than the reader takes
            raise ConversationError("the server sent a line that is too long", kind=GARBAGE) from None
        except OSError:
            raise ConversationError("the connection was lost", kind=CONNECTION) from None

    async def close(self) -> None:
        """Drop the connection."""
        if self._writer is not None:
            self._writer.transport.abort()

    async def _part(self, head: Mapping[str, Any], name: str) -> bytes:
        assert self._reader is not None
        length = head.get(name) or 0
        if not isinstance(length, int) or not 0 <= length <= _MOST_BYTES:
            raise ConversationError(f"the server sent a message with an impossible {name}: {length!r}", kind=GARBAGE)
        return await self._reader.readexactly(length)


class WyomingDialect:
    """One conversation."""

    greeting = accepting = ""

    def __init__(self, request: Request) -> None:
        self._asked = request.given("language")
        if (model := request.options.get("model")) is not None:
            self._asked["name"] = model
        self._text = ""
        self._streams = False

    def hello(self) -> Sequence[Frame]:
        """What is asked for, and the format of the audio."""
        return [Frame(type="transcribe", data=self._asked), Frame(type="audio-start", data=_FORMAT)]

    def audio(self, pcm: Any) -> Sequence[Frame]:
        """16-bit samples."""
        return [Frame(type="audio-chunk", data=_FORMAT, payload=pcm16(pcm))]

    def finish(self) -> Sequence[Frame]:
        """The end of the audio."""
        return [Frame(type="audio-stop")]

    def hear(self, message: Frame, now_s: float) -> Iterator[Event]:
        """A whole text, or its pieces between a start and a stop; the whole comes as well then."""
        if message.type == "transcript-start":
            self._streams = True
        elif message.type == "transcript-chunk":
            self._text += text_in(message.data, "text")
            yield Event(kind="partial", moment_s=now_s, text=self._text.strip())
        elif message.type == "transcript":
            self._text = text_in(message.data, "text")
            if not self._streams:
                yield from self._ended(now_s)
        elif message.type == "transcript-stop":
            yield from self._ended(now_s)
        elif message.type == "error":
            yield Event(kind="error", moment_s=now_s, text=error_text(message.data))

    def _ended(self, now_s: float) -> Iterator[Event]:
        yield Event(kind="final", moment_s=now_s, text=self._text.strip())
        yield Event(kind="closed", moment_s=now_s)


def _mapping(line: bytes) -> dict[str, Any]:
    if not line:
        return {}
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _foreign(line)
    return found


def _foreign(line: bytes) -> ConversationError:
    return ConversationError(f"the server does not speak Wyoming: {shown(line)}", kind=GARBAGE)
