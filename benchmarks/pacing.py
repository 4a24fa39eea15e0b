"""How well this host keeps the pace of a microphone: lateness of sends, drift of the feed, and the warning about both.

One stream of chunks goes to a system that answers nothing, by the same code that feeds every live case. Each line is
a minute of it. `--neighbour` keeps every core busy meanwhile with processes that spin, bounded by the same time.

    python benchmarks/pacing.py                              10 minutes of 20 ms chunks; exit 1 if they drift by 0.05 %
    python benchmarks/pacing.py --minutes 1 --neighbour      what a busy machine does, and what a record then says

Drift is how much slower than the audio the feed was: the time from the first send to the last, divided by the audio
between them, minus 1. Late sends do not add up to drift, because every chunk has a moment of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from speechmeter.core.live import Clock, Exchange, Live, Send
from speechmeter.core.protocol import LiveProtocol
from speechmeter.engine.live.client import ClientWatch, percentile
from speechmeter.engine.live.clock import run
from speechmeter.engine.live.conversation import Manner
from speechmeter.engine.live.round import Round, Script
from speechmeter.engine.live.utterance import RATE, Utterance
from speechmeter.subjects.known_conversation import Script as Behaviour
from speechmeter.subjects.known_live import known_live

MOST_DRIFT = 5e-4
PROTOCOL = LiveProtocol(
    turn_end="system", turn_delay_s=0.0, turn_vad="", silence_s=0.0, quiet_s=0.0, timeout_s=30.0, phase="aligned",
    turns=1, duration_s=None, warmup_turns=0,
)  # fmt: skip


def fed(seconds: float, chunk_s: float, *, virtual: bool = False) -> tuple[Sequence[Send], ClientWatch]:
    """The sends of one stream of silence, and what the client noticed."""
    silence = Utterance(name="silence", pcm=np.zeros(round(seconds * RATE), dtype=np.float32))
    live: Live = known_live(Behaviour(lose_all=1.0), [], virtual=virtual)
    script, _ = Script.of_all([silence], warmup_turns=0, streams=1, seed="0")
    exchanges: list[Exchange] = []

    async def work(clock: Clock) -> Round:
        manner = Manner(live=live, protocol=PROTOCOL, pace="realtime", chunk_s=chunk_s)
        here = Round(script=script, manner=manner, clock=clock, take=exchanges.append)
        await here.hold()
        return here

    held = run(work, virtual=virtual)
    return exchanges[0].sends, held.watch


def drift(sends: Sequence[Send]) -> float:
    """How much slower than the audio a feed was, as a share."""
    return (sends[-1].sent_s - sends[0].sent_s) / (sends[-1].due_s - sends[0].due_s) - 1


@contextmanager
def neighbour(seconds: float) -> Iterator[None]:
    """Processes that spin on every core, for no longer than that."""
    context = multiprocessing.get_context("spawn")
    spinning: list[Any] = [context.Process(target=_spin, args=(seconds,), daemon=True) for _ in range(_cores())]
    for one in spinning:
        one.start()
    try:
        yield
    finally:
        for one in spinning:
            one.terminate()
            one.join()


def _spin(seconds: float) -> None:
    end_s = perf_counter() + seconds
    while perf_counter() < end_s:
        pass


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def main() -> int:
    """Feed, print, and judge the drift."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--chunk-ms", type=float, default=20.0)
    parser.add_argument("--neighbour", action="store_true", help="keep every core busy meanwhile")
    given = parser.parse_args()
    seconds, chunk_s = given.minutes * 60, given.chunk_ms / 1e3
    print(f"{given.minutes:g} min of {given.chunk_ms:g} ms chunks on {_cores()} cores", flush=True)
    if given.neighbour:
        with neighbour(seconds + 60):
            sends, watch = fed(seconds, chunk_s)
    else:
        sends, watch = fed(seconds, chunk_s)
    print("minute   late p50   late p99   latest   drift")
    for start in range(0, len(sends), round(60 / chunk_s)):
        part = sends[start : start + round(60 / chunk_s)]
        if len(part) > 1:
            print(f"{start * chunk_s / 60:6.0f} {_late(part)} {drift(part) * 100:+.4f} %")
    found = drift(sends)
    print(f"   all {_late(sends)} {found * 100:+.5f} %")
    print("\n".join(watch.warnings("realtime", chunk_s)) or "no warning")
    return int(abs(found) >= MOST_DRIFT)


def _late(sends: Sequence[Send]) -> str:
    late = [one.sent_s - one.due_s for one in sends]
    p50, p99, most = (value * 1e3 for value in (percentile(late, 50), percentile(late, 99), max(late)))
    return f"{p50:8.2f}   {p99:8.2f}  {most:7.2f} ms"


if __name__ == "__main__":
    sys.exit(main())
