"""How many paced streams one client process holds on this host: lateness of sends against the number of streams.

A sink in a process of its own takes everything and answers every fifth message, as a recogniser would. Streams feed it
over WebSockets by the same code that feeds every live case. They begin within one chunk, out of phase, so that all are
fed at the same time; `together` is for how long. Each line is one level.

    python benchmarks/client.py                         20 ms chunks: 1, 10, 50, 100, 200 streams, 6 s each
    python benchmarks/client.py --chunk-ms 100 --streams 50,200,500
    python benchmarks/client.py --clients 2             the same load from two client processes

The last line names the highest level at which the client was not late (p99 within 10 % of a chunk, and none by a chunk
or more) and all streams were fed together for at least 90 % of the time. Sink and client share this host, so on two
cores it is a lower bound of what a client machine holds.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from time import perf_counter
from typing import Any

import numpy as np

from speechmeter.core.live import Clock, Exchange, Live
from speechmeter.core.protocol import RECORDED, LiveProtocol
from speechmeter.engine.live.client import ClientWatch, percentile
from speechmeter.engine.live.clock import run
from speechmeter.engine.live.conversation import Manner
from speechmeter.engine.live.round import Part, Round, Script
from speechmeter.engine.live.utterance import RATE, Utterance
from speechmeter.subjects.servers.secrets import Secret
from speechmeter.subjects.servers.subject import Request
from speechmeter.subjects.servers.vosk import VoskServerSubject

PROTOCOL = LiveProtocol(
    turn_end="system", turn_delay_s=0.0, turn_vad="", silence_s=0.0, quiet_s=0.0, timeout_s=30.0, phase="random",
    turns=None, duration_s=None, warmup_turns=0, arrivals=RECORDED,
)  # fmt: skip
_TOGETHER = 0.9
"""Of the length of a stream: for less than that the load was not that of its level."""
_AHEAD_S = 3.0
_EVERY = 5


@dataclass(frozen=True, kw_only=True)
class Level:
    """What the clients of a level noticed, together."""

    streams: int
    seconds: float
    late_s: Sequence[float]
    busy: float
    failed: int
    warned: bool
    together_s: float

    @property
    def word(self) -> str:
        """Whether the clients held it: `ok`, or what was wrong."""
        if self.failed:
            return f"{self.failed} failed"
        if self.together_s < _TOGETHER * self.seconds:
            return "not together"
        return "late" if self.warned else "ok"

    @property
    def line(self) -> str:
        """One line of the table."""
        p50, p99, most = (1e3 * value for value in (percentile(self.late_s, 50), percentile(self.late_s, 99),
                                                    max(self.late_s)))  # fmt: skip
        return (
            f"{self.streams:7d} {p50:9.2f} {p99:9.2f} {most:9.2f} ms {100 * self.busy:6.0f} % "
            f"{self.together_s:8.2f} s   {self.word}"
        )


def sink(port: Any) -> None:
    """Take everything; answer every fifth message, and the end."""
    from websockets.asyncio.server import serve

    async def one(connection: Any) -> None:
        count = 0
        async for message in connection:
            count += 1
            if isinstance(message, str) and "eof" in message:
                await connection.send('{"text": "one"}')
                return
            if count % _EVERY == 0:
                await connection.send('{"partial": "one"}')

    async def main() -> None:
        async with serve(one, "127.0.0.1", 0, compression=None) as server:
            port.put(server.sockets[0].getsockname()[1])
            await asyncio.Future()

    asyncio.run(main())


@dataclass(frozen=True, kw_only=True)
class Fed:
    """What one client noticed, with the last send of each of its conversations, on the clock of all processes."""

    late_s: Sequence[float]
    busy: float
    warned: bool
    exchanges: Sequence[Exchange]


def feed(given: tuple[str, int, float, float], part: Part) -> Fed:
    """The share of one client in a level, fed to the sink."""
    url, streams, seconds, chunk_s = given
    live = VoskServerSubject().live(Request(url=url, secret=Secret(), options={}))
    watch, exchanges = fed(live, streams, seconds, chunk_s, part)
    return Fed(
        late_s=watch.late_s, busy=watch.busy, warned=bool(watch.warnings("realtime", chunk_s)),
        exchanges=[replace(one, events=(), sends=one.sends[-1:]) for one in exchanges],
    )  # fmt: skip


def fed(live: Live, streams: int, seconds: float, chunk_s: float, part: Part) -> tuple[ClientWatch, list[Exchange]]:
    """The share of one client in a level: all its streams begin at a moment of their own within one chunk."""
    draw = Random(f"client/{streams}")
    offsets_s = tuple(sorted(draw.uniform(0.0, chunk_s) for _ in range(streams)))
    protocol = replace(PROTOCOL, offsets_s=offsets_s)
    silence = Utterance(name="silence", pcm=np.zeros(round(seconds * RATE), dtype=np.float32))
    script, _ = Script.of_all([silence], warmup_turns=0, streams=1, seed="0")
    exchanges: list[Exchange] = []

    async def work(clock: Clock) -> ClientWatch:
        manner = Manner(live=live, protocol=protocol, pace="realtime", chunk_s=chunk_s)
        share = script.arriving(protocol, None).share(part)
        here = Round(script=share, manner=manner, clock=clock, take=exchanges.append)
        await here.hold(part.begin())
        return here.watch

    return run(work, virtual=live.virtual), exchanges


def together_s(exchanges: Sequence[Exchange]) -> float:
    """For how long all of them were fed at the same time; 0 where one of them was not fed."""
    if not all(one.sends for one in exchanges):
        return 0.0
    ends = (one.started_s + one.sends[-1].sent_s for one in exchanges)
    return max(0.0, min(ends) - max(one.started_s for one in exchanges))


def level(given: tuple[str, int, float, float], clients: int) -> Level:
    """One level, fed by so many processes."""
    begin_s = perf_counter() + _AHEAD_S * clients
    with multiprocessing.get_context("spawn").Pool(clients) as pool:
        parts = [Part(index=index, of=clients, begin=partial(float, begin_s)) for index in range(clients)]
        found = pool.starmap(feed, [(given, part) for part in parts])
    exchanges = [exchange for one in found for exchange in one.exchanges]
    return Level(
        streams=given[1], seconds=given[2], late_s=[late for one in found for late in one.late_s],
        busy=max(one.busy for one in found), failed=sum(bool(one.error) for one in exchanges),
        warned=any(one.warned for one in found), together_s=together_s(exchanges),
    )  # fmt: skip


def main() -> int:
    """Print a line for each level, and the highest that was held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunk-ms", type=float, default=20.0)
    parser.add_argument("--streams", default="1,10,50,100,200")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--clients", type=int, default=1, help="client processes")
    asked = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    answering = context.Process(target=sink, args=(port,), daemon=True)
    answering.start()
    held = 0
    try:
        url = f"ws://127.0.0.1:{port.get(timeout=30)}"
        print(f"{asked.chunk_ms:g} ms chunks, {asked.clients} client(s), {len(os.sched_getaffinity(0))} cores")
        print("streams  late p50  late p99    latest      client   together", flush=True)
        for streams in map(int, asked.streams.split(",")):
            found = level((url, streams, asked.seconds, asked.chunk_ms / 1e3), asked.clients)
            print(found.line, flush=True)
            held = streams if found.word == "ok" else held
    finally:
        answering.terminate()
        answering.join()
    print(f"held: {held} streams")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
