"""A recogniser that knows what is said and behaves as programmed: when text comes, how it changes, what is lost.

It computes nothing. Whatever takes time waits on the clock that it was made with, so that on a virtual clock every
moment is exact. All figures of its exchanges therefore follow from its `Script`.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from speechmeter.core.live import Clock, Event, Word
from speechmeter.subjects.common import RATE

WRONG = "um"
"""What is shown in place of a word that is not settled yet."""
_SLACK_S = 1e-9


@dataclass(frozen=True, kw_only=True)
class Script:
    """How the recogniser behaves; the defaults are a perfect one. Positions are in the audio, delays on the clock.

    A word is heard when the chunk that holds its end was consumed: `service_s` of work a chunk (with `service`
    exponential: on average, at random), on one of `slots` that all conversations share, and not before position ×
    (1 + `leak`). Text follows `delay_s` later, at most every `cadence_s` of audio. In a partial the last
    `unstable_words` are wrong. `guess_s` > 0 hears a word so long before its end. `hallucinate_s` is a position at
    which a wrong word is shown before anything else.

    The final comes `final_s` after the end of the turn: where `endpoint_s` of audio after the last word are consumed,
    or `finish` is called and all is consumed. `early_s` is how long before the end of speech the system ends a turn of
    its own, once; the rest is a second segment. `segment_words` commits a final after so many words. `spread_s` is the
    most that is added to each final, at random; `extra_s` is always added.

    `lose_final`, `lose_all` and `fail` are shares of conversations: without a last final, without any event, with an
    error. `lose_word` leaves out every so many-th word, `swap_word` gets it wrong. Such conversations and random delays
    follow from `seed`; without it they differ in every process.
    """

    delay_s: float = 0.0
    cadence_s: float = 0.0
    unstable_words: int = 0
    guess_s: float = 0.0
    hallucinate_s: float | None = None
    partials: bool = True
    final_s: float = 0.0
    extra_s: float = 0.0
    spread_s: float = 0.0
    endpoint_s: float | None = None
    early_s: float | None = None
    segment_words: int | None = None
    lose_final: float = 0.0
    lose_all: float = 0.0
    fail: float = 0.0
    lose_word: int | None = None
    swap_word: int | None = None
    service_s: float = 0.0
    service: str = "fixed"
    slots: int = 1
    leak: float = 0.0
    spans: bool = True
    seed: int | None = 0


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """What is said in an utterance: its samples, by which it is recognised, and its words with their times."""

    name: str
    pcm: Any = field(repr=False)
    words: tuple[Word, ...]
    speech_end_s: float


class KnownConversation:
    """One conversation (see `core.live.Conversation`). `slots` are those of all conversations of the system."""

    def __init__(self, script: Script, spoken: Sequence[Spoken], slots: asyncio.Semaphore, clock: Clock) -> None:
        self._script, self._spoken, self._slots, self._clock = script, spoken, slots, clock
        self._chunks: asyncio.Queue[Any] = asyncio.Queue()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._due: list[tuple[float, int, Event | None]] = []
        self._numbers = count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._consuming: asyncio.Task[None] | None = None
        self._heard: _Hearing | None = None
        self._busy_s = self._latest_s = 0.0

    async def open(self) -> None:
        """Ready at once."""
        self._consuming = asyncio.ensure_future(self._consume())
        self._emit("opened", self._clock.now())

    async def send(self, pcm: Any) -> None:
        """Take samples; never waits for the work."""
        self._chunks.put_nowait((pcm, self._clock.now()))

    async def finish(self) -> None:
        """All that was sent is consumed, then the last final follows."""
        self._chunks.put_nowait(None)

    async def events(self) -> AsyncIterator[Event]:
        """Events when they are due."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """Stop."""
        for task in (*self._tasks, *([self._consuming] if self._consuming is not None else [])):
            task.cancel()

    async def _consume(self) -> None:
        samples = 0
        received: list[Any] = []
        start_s: float | None = None
        while (item := await self._chunks.get()) is not None:
            pcm, sent_s = item
            if not received:
                start_s = sent_s - len(pcm) / RATE
            received.append(pcm)
            samples += len(pcm)
            cursor_s = samples / RATE
            if self._heard is None:
                self._heard = _Hearing(self._script, _recognise(received, self._spoken))
            if self._script.service_s:
                async with self._slots:
                    work_s = self._work_s(sent_s)
                    await self._clock.sleep_until(self._clock.now() + work_s)
                    self._busy_s += work_s
            assert start_s is not None
            if self._script.leak:
                await self._clock.sleep_until(start_s + cursor_s * (1 + self._script.leak))
            self._say(self._heard.consume(cursor_s))
        self._say(self._heard.finish(samples / RATE) if self._heard is not None else [])
        ends_s = max(self._clock.now(), self._latest_s)
        self._emit("closed", ends_s, notes={"busy_s": self._busy_s})
        self._later(ends_s, None)

    def _work_s(self, sent_s: float) -> float:
        """Seconds of work for a chunk. At random it follows from the moment at which the chunk came, so that it is the
        same whenever a round is repeated, and another one in a round with other arrivals.
        """
        script = self._script
        if script.service == "fixed":
            return script.service_s
        draw = Random() if script.seed is None else Random("/".join((str(script.seed), "work", repr(sent_s))))
        return draw.expovariate(1 / script.service_s)

    def _say(self, said: Sequence[tuple[str, float, dict[str, Any]]]) -> None:
        for kind, delay_s, fields in said:
            self._emit(kind, self._clock.now() + delay_s, **fields)

    def _emit(self, kind: Any, moment_s: float, **fields: Any) -> None:
        self._latest_s = max(self._latest_s, moment_s)
        self._later(moment_s, Event(kind=kind, moment_s=moment_s, **fields))

    def _later(self, moment_s: float, event: Event | None) -> None:
        """Put an event out at its moment; on a real clock it carries the one at which it came.

        Whoever wakes first puts out all that is due: on a real clock, waits for one moment end in any order.
        """

        heappush(self._due, (moment_s, next(self._numbers), event))
        if moment_s <= self._clock.now():
            self._put_out(moment_s)
            return
        task = asyncio.ensure_future(self._wait(moment_s))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait(self, moment_s: float) -> None:
        await self._clock.sleep_until(moment_s)
        self._put_out(moment_s)

    def _put_out(self, moment_s: float) -> None:
        while self._due and self._due[0][0] <= moment_s:
            event = heappop(self._due)[2]
            self._events.put_nowait(None if event is None else replace(event, moment_s=self._clock.now()))


class _Hearing:
    """What is heard of one utterance so far, and what is said about it: lists of (kind, delay, fields of the event)."""

    def __init__(self, script: Script, spoken: Spoken | None) -> None:
        name = "" if spoken is None else spoken.name
        draw = Random() if script.seed is None else Random(f"{script.seed}/{name}")
        self._script = script
        self._words = [] if spoken is None else _heard_words(script, spoken.words)
        self._ends = sorted(word.end_s for word in self._words)
        self._end_s = 0.0 if spoken is None else spoken.speech_end_s
        self._loses_all, self._loses_final, self._fails = (
            draw.random() < share for share in (script.lose_all, script.lose_final, script.fail)
        )
        self._final_s = script.final_s + script.extra_s + (draw.random() * script.spread_s if script.spread_s else 0.0)
        self._from = 0  # the first word of the segment that is open
        self._segment = 0
        self._shown = ""
        self._partial_s = 0.0  # the position of the latest partial, where there is a cadence
        self._ended = self._ended_early = self._hallucinated = False

    def consume(self, cursor_s: float) -> list[tuple[str, float, dict[str, Any]]]:
        """What is said when the audio up to `cursor_s` was consumed."""
        if self._loses_all:
            return []
        said = []
        count = bisect_right(self._ends, cursor_s + self._script.guess_s + _SLACK_S)
        while self._script.segment_words and count - self._from > self._script.segment_words:
            said.append(self._final(self._from + self._script.segment_words, cursor_s, self._script.delay_s))
        if self._is_due(cursor_s):
            said += self._partial(count, cursor_s)
        early_s = self._script.early_s
        if early_s is not None and not self._ended_early and cursor_s >= self._end_s - early_s - _SLACK_S:
            self._ended_early = True
            said += self._end(count, cursor_s)
        last_s = self._words[-1].end_s if self._words else 0.0
        after_s = self._script.endpoint_s
        if after_s is not None and not self._ended and cursor_s >= max(last_s, self._end_s) + after_s - _SLACK_S:
            self._ended = True
            said += self._end(len(self._words), cursor_s)
        return said

    def finish(self, cursor_s: float) -> list[tuple[str, float, dict[str, Any]]]:
        """What is said when all audio was consumed and there is no more."""
        if self._fails:
            return [("error", self._final_s, {"text": "asked to fail"})]
        if self._loses_all or self._loses_final or self._ended:
            return []
        count = bisect_right(self._ends, cursor_s + self._script.guess_s + _SLACK_S)
        return [self._final(count, cursor_s, self._final_s)] if count > self._from or not self._segment else []

    def _end(self, count: int, cursor_s: float) -> list[tuple[str, float, dict[str, Any]]]:
        if self._loses_final:
            return []
        return [("endpoint", self._script.delay_s, {"end_s": cursor_s}), self._final(count, cursor_s, self._final_s)]

    def _is_due(self, cursor_s: float) -> bool:
        cadence_s = self._script.cadence_s
        if not self._script.partials or self._ended:
            return False
        if not cadence_s:
            return True
        if cursor_s - self._partial_s < cadence_s - _SLACK_S:
            return False
        self._partial_s += cadence_s * int((cursor_s - self._partial_s + _SLACK_S) / cadence_s)
        return True

    def _partial(self, count: int, cursor_s: float) -> list[tuple[str, float, dict[str, Any]]]:
        position_s = self._script.hallucinate_s
        if position_s is not None and not self._hallucinated and cursor_s >= position_s - _SLACK_S:
            self._hallucinated = True
            if count == 0:
                return self._show(WRONG, cursor_s)
        words = [word.text for word in self._words[self._from : count]]
        if not words:
            return []
        unstable = min(self._script.unstable_words, len(words))
        return self._show(" ".join([*words[: len(words) - unstable], *[WRONG] * unstable]), cursor_s)

    def _show(self, text: str, cursor_s: float) -> list[tuple[str, float, dict[str, Any]]]:
        if text == self._shown:
            return []
        self._shown = text
        return [("partial", self._script.delay_s, {"text": text, "segment": self._segment, **self._span(cursor_s)})]

    def _final(self, count: int, cursor_s: float, delay_s: float) -> tuple[str, float, dict[str, Any]]:
        text = " ".join(word.text for word in self._words[self._from : count])
        fields = {"text": text, "segment": self._segment, **self._span(cursor_s)}
        self._from, self._segment, self._shown = count, self._segment + 1, ""
        return "final", delay_s, fields

    def _span(self, cursor_s: float) -> dict[str, float]:
        return {"end_s": cursor_s} if self._script.spans else {}


def _heard_words(script: Script, words: Sequence[Word]) -> list[Word]:
    """The words as this recogniser gets them."""
    heard = []
    for number, word in enumerate(words, start=1):
        if script.lose_word and number % script.lose_word == 0:
            continue
        swapped = bool(script.swap_word) and number % (script.swap_word or 1) == 0
        heard.append(replace(word, text=f"{word.text}x") if swapped else word)
    return heard


def _recognise(received: Sequence[Any], spoken: Sequence[Spoken]) -> Spoken | None:
    """The utterance that begins with these samples; None for one that is not known."""
    import numpy as np

    begin = np.concatenate(received)
    return next((one for one in spoken if np.array_equal(one.pcm[: len(begin)], begin[: len(one.pcm)])), None)
