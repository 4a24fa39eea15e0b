"""Synthesisers with the Wyoming protocol: `wyoming-voice:tcp://127.0.0.1:10200`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from speechmeter.core.axes import Option
from speechmeter.core.errors import ConversationError
from speechmeter.core.live import GARBAGE, Clock, Event, Live
from speechmeter.core.protocols import TEXT
from speechmeter.subjects.servers.secrets import Secret
from speechmeter.subjects.servers.sound import speech_of
from speechmeter.subjects.servers.subject import Request
from speechmeter.subjects.servers.wire import WireConversation, error_text
from speechmeter.subjects.servers.wyoming import Frame, WyomingSubject, WyomingWire

_NAME = "name"


class WyomingVoiceSubject(WyomingSubject):
    """Sound piece by piece; with `stream` the text goes up piece by piece too."""

    summary = "a synthesiser with the Wyoming protocol: wyoming-voice:tcp://127.0.0.1:10200"
    asked = (
        Option(name="voice", kind=str, help="name of the voice"),
        Option(name="stream", kind=bool, default=False,
               help="send the text as it comes (synthesize-start, -chunk, -stop), to servers that can"),
    )  # fmt: skip
    example = "wyoming-voice:tcp://127.0.0.1:10200"
    takes = (TEXT,)

    def live(self, request: Request) -> Live:
        """Text in, sound out."""

        def converse(clock: Clock) -> WireConversation:
            return WireConversation(clock, WyomingWire(request.url), VoiceDialect(request), Secret())

        return Live(converse=converse, texts=False, speaks=True, isolation="shared")


class VoiceDialect:
    """One conversation."""

    greeting = accepting = ""

    def __init__(self, request: Request) -> None:
        voice = request.options.get("voice")
        self._voice: dict[str, Any] = {} if voice is None else {"voice": {_NAME: voice}}
        self._streams = bool(request.options.get("stream"))
        self._text = ""
        self._begun = False

    def hello(self) -> Sequence[Frame]:
        """Nothing: the connection is opened before there is text."""
        return []

    def audio(self, pcm: Any) -> Sequence[Frame]:
        """A piece of text: kept, or sent at once."""
        self._text += pcm
        if not self._streams:
            return []
        start = [] if self._begun else [Frame(type="synthesize-start", data=self._voice)]
        self._begun = True
        return [*start, Frame(type="synthesize-chunk", data={"text": pcm})]

    def finish(self) -> Sequence[Frame]:
        """The text; or its end, after the whole of it for servers that do not know pieces."""
        whole = Frame(type="synthesize", data={"text": self._text, **self._voice})
        return [whole, Frame(type="synthesize-stop")] if self._streams else [whole]

    def hear(self, message: Frame, now_s: float) -> Iterator[Event]:
        """Pieces of sound, up to the stop."""
        data = message.data
        if message.type == "audio-chunk":
            yield Event(kind="audio", moment_s=now_s, audio=len(message.payload), sound=_sound(message))
        elif message.type == "audio-start":
            yield Event(kind="audio", moment_s=now_s, audio=0)
        elif message.type == "error":
            yield Event(kind="error", moment_s=now_s, text=error_text(data))
        elif message.type == ("synthesize-stopped" if self._streams else "audio-stop"):
            yield Event(kind="closed", moment_s=now_s)


def _sound(message: Frame) -> Any:
    rate, width, channels = (message.data.get(name) for name in ("rate", "width", "channels"))
    if not (isinstance(rate, int) and isinstance(width, int) and isinstance(channels, int) and channels > 0):
        raise ConversationError("the server sent sound without rate, width and channels", kind=GARBAGE)
    if len(message.payload) % (width * channels):
        raise ConversationError("the server sent a part of a sample", kind=GARBAGE)
    return speech_of(message.payload, rate, channels, width)
