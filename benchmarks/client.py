"""How many paced streams one client process holds on this host: lateness of sends against the number of streams.

A sink in a process of its own takes everything and answers every fifth message, as a recogniser would. Streams feed it
over WebSockets by the same code that feeds every live case, out of phase. Each line is one level.

    python benchmarks/client.py                         20 ms chunks: 1, 10, 50, 100, 200 streams, 6 s each
    python benchmarks/client.py --chunk-ms 100 --streams 50,200,500
    python benchmarks/client.py --clients 2             the same load from two client processes

The last line names the highest level at which the client was not late (p99 within 10 % of a chunk, and none by a chunk
or more). Sink and client share this host, so on two cores it is a lower bound of what a client machine holds.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from speechmeter.core.live import Clock, Exchange
from speechmeter.core.protocol import LiveProtocol
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
    turns=1, duration_s=None, warmup_turns=0,
)  # fmt: skip
_AHEAD_S = 3.0
_EVERY = 5


@dataclass(frozen=True, kw_only=True)
class Level:
    """What the clients of a level noticed, together."""

    streams: int
    late_s: Sequence[float]
    busy: float
    failed: int
    warned: bool

    @property
    def line(self) -> str:
        """One line of the table."""
        p50, p99, most = (1e3 * value for value in (percentile(self.late_s, 50), percentile(self.late_s, 99),
                                                    max(self.late_s)))  # fmt: skip
        word = "failed" if self.failed else "late" if self.warned else "ok"
        return f"{self.streams:7d} {p50:9.2f} {p99:9.2f} {most:9.2f} ms {100 * self.busy:6.0f} %   {word}"


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


def feed(given: tuple[str, int, float, float], part: Part) -> tuple[list[float], float, int, bool]:
    """Lateness of every send, the share of a core that was used, conversations that failed, and whether it warns."""
    url, streams, seconds, chunk_s = given
    silence = Utterance(name="silence", pcm=np.zeros(round(seconds * RATE), dtype=np.float32))
    script, _ = Script.of_all([silence], warmup_turns=0, streams=streams, seed="0")
    live = VoskServerSubject().live(Request(url=url, secret=Secret(), options={}))
    exchanges: list[Exchange] = []

    async def work(clock: Clock) -> ClientWatch:
        manner = Manner(live=live, protocol=PROTOCOL, pace="realtime", chunk_s=chunk_s)
        here = Round(script=script.share(part), manner=manner, clock=clock, take=exchanges.append)
        await here.hold(part.begin())
        return here.watch

    watch = run(work)
    warned = bool(watch.warnings("realtime", chunk_s))
    return watch.late_s, watch.busy, sum(bool(one.error) for one in exchanges), warned


def level(given: tuple[str, int, float, float], clients: int) -> Level:
    """One level, fed by so many processes."""
    begin_s = perf_counter() + _AHEAD_S * clients
    with multiprocessing.get_context("spawn").Pool(clients) as pool:
        parts = [Part(index=index, of=clients, begin=partial(float, begin_s)) for index in range(clients)]
        found = pool.starmap(feed, [(given, part) for part in parts])
    return Level(
        streams=given[1], late_s=[late for one in found for late in one[0]], busy=max(one[1] for one in found),
        failed=sum(one[2] for one in found), warned=any(one[3] for one in found),
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
        print("streams  late p50  late p99    latest      client", flush=True)
        for streams in map(int, asked.streams.split(",")):
            found = level((url, streams, asked.seconds, asked.chunk_ms / 1e3), asked.clients)
            print(found.line, flush=True)
            held = streams if not (found.warned or found.failed) else held
    finally:
        answering.terminate()
        answering.join()
    print(f"held: {held} streams")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
