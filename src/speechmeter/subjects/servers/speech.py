"""OpenAI's `/v1/audio/speech`, a text for each conversation: `openai-speech:http://127.0.0.1:8000/v1`."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import Option
from speechmeter.core.errors import ConversationError, SubjectError
from speechmeter.core.live import CONNECTION, GARBAGE, WHOLE, Clock, Event, Live
from speechmeter.core.protocols import TEXT
from speechmeter.core.types import Case
from speechmeter.subjects.servers.http import OWN_CONNECTION, Posted, is_event_stream, limit, url_of
from speechmeter.subjects.servers.sound import SoundReader, check_readable
from speechmeter.subjects.servers.subject import KEY, MODEL, Request, ServerSubject
from speechmeter.subjects.servers.wire import error_text, mapping_in, text_in

if TYPE_CHECKING:
    import httpx

_PATH = "/audio/speech"
_FIELDS = ("model", "voice", "response_format", "stream_format", "speed")
"""Fields of the request that are options."""
_WAV_BEGINS = b"RIFF"
_MOST_BYTES = 1 << 30
"""Of an answer in events: two hours of sound."""


class SpeechSubject(ServerSubject):
    """The server gets each text when it is complete, and answers with a file at once or piece by piece."""

    summary = "a server with OpenAI's speech protocol: openai-speech:http://127.0.0.1:8000/v1"
    asked = (
        MODEL,
        Option(name="voice", kind=str, help="name of the voice"),
        Option(
            name="response_format", kind=str, default="wav", choices=("wav", "pcm"),
            help="format of the sound; others cannot be read piece by piece",
        ),
        Option(name="rate", kind=int, default=24_000, minimum=8_000,
               help="sampling rate of `response_format: pcm`, which does not state it"),
        Option(name="stream_format", kind=str, choices=("audio", "sse"),
               help="sse: sound as events; audio: as the body of the answer"),
        Option(name="speed", kind=float, above=0, help="speed of the speech relative to the voice's own pace; 2 is "
                                                       "twice as fast"),
        Option(name="fields", kind=dict, help="further fields of the request, such as stream: true"),
        KEY,
    )  # fmt: skip
    schemes = ("http", "https")
    example = "openai-speech:http://127.0.0.1:8000/v1"
    takes = (TEXT,)

    def check(self, case: Case) -> None:
        """As of any server; and `fields` must not change what an option or the text says."""
        super().check(case)
        taken = sorted({"input", *_FIELDS} & set(case.subject.options.get("fields") or {}))
        if "input" in taken:
            raise SubjectError("`fields` cannot set `input`, which is the text", key="fields", fix="remove it")
        if taken:
            raise SubjectError(
                f"`fields` sets `{taken[0]}`, which is an option", key="fields", fix=f"write `{taken[0]}` beside `load`"
            )

    def live(self, request: Request) -> Live:
        """Text in, sound out."""
        return Live(converse=lambda clock: Spoken(clock, request), texts=False, speaks=True, isolation="shared")

    def notes(self, request: Request) -> tuple[str, ...]:
        """That a connection is made for each request, inside the clock."""
        return (OWN_CONNECTION,)


class Spoken(Posted):
    """One request: the text is kept until `finish`. An answer whose length is stated came in one piece."""

    def __init__(self, clock: Clock, request: Request) -> None:
        super().__init__(clock, request)
        self._text = ""
        self._reader: SoundReader | None = None
        self._type = ""

    async def send(self, pcm: Any) -> None:
        """Keep a piece of text."""
        self._text += pcm

    async def _answer(self) -> AsyncIterator[Event]:
        assert self._client is not None
        sent = self._client.stream(
            "POST",
            url_of(self._request.url, _PATH),
            json=body(self._request.options, self._text),
            headers=self._secret.headers(),
        )
        async with sent as response:
            yield Event(kind="opened", moment_s=self._clock.now())
            await self._checked(response)
            if is_event_stream(response):
                async for event in self._streamed(response):
                    yield event
                return
            whole, self._type = "content-length" in response.headers, response.headers.get("content-type", "")
            async for data in response.aiter_bytes():
                for event in self._heard(data, whole=whole):
                    yield event

    async def _streamed(self, response: httpx.Response) -> AsyncIterator[Event]:
        """Sound in events. Raises ConversationError where the connection ends before the last of them."""
        from httpx_sse import EventSource

        limit(response, _MOST_BYTES)
        async for one in EventSource(response).aiter_sse():
            if one.data.strip() == "[DONE]":
                return
            found = mapping_in(one.data)
            if "error" in found or found.get("type") == "error":
                yield Event(kind="error", moment_s=self._clock.now(), text=error_text(found))
                return
            if found.get("type") == "speech.audio.done":
                return
            for event in self._heard(_decoded(text_in(found, "audio") or text_in(found, "delta"))):
                yield event
        raise ConversationError("the connection ended before the answer was complete", kind=CONNECTION)

    def _heard(self, data: bytes, *, whole: bool = False) -> Iterator[Event]:
        """The sound in bytes of the answer; a header is an event without sound."""
        if not data:
            return
        if self._reader is None:
            check_readable(data, self._type)
            # servers give a WAV file also where samples are asked for: it says its rate itself
            plain = self._request.options["response_format"] == "pcm" and not data.startswith(_WAV_BEGINS)
            self._reader = SoundReader(self._request.options["rate"] if plain else None)
        speech = self._reader.read(data)
        notes = {WHOLE: True} if whole else {}
        yield Event(
            kind="audio", moment_s=self._clock.now(), audio=0 if speech is None else None, sound=speech, notes=notes
        )


def body(options: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The request. What the plan does not say is not sent, but for the format, whose default servers differ in."""
    given = {name: options[name] for name in _FIELDS if options.get(name) is not None}
    return {"input": text, **given, **(options.get("fields") or {})}


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ConversationError("the sound of an event is not base64", kind=GARBAGE) from None
