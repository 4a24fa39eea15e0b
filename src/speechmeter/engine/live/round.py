"""One round of a live case: streams that hold conversations one after another, warm-up first."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from speechmeter.core.axes import FAST
from speechmeter.core.errors import InputError
from speechmeter.core.live import Clock, Event, Exchange
from speechmeter.core.protocol import LiveProtocol
from speechmeter.engine.live.arrivals import arrivals_of
from speechmeter.engine.live.client import LATE, ClientWatch
from speechmeter.engine.live.conversation import Manner, Slot, cut_off, hold
from speechmeter.engine.live.utterance import Utterance

AGAIN_S = 0.1
"""How long after a request that failed at once the next one of its stream is sent."""
LEAD_S = 1.0
"""How long before it is due the connection of a paced conversation is opened, which arrives at a moment of its own."""
Take = Callable[[Exchange], None]
"""Gets every exchange when it is finished, those of the warm-up too."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The share of one of several clients in a round. `begin` waits until all are ready, and returns the moment on the
    clock of this machine at which all begin.
    """

    index: int
    of: int
    begin: Callable[[], float] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Script:
    """What the streams of a round say: every one of them says all utterances, each from another one on."""

    warm_up: Sequence[Utterance]
    measured: Sequence[Utterance]
    streams: range
    """The streams that are held here, out of those of the round."""
    of: int
    """How many streams the round has."""
    seed: str = "0"
    arrivals: tuple[float, ...] | None = None
    """When conversations begin, from the start of the round; None where each stream holds one after another."""
    numbers: range | None = None
    """The arrivals that are held here; None for all."""

    @classmethod
    def of_all(
        cls, utterances: Sequence[Utterance], *, warmup_turns: int, streams: int, seed: str
    ) -> tuple[Script, list[str]]:
        """The script for all streams, and warnings. Warm-up utterances are not measured."""
        if len(utterances) > warmup_turns:
            warm, rest = utterances[:warmup_turns], utterances[warmup_turns:]
            return cls(warm_up=warm, measured=rest, streams=range(streams), of=streams, seed=seed), []
        if len(utterances) != 1:
            raise InputError(
                f"{len(utterances)} utterances are too few: {warmup_turns} are for the warm-up, and none is left",
                key="warmup_turns",
                fix=f"use more utterances, or `warmup_turns: {max(0, len(utterances) - 1)}`",
            )
        script = cls(warm_up=(), measured=utterances, streams=range(streams), of=streams, seed=seed)
        return script, ["no warm-up: there is only one utterance; the first conversation may be slower than the others"]

    def utterance(self, stream: int, turn: int) -> Utterance:
        """What a stream says in a turn. The order is the same in all streams; they begin with different utterances."""
        count = len(self.measured)
        return self.measured[(stream * count // self.of + turn) % count]

    def starts_s(self, stream: int, fed_s: float, *, aligned: bool) -> float:
        """When a stream starts, counted from the first: somewhere in the length of an utterance, as callers do."""
        if aligned or self.of == 1:
            return 0.0
        return Random(f"{self.seed}/{stream}").uniform(0.0, fed_s)

    def arriving(self, protocol: LiveProtocol, rate: float | None) -> Script:
        """The same with conversations that arrive as the protocol says."""
        return replace(self, arrivals=arrivals_of(protocol, rate, self.seed, len(self.measured)))

    def share(self, part: Part) -> Script:
        """What one of several clients holds of it: every stream, or every arrival, whose number is its own."""
        arrivals = () if self.arrivals is None else self.arrivals
        return replace(
            self,
            streams=self.streams[part.index :: part.of],
            numbers=range(part.index, len(arrivals), part.of),
        )

    @property
    def held(self) -> list[tuple[int, float]]:
        """The arrivals that are held here: number and moment of each."""
        arrivals = self.arrivals or ()
        return [
            (number, arrivals[number]) for number in (range(len(arrivals)) if self.numbers is None else self.numbers)
        ]

    def waits_s(self, protocol: LiveProtocol, pace: str) -> float:
        """Seconds that a round only waits: for speech in real time, and for conversations to arrive."""
        if pace == FAST:
            return self.arrivals[-1] if self.arrivals else 0.0
        return self.lasts_s(protocol)

    def lasts_s(self, protocol: LiveProtocol) -> float:
        """Seconds of speech and silence that a round waits for, where audio is fed in real time."""
        fed = [one.fed_s(protocol.silence_s) for one in self.measured]
        warm_s = sum(one.fed_s(protocol.silence_s) for one in self.warm_up)
        if self.arrivals is not None:
            return warm_s + LEAD_S + self.arrivals[-1] + max(fed)
        turns = turns_of(self, protocol)
        if turns is None:
            said_s = (protocol.duration_s or 0.0) + max(fed)
        else:
            said_s = sum(fed) * (turns // len(fed)) + sum(
                sorted(fed)[-(turns % len(fed)) :] if turns % len(fed) else []
            )
        return warm_s + said_s + max(fed) * (self.of > 1 and protocol.phase != "aligned")


def turns_of(script: Script, protocol: LiveProtocol) -> int | None:
    """How many conversations each stream holds; None where time decides."""
    if protocol.turns is None and protocol.duration_s is None:
        return len(script.measured)
    return protocol.turns


@dataclass(kw_only=True)
class Tally:
    """How far a round is: for the progress."""

    turns: int | None
    done: int = 0
    late: int = 0
    partials: int = 0
    errors: int = 0
    sounds: int = 0

    def line(self) -> str:
        """`12 of 40 utterances, 3 late sends, 57 partials`, or pieces of sound where the system speaks."""
        of = "" if self.turns is None else f" of {self.turns}"
        errors = f", {self.errors} failed" if self.errors else ""
        heard = f"{self.sounds} pieces of sound" if self.sounds else f"{self.partials} partials"
        return f"{self.done}{of} utterances, {self.late} late sends, {heard}{errors}"


@dataclass(kw_only=True)
class Round:
    """Holds the conversations of a script. `take` gets each exchange, `report` a line on how far it is."""

    script: Script
    manner: Manner
    clock: Clock
    take: Take
    report: Callable[[str], None] = lambda line: None
    tally: Tally = field(init=False)
    watch: ClientWatch = field(init=False)
    zero_s: float = 0.0
    _due: dict[tuple[int, int], tuple[Utterance, Slot]] = field(default_factory=dict)
    """Conversations that are due and not yet held, by stream and turn."""

    def __post_init__(self) -> None:
        self._turns = turns = turns_of(self.script, self.manner.protocol)
        whole = None if turns is None else turns * len(self.script.streams)
        self.tally = Tally(turns=whole if self.script.arrivals is None else len(self.script.held))
        self.watch = ClientWatch(clock=self.clock)

    async def warm(self) -> None:
        """Hold the conversations of the warm-up, all streams at once."""
        self.zero_s = self.clock.now()
        await _all(self._warm(stream) for stream in self.script.streams)

    async def hold(self, begin_s: float | None = None) -> None:
        """Hold the measured conversations; the streams start from `begin_s` on the clock on (default: now).

        Where one of them raises, those that were due and are not complete count as failed.
        """
        begin_s = self.clock.now() if begin_s is None else begin_s
        self.watch.start()
        try:
            if self.script.arrivals is None:
                self._plan_streams(begin_s)
                await _all(self._stream(stream, begin_s) for stream in self.script.streams)
            else:
                begin_s += 0.0 if self.manner.pace == FAST else LEAD_S
                for number, moment in self.script.held:
                    self._plan_arrival(number, begin_s + moment, moment)
                await _all(self._arrival(number) for number, _ in self.script.held)
        finally:
            await self.watch.stop()
            for utterance, slot in self._due.values():
                self.take(cut_off(utterance, self.manner, slot))

    async def _warm(self, stream: int) -> None:
        for turn, utterance in enumerate(self.script.warm_up):
            slot = Slot(stream=stream, turn=turn, due_s=self.clock.now(), zero_s=self.zero_s, warm_up=True)
            self.take(await hold(utterance, self.manner, slot, self.clock))

    async def _stream(self, stream: int, begin_s: float) -> None:
        """One conversation after another: the next one is due when the one before it has ended."""
        protocol = self.manner.protocol
        first = self.script.utterance(stream, 0)
        aligned = protocol.phase == "aligned" or self.manner.pace == FAST
        # no stream starts after the end of the round: the load would be smaller than its level says
        spread_s = min(first.fed_s(protocol.silence_s), protocol.duration_s or math.inf)
        due_s = begin_s + self.script.starts_s(stream, spread_s, aligned=aligned)
        turn = 0
        while self._goes_on(turn, due_s - begin_s):
            exchange = await self._hold(self._plan(stream, turn, due_s), self._sent)
            due_s = max(self.clock.now(), self._again_s(exchange, due_s))
            turn += 1

    async def _arrival(self, number: int) -> None:
        """One conversation that begins when it is due. Its connection is opened before; that of a request is not."""
        _, slot = self._due[0, number]
        begun_s = slot.due_s if self.manner.pace == FAST else slot.due_s - LEAD_S
        await self.clock.sleep_until(begun_s)
        if not slot.warm_up:
            self.watch.begun_late_s.append(self.clock.now() - begun_s)
        await self._hold(slot, _nothing if slot.warm_up else self._sent)

    async def _hold(self, slot: Slot, sent: Callable[[float], None]) -> Exchange:
        """A conversation that is due, which is then done."""
        utterance, _ = self._due[slot.stream, slot.turn]
        exchange = await hold(utterance, self.manner, slot, self.clock, sent=sent, heard=self._heard)
        del self._due[slot.stream, slot.turn]
        self._count(exchange)
        self.take(exchange)
        return exchange

    def _plan_streams(self, begin_s: float) -> None:
        """What every stream is to hold in any case; how many turns there is time for shows on the way."""
        turns = 1 if self._turns is None or self.manner.protocol.duration_s is not None else self._turns
        for stream in self.script.streams:
            for turn in range(turns):
                self._plan(stream, turn, begin_s)

    def _plan(self, stream: int, turn: int, due_s: float) -> Slot:
        slot = Slot(stream=stream, turn=turn, due_s=due_s, zero_s=self.zero_s)
        self._due[stream, turn] = self.script.utterance(stream, turn), slot
        return slot

    def _plan_arrival(self, number: int, due_s: float, moment_s: float) -> None:
        ramp = moment_s < self.manner.protocol.ramp_s
        slot = Slot(turn=number, due_s=due_s, zero_s=self.zero_s, warm_up=ramp, arrives=True)
        self._due[0, number] = self.script.utterance(0, number), slot

    def _again_s(self, exchange: Exchange, due_s: float) -> float:
        """The earliest moment of the next conversation. After a failure a speaker has still said the utterance: a
        server that refuses at once must not get, and fail, thousands of conversations.
        """
        if not exchange.error:
            return due_s
        return due_s + (AGAIN_S if self.manner.pace == FAST else exchange.fed_s)

    def _goes_on(self, turn: int, passed_s: float) -> bool:
        turns, duration_s = self._turns, self.manner.protocol.duration_s
        return (turns is None or turn < turns) and (duration_s is None or passed_s < duration_s)

    def _sent(self, late_s: float) -> None:
        self.watch.late_s.append(late_s)
        self.tally.late += late_s > LATE * self.manner.chunk_s

    def _heard(self, event: Event) -> None:
        self.tally.partials += event.kind == "partial"
        self.tally.sounds += event.kind == "audio"

    def _count(self, exchange: Exchange) -> None:
        self.tally.done += 1
        self.tally.errors += bool(exchange.error)
        self.report(self.tally.line())


def _nothing(late_s: float) -> None:
    """What is done with the lateness of chunks that are not measured."""


async def _all(streams: Iterable[Coroutine[Any, Any, None]]) -> None:
    """All at once; where one raises, which is a mistake of the input or of ours, the others end too."""
    tasks = [asyncio.ensure_future(stream) for stream in streams]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
