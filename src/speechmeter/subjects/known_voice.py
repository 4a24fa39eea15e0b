"""`known-voice`: a synthesiser whose every figure is known beforehand, to check the meters.

It computes nothing. Whatever takes time waits on the clock that it was made with, so that on a virtual clock every
moment is exact. All figures of its exchanges therefore follow from its `VoiceScript`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import CUT, WHOLE, Clock, Conversation, Event, Live
from speechmeter.core.protocols import TEXT, Installed, Prepared
from speechmeter.core.types import Case, Speech
from speechmeter.subjects.common import check_no_source

_LOOK_S = 0.03125
"""How often a voice looks whether it was interrupted."""
_TONE = 0.5
"""Amplitude of what stands for speech."""


@dataclass(frozen=True, kw_only=True)
class VoiceScript:
    """How the synthesiser behaves.

    The sound of a text is `leading_s` of silence, a tone of `character_s` for each character, and `trailing_s` of
    silence; at `rate`, with a constant `offset` added. It begins when all text has come, or with `early` when a
    sentence has: then each sentence is spoken when it is complete. The first piece comes `first_s` later, `cold_s` more
    in the first conversation, and `cached_s` in place of `first_s` where the text was spoken before. Pieces have
    `piece_s` of sound, and one is made `speech_rtf` times its length after the one before it. Each of `gaps`, a
    position in the sound with its seconds, delays all pieces from there on. With `header` an empty piece comes before
    the first, so many seconds earlier. `whole` gives all sound at once, when its last piece is made.

    Where it is interrupted, it makes pieces for `stop_s` more.

    `service_s` of work come before all of this, on one of `slots` that all conversations share. `lose_all` and `fail`
    are shares of conversations: without any sound, with an error. They follow from `seed` and the text.
    """

    first_s: float = 0.25
    cold_s: float = 0.0
    cached_s: float | None = None
    leading_s: float = 0.0
    trailing_s: float = 0.0
    character_s: float = 0.0625
    piece_s: float = 0.25
    speech_rtf: float = 0.25
    gaps: tuple[tuple[float, float], ...] = ()
    header: float | None = None
    whole: bool = False
    early: bool = False
    rate: int = 16_000
    offset: float = 0.0
    clip: bool = False
    stop_s: float = 0.0
    service_s: float = 0.0
    service: str = "fixed"
    slots: int = 1
    lose_all: float = 0.0
    fail: float = 0.0
    seed: int = 0


@dataclass(kw_only=True)
class Shared:
    """What all conversations of a system share."""

    slots: asyncio.Semaphore
    spoken: set[str] = field(default_factory=set)
    is_cold: bool = True


def known_voice(script: VoiceScript, *, virtual: bool = True) -> Live:
    """The system that a script describes."""
    shared = Shared(slots=asyncio.Semaphore(script.slots))

    def converse(clock: Clock) -> Conversation:
        return KnownVoice(script, shared, clock)

    return Live(converse=converse, texts=False, speaks=True, interrupts=True, isolation="shared", virtual=virtual)


def sound_of(script: VoiceScript, text: str) -> Any:
    """The samples of a text: a tone between silences."""
    import numpy as np

    speech = round(len(text) * script.character_s * script.rate)
    lead, trail = round(script.leading_s * script.rate), round(script.trailing_s * script.rate)
    tone = _TONE * np.sin(2 * np.pi * 200 * np.arange(speech) / script.rate)
    made = np.concatenate([np.zeros(lead), np.clip(8 * tone, -1, 1) if script.clip else tone, np.zeros(trail)])
    return (made + script.offset).astype(np.float32)


class KnownVoice:
    """One conversation (see `core.live.Conversation`)."""

    def __init__(self, script: VoiceScript, shared: Shared, clock: Clock) -> None:
        self._script, self._shared, self._clock = script, shared, clock
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self._busy_s = 0.0
        self._stops_s = math.inf
        self._cut = False

    async def open(self) -> None:
        """Ready at once."""

    async def send(self, pcm: Any) -> None:
        """Take a piece of text."""
        self._pieces.put_nowait(pcm)

    async def finish(self) -> None:
        """There is no more text."""
        self._pieces.put_nowait(None)

    async def interrupt(self) -> None:
        """Stop soon."""
        self._stops_s = self._clock.now() + self._script.stop_s

    async def events(self) -> AsyncIterator[Event]:
        """Pieces of sound when they are due."""
        async for text in self._texts():
            async for event in self._spoken(text):
                yield event
                if event.kind == "error":
                    return
        notes = {"busy_s": self._busy_s, **({CUT: True} if self._cut else {})}
        yield Event(kind="closed", moment_s=self._clock.now(), notes=notes)

    async def close(self) -> None:
        """Nothing to free."""

    async def _texts(self) -> AsyncIterator[str]:
        """The whole text, or each sentence once the one after it begins."""
        text = ""
        while (piece := await self._pieces.get()) is not None:
            text += piece
            if self._script.early and (end := _sentence_end(text)):
                yield text[:end]
                text = text[end:]
        if text:
            yield text

    async def _spoken(self, text: str) -> AsyncIterator[Event]:
        script, clock = self._script, self._clock
        draw = Random(f"{script.seed}/{text}")
        loses, fails = draw.random() < script.lose_all, draw.random() < script.fail
        await self._serve()
        begins_s = clock.now() + self._first_s(text)
        if script.header is not None:
            await clock.sleep_until(begins_s - script.header)
            yield Event(kind="audio", moment_s=clock.now(), audio=0)
        if fails:
            await clock.sleep_until(begins_s)
            yield Event(kind="error", moment_s=clock.now(), text="asked to fail")
        elif not loses:
            async for event in self._made(text, begins_s):
                yield event

    async def _serve(self) -> None:
        script = self._script
        if script.service_s:
            async with self._shared.slots:
                rate = 1 / script.service_s
                exponential = script.service == "exponential"
                draw = Random("/".join((str(script.seed), "work", repr(self._clock.now()))))
                work_s = draw.expovariate(rate) if exponential else script.service_s
                await self._clock.sleep_until(self._clock.now() + work_s)
                self._busy_s += work_s

    def _first_s(self, text: str) -> float:
        script, shared = self._script, self._shared
        known, cold = text in shared.spoken, shared.is_cold
        shared.spoken.add(text)
        shared.is_cold = False
        first_s = script.cached_s if known and script.cached_s is not None else script.first_s
        return first_s + (script.cold_s if cold else 0.0)

    async def _made(self, text: str, begins_s: float) -> AsyncIterator[Event]:
        script, samples = self._script, sound_of(self._script, text)
        size = round(script.piece_s * script.rate)
        starts = range(0, len(samples), size)
        for number, start in enumerate(starts):
            from_s = start / script.rate
            late_s = sum(seconds for position, seconds in script.gaps if position <= from_s)
            due_s = begins_s + number * script.piece_s * script.speech_rtf + late_s
            if not script.whole or start == starts[-1]:
                await self._until(due_s)
                if due_s > self._stops_s:
                    self._cut = True
                    return
                part = samples if script.whole else samples[start : start + size]
                yield Event(
                    kind="audio", moment_s=self._clock.now(), sound=Speech(samples=part, rate=script.rate),
                    notes={WHOLE: True} if script.whole else {},
                )  # fmt: skip

    async def _until(self, due_s: float) -> None:
        """Wait until a piece is due, or until it is known that it will not come."""
        clock = self._clock
        while (moment_s := min(due_s, self._stops_s)) > clock.now():
            await clock.sleep_until(min(moment_s, clock.now() + _LOOK_S))


def _sentence_end(text: str) -> int:
    """Where the first sentence ends that another one follows; 0 where there is none yet."""
    return max(0, *(text.find(f"{mark} ") + 1 for mark in ".!?"))


def _seconds(name: str, help: str, default: float | None) -> Option:
    return Option(name=name, kind=float, default=default, minimum=0, help=help)


class KnownVoiceSubject:
    """`known-voice`: speaks the texts of the workload as programmed."""

    summary = "known-voice, a simulated synthesiser with programmed delays and gaps, to check the meters"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = (
        Option(name="clock", kind=str, default="real", choices=("real", "virtual"), help="virtual: simulated time"),
        _seconds("first_s", "seconds from the text to the first piece of sound", 0.25),
        _seconds("cold_s", "further seconds in the first conversation", 0.0),
        _seconds("cached_s", "replaces first_s if the same text was spoken before", None),
        _seconds("leading_s", "seconds of silence before the speech in the sound", 0.0),
        _seconds("trailing_s", "seconds of silence after the speech in the sound", 0.0),
        Option(name="character_s", kind=float, default=0.0625, above=0, help="seconds of sound for each character"),
        Option(name="piece_s", kind=float, default=0.25, above=0, help="seconds of sound in a piece"),
        _seconds("speech_rtf", "seconds of computing per second of sound", 0.25),
        Option(name="gaps", kind=list, default=[],
               help="list of [position, delay] in seconds: pieces of sound from this position on come later by the "
                    "delay"),
        _seconds("header", "send a header without sound this many seconds before the sound", None),
        Option(name="whole", kind=bool, default=False, help="all sound comes in one piece"),
        Option(name="early", kind=bool, default=False, help="each sentence is spoken when it is complete"),
        Option(name="rate", kind=int, default=16_000, minimum=8_000, help="sampling rate of the sound"),
        Option(name="offset", kind=float, default=0.0, help="a constant in all samples (DC)"),
        Option(name="clip", kind=bool, default=False, help="make the speech so loud that it clips"),
        _seconds("stop_s", "seconds for which it continues to speak after an interruption", 0.0),
        _seconds("service_s", "seconds of processing before each answer", 0.0),
        Option(name="service", kind=str, default="fixed", choices=("fixed", "exponential"),
               help="exponential: random seconds of processing, service_s on average"),
        Option(name="slots", kind=int, default=1, minimum=1, help="number of answers that are processed at once"),
        *(Option(name=name, kind=float, default=0.0, minimum=0, help=f"share of conversations {what}")
          for name, what in (("lose_all", "without any sound"), ("fail", "that end with an error"))),
        Option(name="seed", kind=int, default=0, minimum=0, help="seed of random work and losses"),
    )  # fmt: skip
    runs_code = False
    takes = (TEXT,)

    def installed(self) -> Installed:
        """Always."""
        return Installed(version="built in")

    def check(self, case: Case) -> None:
        """It is named alone; gaps are pairs of numbers."""
        check_no_source(case)
        script_of(case.subject.options)

    def unavailable(self, case: Case) -> str | None:
        """It is only live."""
        return None if case.live is not None else "known-voice can only be measured live: add `pace: fast`"

    def not_live(self, case: Case) -> str | None:
        """Always possible."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """The system that the options describe."""
        virtual = case.subject.options.get("clock", "real") == "virtual"
        return Prepared(
            live=known_voice(script_of(case.subject.options), virtual=virtual),
            notes=("a simulated synthesiser: all results are programmed and say nothing about real systems",),
        )


def script_of(options: Mapping[str, Any]) -> VoiceScript:
    """The script that options of a plan describe. Raises SubjectError for gaps that are no pairs of numbers."""
    names = {one.name for one in fields(VoiceScript)}
    given = {name: value for name, value in options.items() if name in names}
    try:
        gaps = tuple((float(position), float(seconds)) for position, seconds in given.pop("gaps", ()))
    except (TypeError, ValueError):
        raise SubjectError(
            "`gaps` is not a list of [position, seconds]", fix="for example `gaps: [[1, 0.5]]`"
        ) from None
    return VoiceScript(**given, gaps=gaps)
