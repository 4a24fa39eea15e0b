"""One HTTP request as a conversation: all input first, then an answer that may come piece by piece."""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from speechmeter.core.errors import ConversationError
from speechmeter.core.live import CONNECTION, GARBAGE, REFUSED, TIMEOUT, Clock, Event
from speechmeter.subjects.servers.subject import Request
from speechmeter.subjects.servers.web_socket import refused_by

if TYPE_CHECKING:
    import httpx

_MOST_ERROR_BYTES = 4096
OWN_CONNECTION = "each request opens its own connection, and this time is included"


class Posted(ABC):
    """One request (see `core.live.Conversation`): what is sent is kept until `finish`."""

    def __init__(self, clock: Clock, request: Request) -> None:
        self._clock, self._request, self._secret = clock, request, request.secret
        self._complete = asyncio.Event()
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Nothing is connected yet."""
        import httpx

        # proxies and .netrc of the environment would be part of what is measured
        self._client = httpx.AsyncClient(timeout=None, trust_env=False, verify=_trusted())

    @abstractmethod
    async def send(self, pcm: Any) -> None:
        """Keep a piece of the input."""

    @abstractmethod
    def _answer(self) -> AsyncIterator[Event]:
        """Send the request; yield `opened` when its answer begins, and what it says."""

    async def finish(self) -> None:
        """The input is complete."""
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

    async def _checked(self, response: httpx.Response) -> None:
        """Raise ConversationError for a status that is not 200."""
        if response.status_code != 200:
            raise refused_by(response.status_code, await body_of(response, _MOST_ERROR_BYTES), self._secret)


def url_of(address: str, path: str) -> str:
    """The address of an endpoint; one that names it already is used as it is."""
    own = urlsplit(address).path
    return address if own.rstrip("/").endswith(path) else address.rstrip("/") + path


def is_event_stream(response: httpx.Response) -> bool:
    """Whether an answer is a stream of events."""
    return bool(response.headers.get("content-type", "").startswith("text/event-stream"))


async def body_of(response: httpx.Response, most: int) -> bytes:
    """The body, at most so many bytes: a server may send without end."""
    body = b""
    async for part in response.aiter_bytes():
        body += part
        if len(body) > most:
            return body[:most]
    return body


def limit(response: httpx.Response, most: int) -> None:
    """Make reading it an error after so many bytes: a line without end would be kept whole."""
    import httpx

    source = cast("httpx.AsyncByteStream", response.stream)

    class Limited(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = most
            async for part in source:
                left -= len(part)
                if left < 0:
                    reason = f"the server's answer is longer than {most >> 20} MiB"
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


@cache
def _trusted() -> ssl.SSLContext:
    """Made once: reading all certificates takes some 20 ms."""
    return ssl.create_default_context()
