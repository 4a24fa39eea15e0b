"""Small servers on 127.0.0.1 that speak a dialect, or fail in a known way; and one conversation with them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from live_rounds import held, utterance

from speechmeter.core.live import Exchange
from speechmeter.subjects.servers.secrets import Secret
from speechmeter.subjects.servers.subject import Request

SAID = utterance(audio_s=0.3, start_s=0.0, end_s=0.25)
"""0.3 s of noise: 4800 samples."""


@contextmanager
def _loop(start) -> Iterator[int]:
    """The port of a server that `start` makes on a loop in a thread, which ends with the context."""
    loop = asyncio.new_event_loop()
    port, ready = [], threading.Event()

    async def main():
        server = await start()
        port.append(server.sockets[0].getsockname()[1])
        ready.set()
        stopped = asyncio.Event()
        loop.stopping = stopped
        await stopped.wait()
        server.close()
        await asyncio.sleep(0.01)  # a WebSocket server closes its socket in a task
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        with suppress(Exception):
            await asyncio.wait_for(server.wait_closed(), 1)

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield port[0]
    finally:
        loop.call_soon_threadsafe(loop.stopping.set)
        thread.join(10)
        loop.close()


@contextmanager
def tcp(handler) -> Iterator[int]:
    """The port of a TCP server; `handler(reader, writer)` is one connection, closed behind it."""

    async def one(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await handler(reader, writer)
        writer.close()

    with _loop(lambda: asyncio.start_server(one, "127.0.0.1", 0)) as port:
        yield port


@contextmanager
def web_socket(handler, **options) -> Iterator[str]:
    """The address of a WebSocket server; `handler(connection)` is one conversation."""
    from websockets.asyncio.server import serve

    with _loop(lambda: serve(handler, "127.0.0.1", 0, **options)) as port:
        yield f"ws://127.0.0.1:{port}"


@contextmanager
def http(answer) -> Iterator[str]:
    """The address of an HTTP server; `answer(head, body, writer)` writes the whole answer."""

    async def one(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        await answer(head, body, writer)
        await writer.drain()

    with tcp(one) as port:
        yield f"http://127.0.0.1:{port}/v1"


def answered(body: bytes, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """A whole HTTP answer."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body


def talk(subject, url: str, *, said=SAID, key: str = "", pace: str = "fast", protocol=None, **options) -> Exchange:
    """One conversation with a server, as fast as possible."""
    given = {option.name: option.default for option in subject.options} | options
    live = subject.live(Request(url=url, secret=Secret(value=key), options=given))
    kept = {"silence_s": 0.0, "timeout_s": 10.0, **(protocol or {})}
    return held(live, [said], pace=pace, chunk_s=0.1, **kept).exchanges[0]


def texts(exchange: Exchange) -> list[tuple]:
    """(kind, text, segment) of its partials and finals."""
    return [(event.kind, event.text, event.segment) for event in exchange.of_kind("partial", "final")]
