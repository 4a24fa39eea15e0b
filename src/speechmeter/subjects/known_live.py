"""`known:live`: a recogniser whose every figure is known beforehand, as a model of a plan."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import Anchors, Clock, Conversation, Live, Word
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case
from speechmeter.subjects.common import RATE
from speechmeter.subjects.known_conversation import KnownConversation, Script, Spoken

LIVE = "live"
_WORD_S = 0.4


def _seconds(name: str, help: str, default: float | None = 0.0) -> Option:
    return Option(name=name, kind=float, default=default, minimum=0, help=help)


def _number(name: str, help: str, default: int | None = None) -> Option:
    return Option(name=name, kind=int, default=default, minimum=0, help=help)


class KnownSubject:
    """`known:live`: knows the words of the workload (their times, else spread evenly), and shows them as programmed."""

    summary = "known:live, a simulated recogniser with programmed delays and faults, to check the meters"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = (
        Option(name="clock", kind=str, default="real", choices=("real", "virtual"),
               help="virtual: simulated time, an hour of audio takes seconds"),
        _seconds("delay_s", "seconds from recognising a word to showing it"),
        _seconds("cadence_s", "minimum seconds of audio between two partial texts"),
        _number("unstable_words", "number of wrong words at the end of a partial text", 0),
        _seconds("guess_s", "seconds by which a word is recognised before its end in the audio"),
        _seconds("hallucinate_s", "position in the audio where a wrong word is shown before any other", None),
        Option(name="partials", kind=bool, default=True, help="whether partial texts are sent"),
        _seconds("final_s", "seconds from the end of the turn to the final text"),
        _seconds("extra_s", "seconds of extra delay of every final text"),
        _seconds("spread_s", "maximum random extra delay of a final text, in seconds"),
        _seconds("endpoint_s", (
            "seconds of silence after which the system ends the turn (default: it does not end turns)"
        ), None),
        _seconds("early_s", "how many seconds before the end of speech it wrongly ends the turn", None),
        _number("segment_words", "number of words after which a text becomes final"),
        *(Option(name=name, kind=float, default=0.0, minimum=0, help=f"share of conversations {what}")
          for name, what in (("lose_final", "without a last final"), ("lose_all", "without any text"),
                             ("fail", "that end with an error"))),
        _number("lose_word", "leave out every Nth word"),
        _number("swap_word", "replace every Nth word by a wrong one"),
        _seconds("service_s", "seconds of processing for each chunk"),
        Option(name="service", kind=str, default="fixed", choices=("fixed", "exponential"),
               help="exponential: random seconds of processing, service_s on average"),
        Option(name="slots", kind=int, default=1, minimum=1, help=(
            "number of chunks that are processed at the same time"
        )),
        _seconds("leak", "seconds by which the delay grows in each second of audio"),
        Option(name="spans", kind=bool, default=True, help=(
            "whether each text has the start and end of the audio that it covers"
        )),
        _number("seed", "seed of random delays and losses: another number gives others", 0),
    )  # fmt: skip
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Always."""
        return Installed(version="built in")

    def check(self, case: Case) -> None:
        """The only source is `live`."""
        if case.subject.source != LIVE:
            raise SubjectError(f"there is no simulated system {case.subject.source!r}", fix="write known:live")

    def unavailable(self, case: Case) -> str | None:
        """It is only live."""
        return None if case.live is not None else "known:live can only be measured live: add `pace: realtime`"

    def not_live(self, case: Case) -> str | None:
        """Always possible."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Learn what the workload says, so that it can be recognised by its first samples."""
        spoken = spoken_in(plugins.workload(case.workload.plugin).batches(case))
        return Prepared(
            live=known_live(script_of(case.subject.options), spoken, virtual=_clock(case.subject.options) == "virtual"),
            notes=("a simulated recogniser: all results are programmed and say nothing about real systems",),
        )


def known_live(script: Script, spoken: Sequence[Spoken], *, virtual: bool = True) -> Live:
    """The system that a script describes."""
    slots = asyncio.Semaphore(script.slots)

    def converse(clock: Clock) -> Conversation:
        return KnownConversation(script, spoken, slots, clock)

    return Live(
        converse=converse,
        endpoints=script.endpoint_s is not None or script.early_s is not None,
        isolation="shared",
        virtual=virtual,
    )


def script_of(options: Mapping[str, Any]) -> Script:
    """The script that options of a plan describe."""
    names = {one.name for one in fields(Script)}
    return Script(**{name: value for name, value in options.items() if name in names})


def _clock(options: Mapping[str, Any]) -> str:
    return str(options.get("clock", "real"))


def spoken_in(batches: Iterable[Batch]) -> list[Spoken]:
    """What is said in each item: its words where anchors have them, else those of its reference spread evenly over the
    speech; without a reference a made-up word every 0.4 s.
    """
    found: list[Spoken] = []
    for batch in batches:
        for index in range(batch.items):
            length = batch.lengths[index] if batch.lengths else len(batch.data[index])
            anchors = batch.anchors[index] if batch.anchors else Anchors()
            name = batch.ids[index] if batch.ids else str(len(found))
            reference = batch.references[index] if batch.references else None
            words, end_s = words_of(anchors, reference, length / RATE)
            found.append(Spoken(name=name, pcm=batch.data[index][:length], words=words, speech_end_s=end_s))
    return found


def words_of(anchors: Anchors, reference: str | None, audio_s: float) -> tuple[tuple[Word, ...], float]:
    """(words with times, end of speech) of an utterance as the simulated recogniser hears it."""
    start_s = anchors.speech_start_s or 0.0
    end_s = audio_s if anchors.speech_end_s is None else anchors.speech_end_s
    if anchors.words:
        return anchors.words, end_s
    count = max(1, int((end_s - start_s) / _WORD_S))
    texts = reference.split() if reference is not None else [f"word{number}" for number in range(1, count + 1)]
    step_s = (end_s - start_s) / max(1, len(texts))
    words = [
        Word(text=text, start_s=start_s + place * step_s, end_s=start_s + (place + 1) * step_s)
        for place, text in enumerate(texts)
    ]
    if words:  # exactly, not up to rounding
        words[-1] = Word(text=words[-1].text, start_s=words[-1].start_s, end_s=end_s)
    return tuple(words), end_s
