"""OpenAI's `/v1/audio/transcriptions`, a file for each utterance: `openai-transcriptions:http://127.0.0.1:8000/v1`."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from speechmeter.core.axes import Option
from speechmeter.core.errors import ConversationError
from speechmeter.core.live import CONNECTION, GARBAGE, REFUSED, TIMEOUT, Clock, Event, Live
from speechmeter.subjects.servers.event_stream import EventStream
from speechmeter.subjects.servers.sound import pcm16, wav
from speechmeter.subjects.servers.subject import KEY, LANGUAGE, MODEL, PROMPT, Request, ServerSubject
from speechmeter.subjects.servers.web_socket import refused_by
from speechmeter.subjects.servers.wire import error_text, mapping_in, shown, text_in

if TYPE_CHECKING:
    import httpx

_PATH = "/audio/transcriptions"
_MOST_ERROR_BYTES = 4096
_MOST_BYTES = 16 << 20
_FORMATS = ("json", "verbose_json", "text")


class TranscriptionsSubject(ServerSubject):
    """The server gets each utterance when it is complete, and answers at once or piece by piece."""

    summary = "a server with OpenAI's transcriptions: openai-transcriptions:http://127.0.0.1:8000/v1"
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
        return ("each request opens its own connection, and this time is included",)


def url_of(address: str) -> str:
    """The address of the endpoint; one that names it already is used as it is."""
    path = urlsplit(address).path
    return address if path.rstrip("/").endswith(_PATH) else address.rstrip("/") + _PATH


class Upload:
    """One request (see `core.live.Conversation`): samples are kept until `finish`, then sent as a WAV file."""

    def __init__(self, clock: Clock, request: Request) -> None:
        self._clock, self._request, self._secret = clock, request, request.secret
        self._pcm: list[bytes] = []
        self._complete = asyncio.Event()
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Nothing is connected yet."""
        import httpx

        # proxies and .netrc of the environment would be part of what is measured
        self._client = httpx.AsyncClient(timeout=None, trust_env=False, verify=_trusted())

    async def send(self, pcm: Any) -> None:
        """Keep samples."""
        self._pcm.append(pcm16(pcm))

    async def finish(self) -> None:
        """The file is complete."""
        self._complete.set()

    async def events(self) -> AsyncIterator[Event]:
        """The answer, piece by piece where the server streams it."""
        import httpx

        await self._complete.wait()
        try:
            async for event in self._answer():
                yield self._secret.masked(event)
        except httpx.TimeoutException:
            raise ConversationError("no answer in time", kind=TIMEOUT) from None
        except httpx.ConnectError as error:
            raise ConversationError(f"cannot connect: {self._secret.hidden(str(error))}", kind=REFUSED) from None
        except (httpx.DecodingError, httpx.LocalProtocolError, httpx.TooManyRedirects) as error:
            text = f"the server's answer cannot be read: {self._secret.hidden(str(error))}"
            raise ConversationError(text, kind=GARBAGE) from None
        except httpx.RemoteProtocolError as error:
            raise _broken(str(error)) from None
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise ConversationError(
                f"the connection was lost: {self._secret.hidden(reason)}", kind=CONNECTION
            ) from None
        yield Event(kind="closed", moment_s=self._clock.now())

    async def close(self) -> None:
        """Drop the connection."""
        if self._client is not None:
            await self._client.aclose()

    async def _answer(self) -> AsyncIterator[Event]:
        assert self._client is not None
        sent = self._client.stream(
            "POST",
            url_of(self._request.url),
            data=form(self._request.options),
            files={"file": ("audio.wav", wav(b"".join(self._pcm)), "audio/wav")},
            headers=self._secret.headers(),
        )
        async with sent as response:
            if response.status_code != 200:
                raise refused_by(response.status_code, await _read(response, _MOST_ERROR_BYTES), self._secret)
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for event in self._streamed(response):
                    yield event
                return
            body = await _read(response, _MOST_BYTES)
            for event in whole(body, self._request.options["response_format"], self._clock.now()):
                yield event

    async def _streamed(self, response: httpx.Response) -> AsyncIterator[Event]:
        from httpx_sse import EventSource

        heard = EventStream()
        _limit(response)
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


async def _read(response: httpx.Response, most: int) -> bytes:
    """The body, at most so many bytes: a server may send without end."""
    body = b""
    async for part in response.aiter_bytes():
        body += part
        if len(body) > most:
            return body[:most]
    return body


def _limit(response: httpx.Response) -> None:
    """Make reading it an error after so many bytes: a line without end would be kept whole."""
    import httpx

    source = cast("httpx.AsyncByteStream", response.stream)

    class Limited(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = _MOST_BYTES
            async for part in source:
                left -= len(part)
                if left < 0:
                    reason = f"the server's answer is longer than {_MOST_BYTES >> 20} MiB"
                    raise ConversationError(reason, kind=GARBAGE)
                yield part

        async def aclose(self) -> None:
            await source.aclose()

    response.stream = Limited()


def _broken(text: str) -> ConversationError:
    """A connection that ended within an answer, or an answer that is not HTTP."""
    if "disconnected" in text or "closed connection" in text:
        return ConversationError("the server closed the connection before its answer was complete", kind=CONNECTION)
    return ConversationError(f"the server does not speak HTTP: {text}", kind=GARBAGE)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _trusted() -> ssl.SSLContext:
    """Made once: reading all certificates takes some 20 ms."""
    return ssl.create_default_context()
