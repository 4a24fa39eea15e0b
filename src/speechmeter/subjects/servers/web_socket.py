"""A WebSocket as a wire; whatever its library raises becomes an error of a known kind."""

from __future__ import annotations

import ssl
from typing import Any

from speechmeter.core.errors import ConversationError
from speechmeter.core.live import CONNECTION, GARBAGE, HTTP_4XX, HTTP_5XX, REFUSED
from speechmeter.subjects.servers.secrets import Secret
from speechmeter.subjects.servers.wire import give_up, shown, too_early

_MOST_BYTES = 16 << 20
"""Of one message of a server."""
_CLOSING_S = 1.0
_ORDERLY = (1000, 1001, 1005)
"""Close codes of a server that has nothing more to say."""


class WebSocketWire:
    """A connection by the package websockets.

    There is no compression and no keep-alive ping: a server that computes for 20 s without a pause is slow, not gone.
    """

    def __init__(self, url: str, secret: Secret, headers: dict[str, str] | None = None) -> None:
        self._url, self._secret, self._headers = url, secret, dict(headers or {})
        self._socket: Any = None

    async def connect(self) -> None:
        """Connect and shake hands."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException

        try:
            self._socket = await connect(
                self._url,
                additional_headers=self._headers,
                compression=None,
                proxy=None,
                open_timeout=None,
                ping_interval=None,
                close_timeout=_CLOSING_S,
                max_size=_MOST_BYTES,
            )
        except InvalidStatus as error:
            raise refused_by(error.response.status_code, bytes(error.response.body or b""), self._secret) from None
        except (InvalidHandshake, WebSocketException, EOFError) as error:
            text = f"the server does not speak WebSocket at this address: {self._secret.hidden(str(error))}"
            raise ConversationError(text, kind=GARBAGE) from None
        except OSError as error:
            raise unreachable(error) from None

    async def send(self, message: Any) -> None:
        """Send text or bytes."""
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(message)
        except ConnectionClosed as error:
            raise self._lost(error) from None

    async def receive(self) -> Any:
        """The next text or bytes; None after an orderly close."""
        from websockets.exceptions import ConnectionClosed

        try:
            return await self._socket.recv()
        except ConnectionClosed as error:
            if error.rcvd is not None and error.rcvd.code in _ORDERLY:
                return None
            raise self._lost(error) from None

    async def close(self) -> None:
        """Close it, or drop it where the server does not answer."""
        if self._socket is None:
            return
        await give_up(self._socket.close(), _CLOSING_S)
        if self._socket.transport is not None:
            self._socket.transport.abort()

    def _lost(self, error: Any) -> ConversationError:
        if error.rcvd is None:
            return ConversationError("the connection was lost", kind=CONNECTION)
        if error.rcvd.code in _ORDERLY:
            return too_early()
        reason = f": {self._secret.hidden(error.rcvd.reason)}" if error.rcvd.reason else ""
        return ConversationError(
            f"the server closed the connection with code {error.rcvd.code}{reason}", kind=CONNECTION
        )


def refused_by(status: int, body: bytes, secret: Secret) -> ConversationError:
    """The error for an HTTP status that is not the one expected."""
    said = f": {secret.hidden(shown(body))}" if body.strip() else ""
    kind = HTTP_4XX if 400 <= status < 500 else HTTP_5XX if status >= 500 else GARBAGE
    return ConversationError(f"the server answered with HTTP status {status}{said}", kind=kind)


def unreachable(error: OSError) -> ConversationError:
    """The error for a connection that was not made."""
    if isinstance(error, ssl.SSLError):
        return ConversationError(f"no secure connection: {error.reason or error}", kind=REFUSED)
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return ConversationError("the connection was lost", kind=CONNECTION)
    return ConversationError(f"cannot connect: {error.strerror or error}", kind=REFUSED)
