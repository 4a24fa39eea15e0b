"""Deepgram's live dialect, which several servers speak: `deepgram:wss://api.deepgram.com/v1/listen`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from speechmeter.core.axes import Option
from speechmeter.core.live import Clock, Event, Live
from speechmeter.subjects.common import RATE
from speechmeter.subjects.servers.sound import pcm16
from speechmeter.subjects.servers.subject import KEY, LANGUAGE, MODEL, Request, ServerSubject
from speechmeter.subjects.servers.web_socket import WebSocketWire
from speechmeter.subjects.servers.wire import Message, WireConversation, error_text, mapping_in, number, text_in


class DeepgramSubject(ServerSubject):
    """Interim and final results with their span of audio, and the end of turns."""

    summary = "a server with Deepgram's live dialect: deepgram:ws://127.0.0.1:8108/v1/listen"
    asked = (
        MODEL,
        LANGUAGE,
        KEY,
        Option(name="interim", kind=bool, default=True, help="request interim results"),
        Option(name="query", kind=dict, help="further parameters of the address, such as endpointing: 300"),
    )
    example = "deepgram:ws://127.0.0.1:8108/v1/listen"

    def live(self, request: Request) -> Live:
        """It ends turns by itself."""
        url = address(request)

        def converse(clock: Clock) -> WireConversation:
            wire = WebSocketWire(url, request.secret, request.secret.headers("Token"))
            return WireConversation(clock, wire, DeepgramDialect(), request.secret)

        return Live(converse=converse, endpoints=True, isolation="shared")


def address(request: Request) -> str:
    """The address with the parameters of the request."""
    fixed = {"encoding": "linear16", "sample_rate": RATE, "channels": 1}
    asked = {"interim_results": request.options["interim"], **request.given("model", "language")}
    more = dict(request.options.get("query") or {})
    query = {name: _word(value) for name, value in {**fixed, **asked, **more}.items()}
    parts = urlsplit(request.url)
    joined = "&".join(part for part in (parts.query, urlencode(query)) if part)
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/v1/listen", joined, ""))


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class DeepgramDialect:
    """One conversation. A segment ends with a final result; `speech_final` or `UtteranceEnd` end a turn."""

    greeting = accepting = ""

    def __init__(self) -> None:
        self._segment, self._shown, self._finished, self._ended = 0, "", False, False

    def hello(self) -> Sequence[Message]:
        """Nothing: all is in the address."""
        return ()

    def audio(self, pcm: Any) -> Sequence[Message]:
        """16-bit samples."""
        return [pcm16(pcm)]

    def finish(self) -> Sequence[Message]:
        """The end of the stream: what is left is decoded, then the server closes the connection."""
        self._finished = True
        return [json.dumps({"type": "CloseStream"})]

    def hear(self, message: Message, now_s: float) -> Iterator[Event]:
        """What a message says; types that are not known say nothing."""
        data = mapping_in(message)
        kind = data.get("type")
        if kind == "Results":
            yield from self._results(data, now_s)
        elif kind == "UtteranceEnd" and not self._ended:
            self._ended = True
            yield Event(kind="endpoint", moment_s=now_s, end_s=number(data.get("last_word_end")))
        elif kind == "Error" or "err_code" in data:
            yield Event(kind="error", moment_s=now_s, text=error_text(data))

    def _results(self, data: Mapping[str, Any], now_s: float) -> Iterator[Event]:
        start_s, length_s = number(data.get("start")), number(data.get("duration"))
        end_s = None if start_s is None or length_s is None else start_s + length_s
        span: dict[str, Any] = {"segment": self._segment, "start_s": start_s, "end_s": end_s}
        text = _transcript(data)
        if text:
            self._ended = False
        if data.get("is_final"):
            if text or self._shown:
                yield Event(kind="final", moment_s=now_s, text=text, **span)
                self._segment, self._shown = self._segment + 1, ""
        elif text and text != self._shown:
            self._shown = text
            yield Event(kind="partial", moment_s=now_s, text=text, **span)
        if data.get("speech_final") and not self._finished and not self._ended:
            self._ended = True
            yield Event(kind="endpoint", moment_s=now_s, end_s=end_s)


def _transcript(data: Mapping[str, Any]) -> str:
    channel = data.get("channel")
    found = channel.get("alternatives") if isinstance(channel, Mapping) else None
    first = found[0] if isinstance(found, list) and found else None
    return text_in(first, "transcript").strip() if isinstance(first, Mapping) else ""
