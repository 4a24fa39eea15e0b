"""`websocket:ws://…`: a protocol that a plan describes, for servers whose dialect is not built in."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.core.axes import Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import Clock, Event, Live
from speechmeter.core.types import Case
from speechmeter.subjects.common import RATE
from speechmeter.subjects.servers.sound import ENCODINGS, Resampler
from speechmeter.subjects.servers.subject import KEY, Request, ServerSubject
from speechmeter.subjects.servers.web_socket import WebSocketWire
from speechmeter.subjects.servers.wire import Message, WireConversation, error_text, mapping_in, number

_AUDIO, _RATE = "{audio}", "{rate}"
_BINARY = "binary"
_TEMPLATE = "a text, or a mapping that is sent as JSON; {rate} is replaced by the sampling rate"
_PATH = "its path in a message, such as channel.alternatives.0.text"
_TEST = "a field with its value, such as type=done, or a field that is true, such as is_final"


class WebSocketSubject(ServerSubject):
    """Templates say what is sent; paths say where text and finality are in the answers."""

    summary = "a WebSocket server whose messages the plan describes: websocket:ws://127.0.0.1:9000"
    asked = (
        Option(name="hello", kind=(list, dict, str), help=f"what to send before the audio: {_TEMPLATE}; or a list of "
            "these"),
        Option(name="audio", kind=(dict, str), default=_BINARY,
               help="how to send audio: binary, or a mapping in which {audio} is replaced by the samples in base64"),
        Option(name="encoding", kind=str, default="s16le", choices=tuple(ENCODINGS), help="number format of the "
            "audio samples that are sent"),
        Option(name="rate", kind=int, default=RATE, minimum=8000, help="sampling rate of the audio that is sent"),
        Option(name="finish", kind=(list, dict, str), help=f"what to send after the audio: {_TEMPLATE}; or a list of "
            "these"),
        Option(name="text", kind=str, default="text", help=f"the text: {_PATH}"),
        Option(name="partial", kind=str, help=f"the text of a partial, if it is not in `text`: {_PATH}"),
        Option(name="final", kind=str, help=f"condition for a final text: {_TEST}; default: every `text` is final"),
        Option(name="endpoint", kind=str, help=f"condition for the end of a turn: {_TEST}"),
        Option(name="end", kind=str,
               help=f"condition for the last message: {_TEST}; default: the server closes the connection"),
        Option(name="error", kind=str, default="error", help=f"condition for an error: {_TEST}"),
        Option(name="start_s", kind=str, help=(
            "field with the start of the audio that a text covers, in seconds, such as channel.start"
        )),
        Option(name="end_s", kind=str, help=(
            "field with the end of the audio that a text covers, in seconds, such as channel.end"
        )),
        Option(name="headers", kind=dict, help="further headers of the request, with text values; for an API key, "
            "use `key`"),
        KEY,
    )  # fmt: skip
    example = "websocket:ws://127.0.0.1:9000"

    def check(self, case: Case) -> None:
        """A template for audio has a place for it."""
        super().check(case)
        audio = case.subject.options.get("audio", _BINARY)
        if audio != _BINARY and _AUDIO not in json.dumps(audio):
            raise SubjectError(
                "`audio` is neither `binary` nor a mapping with {audio}", fix='for example `audio: {data: "{audio}"}`'
            )
        for name, value in (case.subject.options.get("headers") or {}).items():
            if str(name).lower() == "authorization":
                raise SubjectError(f"the header {name!r} cannot be set here", fix="use the option `key` for an API key")
            if not isinstance(value, str):
                raise SubjectError(f"the header {name!r} takes a text, not {value!r}", fix="put quotes around it")

    def live(self, request: Request) -> Live:
        """Without a `finish`, the server decides when the turn ends."""
        headers = dict(request.options.get("headers") or {})

        def converse(clock: Clock) -> WireConversation:
            wire = WebSocketWire(request.url, request.secret, headers | request.secret.headers())
            return WireConversation(clock, wire, DeclaredDialect(request), request.secret)

        options = request.options
        return Live(
            converse=converse, finishes=options.get("finish") is not None,
            endpoints=options.get("endpoint") is not None, isolation="shared",
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition on an answer: `path`, or `path=value`."""

    path: str
    value: str | None

    @classmethod
    def of(cls, text: str | None) -> Condition | None:
        """The condition that a plan describes."""
        if not text:
            return None
        path, equals, value = text.partition("=")
        return cls(path=path, value=value if equals else None)

    def holds(self, data: Mapping[str, Any]) -> bool:
        """Whether it holds of an answer."""
        found = at(data, self.path)
        if self.value is None:
            return bool(found)
        return (str(found).lower() if isinstance(found, bool) else str(found)) == self.value


