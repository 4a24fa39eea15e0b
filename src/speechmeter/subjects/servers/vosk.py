"""The WebSocket protocol of vosk-server: `vosk-server:ws://127.0.0.1:2700`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from speechmeter.core.live import Clock, Event, Live
from speechmeter.subjects.common import RATE
from speechmeter.subjects.servers.sound import pcm16
from speechmeter.subjects.servers.subject import KEY, Request, ServerSubject
from speechmeter.subjects.servers.web_socket import WebSocketWire
from speechmeter.subjects.servers.wire import Message, WireConversation, mapping_in, number, text_in


class VoskServerSubject(ServerSubject):
    """Partial results while audio comes; a final after each pause, and one after the end."""

    summary = "a server with Vosk's WebSocket protocol: vosk-server:ws://127.0.0.1:2700"
    asked = (KEY,)
    example = "vosk-server:ws://127.0.0.1:2700"

    def live(self, request: Request) -> Live:
        """A final after each pause."""

        def converse(clock: Clock) -> WireConversation:
            wire = WebSocketWire(request.url, request.secret, request.secret.headers())
            return WireConversation(clock, wire, VoskDialect(), request.secret)

        return Live(converse=converse, endpoints=True, isolation="shared")


class VoskDialect:
    """One conversation. The server answers each message of audio with one of its own, and the end with the last."""

    greeting = accepting = ""

    def __init__(self) -> None:
        self._unanswered, self._finished, self._segment, self._shown = 0, False, 0, ""

    def hello(self) -> Sequence[Message]:
        """The sampling rate."""
        return [json.dumps({"config": {"sample_rate": RATE, "words": True}})]

    def audio(self, pcm: Any) -> Sequence[Message]:
        """16-bit samples."""
        self._unanswered += 1
        return [pcm16(pcm)]

    def finish(self) -> Sequence[Message]:
        """The end of the file."""
        self._finished = True
        self._unanswered += 1
        return [json.dumps({"eof": 1})]

    def hear(self, message: Message, now_s: float) -> Iterator[Event]:
        """A partial or a final text."""
        data = mapping_in(message)
        self._unanswered -= 1
        if "text" in data:
            yield from self._final(data, now_s)
        else:
            text = text_in(data, "partial")
            if text and text != self._shown:
                self._shown = text
                yield Event(kind="partial", moment_s=now_s, text=text, segment=self._segment)
        if self._finished and self._unanswered <= 0:
            yield Event(kind="closed", moment_s=now_s)

    def _final(self, data: Any, now_s: float) -> Iterator[Event]:
        words = [word for word in data.get("result") or () if isinstance(word, dict)]
        start_s = number(words[0].get("start")) if words else None
        end_s = number(words[-1].get("end")) if words else None
        text = text_in(data, "text")
        is_last = self._finished and self._unanswered <= 0
        if not is_last:
            yield Event(kind="endpoint", moment_s=now_s, segment=self._segment)
        if text or is_last:
            yield Event(kind="final", moment_s=now_s, text=text, segment=self._segment, start_s=start_s, end_s=end_s)
            self._segment, self._shown = self._segment + 1, ""
