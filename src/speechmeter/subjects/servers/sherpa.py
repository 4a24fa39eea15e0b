"""The WebSocket servers of sherpa-onnx: `sherpa-onnx-server:ws://127.0.0.1:6006`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from speechmeter.core.axes import Option
from speechmeter.core.live import Clock, Event, Live
from speechmeter.subjects.common import RATE
from speechmeter.subjects.servers.sound import float32
from speechmeter.subjects.servers.subject import KEY, Request, ServerSubject
from speechmeter.subjects.servers.web_socket import WebSocketWire
from speechmeter.subjects.servers.wire import Dialect, Message, WireConversation, mapping_in, text_in

_DONE = "Done"
_MOST_BYTES = 1 << 20
"""Of one message: the server takes a recording in pieces of any size."""


class SherpaServerSubject(ServerSubject):
    """The offline server takes a whole recording, the online one a stream."""

    summary = "a WebSocket server of sherpa-onnx: sherpa-onnx-server:ws://127.0.0.1:6006"
    asked = (
        Option(name="mode", kind=str, default="offline", choices=("offline", "online"),
               help="offline: each recording is sent when it is complete; online: it is sent while it is spoken"),
        KEY,
    )  # fmt: skip
    example = "sherpa-onnx-server:ws://127.0.0.1:6006"

    def live(self, request: Request) -> Live:
        """Partial texts from the online server alone."""
        online = request.options["mode"] == "online"

        def converse(clock: Clock) -> WireConversation:
            wire = WebSocketWire(request.url, request.secret, request.secret.headers())
            dialect: Dialect = OnlineDialect() if online else OfflineDialect()
            return WireConversation(clock, wire, dialect, request.secret)

        return Live(converse=converse, endpoints=online, isolation="shared", whole=not online)


class OfflineDialect:
    """One recording: rate and length, then all samples; the text comes back."""

    greeting = accepting = ""

    def __init__(self) -> None:
        self._pcm: list[bytes] = []

    def hello(self) -> Sequence[Message]:
        """Nothing: the length comes first, and is not known yet."""
        return ()

    def audio(self, pcm: Any) -> Sequence[Message]:
        """Kept until the recording is complete."""
        self._pcm.append(float32(pcm))
        return ()

    def finish(self) -> Sequence[Message]:
        """The whole recording."""
        pcm = b"".join(self._pcm)
        data = struct.pack("<ii", RATE, len(pcm)) + pcm
        return [data[start : start + _MOST_BYTES] for start in range(0, len(data), _MOST_BYTES)]

    def hear(self, message: Message, now_s: float) -> Iterator[Event]:
        """The text."""
        yield Event(kind="final", moment_s=now_s, text=text_in(mapping_in(message), "text").strip())
        yield Event(kind="closed", moment_s=now_s)


class OnlineDialect:
    """A stream of samples; texts of numbered segments come back until the server says that it is done."""

    greeting = accepting = ""

    def __init__(self) -> None:
        self._shown: dict[int, str] = {}
        self._final: set[int] = set()
        self._finished = False

    def hello(self) -> Sequence[Message]:
        """Nothing."""
        return ()

    def audio(self, pcm: Any) -> Sequence[Message]:
        """32-bit samples."""
        return [float32(pcm)]

    def finish(self) -> Sequence[Message]:
        """The word that ends a stream."""
        self._finished = True
        return [_DONE]

    def hear(self, message: Message, now_s: float) -> Iterator[Event]:
        """A partial or final text of a segment. The last texts are final when the server is done."""
        if isinstance(message, str) and message.strip().rstrip("!") == _DONE:
            for segment, text in self._shown.items():
                if segment not in self._final:
                    yield Event(kind="final", moment_s=now_s, text=text, segment=segment)
            yield Event(kind="closed", moment_s=now_s)
            return
        data = mapping_in(message)
        text, segment = text_in(data, "text").strip(), int(data.get("segment") or 0)
        if data.get("is_final") is True:
            if not self._finished:
                yield Event(kind="endpoint", moment_s=now_s, segment=segment)
            self._final.add(segment)
            yield Event(kind="final", moment_s=now_s, text=text, segment=segment)
        elif text and text != self._shown.get(segment):
            yield Event(kind="partial", moment_s=now_s, text=text, segment=segment)
        self._shown[segment] = text