def at(data: Any, path: str) -> Any:
    """What is at a path of names and indexes; None where there is nothing."""
    for part in path.split("."):
        if isinstance(data, Mapping):
            data = data.get(part)
        elif isinstance(data, list) and part.lstrip("-").isdigit() and -len(data) <= int(part) < len(data):
            data = data[int(part)]
        else:
            return None
    return data


class DeclaredDialect:
    """One conversation."""

    greeting = accepting = ""

    def __init__(self, request: Request) -> None:
        options = self._options = request.options
        self._encode = ENCODINGS[options["encoding"]]
        self._resample = Resampler(options["rate"])
        self._final, self._endpoint, self._end, self._error = (
            Condition.of(options.get(name)) for name in ("final", "endpoint", "end", "error")
        )
        self._segment, self._shown = 0, ""

    def hello(self) -> Sequence[Message]:
        """The template's messages."""
        return self._made("hello")

    def audio(self, pcm: Any) -> Sequence[Message]:
        """Bytes, or the template around them."""
        return self._sound(self._resample(pcm))

    def finish(self) -> Sequence[Message]:
        """What the resampler holds back, and the template's messages."""
        return [*self._sound(self._resample.rest()), *self._made("finish")]

    def hear(self, message: Message, now_s: float) -> Iterator[Event]:
        """What the paths find."""
        data = mapping_in(message)
        if self._error is not None and self._error.holds(data):
            yield Event(kind="error", moment_s=now_s, text=error_text(data))
            return
        if self._endpoint is not None and self._endpoint.holds(data):
            yield Event(kind="endpoint", moment_s=now_s, segment=self._segment)
        yield from self._said(data, now_s)
        if self._end is not None and self._end.holds(data):
            yield Event(kind="closed", moment_s=now_s)

    def _said(self, data: Mapping[str, Any], now_s: float) -> Iterator[Event]:
        partial = at(data, self._options["partial"]) if self._options.get("partial") else None
        text = at(data, self._options["text"])
        if partial is None and not isinstance(text, str):
            return
        is_final = isinstance(text, str) and (self._final is None or self._final.holds(data))
        said = (text if is_final or partial is None else str(partial)).strip()
        span: dict[str, Any] = {"start_s": self._number(data, "start_s"), "end_s": self._number(data, "end_s")}
        if is_final:
            if said or self._shown:
                yield Event(kind="final", moment_s=now_s, text=said, segment=self._segment, **span)
                self._segment, self._shown = self._segment + 1, ""
        elif said and said != self._shown:
            self._shown = said
            yield Event(kind="partial", moment_s=now_s, text=said, segment=self._segment, **span)

    def _number(self, data: Mapping[str, Any], name: str) -> float | None:
        path = self._options.get(name)
        return number(at(data, path)) if path else None

    def _made(self, name: str) -> list[Message]:
        template = self._options.get(name)
        if template is None:
            return []
        templates = template if isinstance(template, list | tuple) else [template]
        return [self._filled(one, "") for one in templates]

    def _sound(self, samples: Any) -> list[Message]:
        if not len(samples):
            return []
        data, template = self._encode(samples), self._options["audio"]
        return [data] if template == _BINARY else [self._filled(template, b64encode(data).decode())]

    def _filled(self, template: Any, audio: str) -> str:
        if isinstance(template, str):
            return template.replace(_AUDIO, audio).replace(_RATE, str(self._options["rate"]))
        return json.dumps(_in(template, audio, self._options["rate"]))


def _in(template: Any, audio: str, rate: int) -> Any:
    """The template with its places filled. A text that is a place alone becomes the value itself."""
    if isinstance(template, Mapping):
        return {key: _in(value, audio, rate) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [_in(value, audio, rate) for value in template]
    if template == _RATE:
        return rate
    if isinstance(template, str):
        return template.replace(_AUDIO, audio).replace(_RATE, str(rate))
    return template
