"""OpenAI's `/v1/audio/transcriptions`, a file for each utterance: `openai-transcriptions:http://127.0.0.1:8000/v1`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import Option
from speechmeter.core.errors import ConversationError
from speechmeter.core.live import GARBAGE, Clock, Event, Live
from speechmeter.subjects.servers.event_stream import EventStream
from speechmeter.subjects.servers.http import OWN_CONNECTION, Posted, body_of, is_event_stream, limit, url_of
from speechmeter.subjects.servers.sound import pcm16, wav
from speechmeter.subjects.servers.subject import KEY, LANGUAGE, MODEL, PROMPT, Request, ServerSubject
from speechmeter.subjects.servers.wire import error_text, mapping_in, shown, text_in

if TYPE_CHECKING:
    import httpx

_PATH = "/audio/transcriptions"
_MOST_BYTES = 16 << 20
_FORMATS = ("json", "verbose_json", "text")


class TranscriptionsSubject(ServerSubject):
    """The server gets each utterance when it is complete, and answers at once or piece by piece."""

    summary = "a server with OpenAI's transcription protocol: openai-transcriptions:http://127.0.0.1:8000/v1"
    asked = (
        Option(
            name="stream",
            kind=bool,
            default=False,
            help="request the text in parts, as soon as they are recognised (stream=true)",
        ),
        MODEL,
        LANGUAGE,
        PROMPT,
        Option(name="temperature", kind=float, minimum=0, help="temperature of sampling"),
        Option(name="response_format", kind=str, default="json", choices=_FORMATS, help="format of the answer"),
        Option(name="fields", kind=dict, help="further fields of the form, such as max_completion_tokens: 64"),
        KEY,
    )
    schemes = ("http", "https")
    example = "openai-transcriptions:http://127.0.0.1:8000/v1"

    def live(self, request: Request) -> Live:
        """Texts only grow; the end of a turn is the end of the file."""
        stream = bool(request.options["stream"])
        return Live(converse=lambda clock: Upload(clock, request), append_only=stream, isolation="shared", whole=True)

    def notes(self, request: Request) -> tuple[str, ...]:
        """That a connection is made for each request, inside the clock."""
        return (OWN_CONNECTION,)


class Upload(Posted):
    """One request: samples are kept until `finish`, then sent as a WAV file."""

    def __init__(self, clock: Clock, request: Request) -> None:
        super().__init__(clock, request)
        self._pcm: list[bytes] = []

    async def send(self, pcm: Any) -> None:
        """Keep samples."""
        self._pcm.append(pcm16(pcm))

    async def _answer(self) -> AsyncIterator[Event]:
        assert self._client is not None
        sent = self._client.stream(
            "POST",
            url_of(self._request.url, _PATH),
            data=form(self._request.options),
            files={"file": ("audio.wav", wav(b"".join(self._pcm)), "audio/wav")},
            headers=self._secret.headers(),
        )
        async with sent as response:
            yield Event(kind="opened", moment_s=self._clock.now())
            await self._checked(response)
            if is_event_stream(response):
                async for event in self._streamed(response):
                    yield event
                return
            body = await body_of(response, _MOST_BYTES)
            for event in whole(body, self._request.options["response_format"], self._clock.now()):
                yield event

    async def _streamed(self, response: httpx.Response) -> AsyncIterator[Event]:
        from httpx_sse import EventSource

        heard = EventStream()
        limit(response, _MOST_BYTES)
        async for one in EventSource(response).aiter_sse():
            for event in heard.hear(one.data, self._clock.now()):
                yield event
        for event in heard.end(self._clock.now()):
            yield event


def form(options: Mapping[str, Any]) -> dict[str, str]:
    """The fields of the request beside the file. What the plan does not say is not sent."""
    fields = {name: options.get(name) for name in ("model", "language", "prompt", "temperature")}
    fields["response_format"] = options["response_format"] if options["response_format"] != "json" else None
    fields["stream"] = True if options["stream"] else None
    fields |= options.get("fields") or {}
    return {name: _word(value) for name, value in fields.items() if value is not None}


def whole(body: bytes, format_: str, now_s: float) -> Iterator[Event]:
    """The text of an answer in one piece."""
    if format_ == "text":
        # some servers answer with a JSON text, others with the text alone
        yield Event(kind="final", moment_s=now_s, text=_plain(body))
        return
    data = mapping_in(body)
    if "text" not in data:
        if "error" in data:
            yield Event(kind="error", moment_s=now_s, text=error_text(data))
            return
        raise ConversationError(f"the server's answer has no text: {shown(body)}", kind=GARBAGE)
    yield Event(kind="final", moment_s=now_s, text=text_in(data, "text").strip())


def _plain(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise ConversationError(f"the server's answer is not text: {shown(body)}", kind=GARBAGE) from None
    if text.lstrip().startswith('"'):
        try:
            return str(json.loads(text)).strip()
        except ValueError:
            pass
    return text.strip()


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
