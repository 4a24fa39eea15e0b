"""A system while it is spoken to: what is said to it, what it answers, and when. Every live metric follows from these.

All moments are seconds on one monotonic clock, counted from the start of the conversation: the moment at which its
first sample was spoken, or its text was due to be sent. Positions in the audio are seconds from its first sample. So a
moment minus a position is a delay, and negative values are meaningful (a word that was guessed before it ended).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from speechmeter.core.quality import NORMALISERS

if TYPE_CHECKING:
    from speechmeter.core.types import Speech

EventKind = Literal["opened", "partial", "final", "audio", "text", "endpoint", "error", "closed"]
EVENT_KINDS: tuple[str, ...] = get_args(EventKind)
TurnEnd = Literal["system", "oracle", "client-vad"]
CLIENT_VADS = ("energy",)
"""Detectors by which a client can end a turn itself."""
Pace = Literal["realtime", "fast"]
TIMEOUT, REFUSED, CONNECTION, SYSTEM, ERROR = "timeout", "refused", "connection", "system", "error"
HTTP_4XX, HTTP_5XX, GARBAGE, ENDED, CUT_OFF = "http-4xx", "http-5xx", "garbage", "ended", "cut-off"
ERROR_KINDS: Mapping[str, str] = {
    TIMEOUT: "no answer in time",
    REFUSED: "no connection",
    CONNECTION: "a connection that was lost",
    HTTP_4XX: "a request that the server did not accept",
    HTTP_5XX: "a server that failed",
    GARBAGE: "an answer that violates the protocol",
    ENDED: "a conversation that the system ended before the end of speech",
    CUT_OFF: "a conversation that was due, but not held because the round broke off",
    SYSTEM: "an error that the system reported itself",
    ERROR: "any other",
}
"""Kinds of errors in an exchange, and what each means."""
CLIENT_BOUND = "client-bound"
"""How the warning begins that sends were late."""
EXCHANGES = "speechmeter-exchanges"
EXCHANGES_VERSION = 2
"""Of an exchange file: gzipped JSON lines, `Conditions` first, then one `Exchange` a line. History: 1, first; 2 adds
`text`, `sound` and `heard`, of systems that speak.
"""
FRAME_S = 0.01
"""Of this length are the stretches of sound whose level an exchange keeps."""
SILENT_DB = -120.0
"""The level of digital silence, and the lowest that is stored."""
CUT = "cut"
"""A note of a `closed` event: the answer was cut short because it was interrupted, and a player drops what it holds."""
WHOLE = "whole"
"""A note of an `audio` event: the sound came in one piece, whatever the number of packets."""


@dataclass(frozen=True, kw_only=True)
class Word:
    """A word of the reference and where it is in the audio."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class Anchors:
    """Where speech is in the audio: properties of the file, the same for every system. None where unknown.

    `source` names who found them: `manifest`, or a detector or aligner with its version.
    """

    speech_start_s: float | None = None
    speech_end_s: float | None = None
    words: tuple[Word, ...] = ()
    source: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data, as in a line of an exchange file."""
        return {
            "speech_start_s": self.speech_start_s,
            "speech_end_s": self.speech_end_s,
            "words": [[word.text, word.start_s, word.end_s] for word in self.words],
            "source": self.source,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Anchors:
        """The inverse of `to_json`."""
        return cls(
            speech_start_s=data.get("speech_start_s"),
            speech_end_s=data.get("speech_end_s"),
            words=tuple(Word(text=text, start_s=start, end_s=end) for text, start, end in data.get("words", ())),
            source=data.get("source", ""),
        )


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that the system said. `moment_s` is when it arrived, not when it was read by a busy consumer.

    `text` of a partial or final is the whole text so far of its `segment`: a partial replaces the one before it, a
    final closes the segment. `start_s` and `end_s` are the span of audio that the system says the event speaks of.

    Of sound, `audio` is the number of bytes of samples: 0 for a header. The span is then that in all sound of the
    answer. A conversation gives the samples themselves as `sound`; they are in no exchange file.
    """

    kind: EventKind
    moment_s: float
    text: str = ""
    segment: int = 0
    start_s: float | None = None
    end_s: float | None = None
    audio: int | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    sound: Speech | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain data; fields at their defaults are left out."""
        data: dict[str, Any] = {"kind": self.kind, "moment_s": self.moment_s}
        data |= {"text": self.text} if self.text else {}
        data |= {"segment": self.segment} if self.segment else {}
        spans = {"start_s": self.start_s, "end_s": self.end_s, "audio": self.audio}
        data |= {name: value for name, value in spans.items() if value is not None}
        return data | ({"notes": dict(self.notes)} if self.notes else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Event:
        """The inverse of `to_json`."""
        return cls(**{name: data[name] for name in _EVENT_FIELDS if name in data})


_EVENT_FIELDS = ("kind", "moment_s", "text", "segment", "start_s", "end_s", "audio", "notes")


@dataclass(frozen=True, kw_only=True)
class Sound:
    """The sound of an answer without its samples: what metrics need of it.

    `levels_db` has the root mean square of each 10 ms in dB of full scale, without the mean of all samples (DC), at
    least `SILENT_DB`. `peak` is the largest sample, 1 at full scale; `clipped` counts samples within 0.1 % of it.
    """

    rate: int
    samples: int
    peak: float
    clipped: int
    levels_db: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.samples / self.rate

    def to_json(self) -> dict[str, Any]:
        """Plain data, as in a line of an exchange file."""
        return {**asdict(self), "levels_db": list(self.levels_db)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sound:
        """The inverse of `to_json`."""
        return cls(**{**data, "levels_db": tuple(data["levels_db"])})


@dataclass(frozen=True, kw_only=True)
class Send:
    """A chunk of audio: when it was due, when its send began and ended, and its span [from_s, to_s) in the audio.

    Of a token of text, the span ends when it is due.
    """

    due_s: float
    sent_s: float
    done_s: float
    from_s: float
    to_s: float


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One conversation: everything that was sent and received. Raw; stored as one line of JSON.

    `stream` is the index of the stream among those that ran at once, `turn` the index of the conversation in it.
    `started_s` is the start on the clock of the whole round, so that conversations can be put side by side. `due_s` is
    when it should have started there, and `began_s` when the client began to open it. `audio_s` is the length of the
    utterance, `silence_s` what followed it. `finish_s` is when `finish()` was due, `finished_s` when it was called;
    None without. `timeout_s` is how long after the end of the audio an answer was awaited. `busy_s` is the time that
    the engine computed, where it can be known. `error` is empty where the conversation ended as it should; `error_kind`
    is one of `ERROR_KINDS`.

    Of a system that is given text, `text` is all of it, and `audio_s` the seconds in which it came. `sound` is what a
    system said, `heard` what the recogniser of the plan understood of it; None without. `interrupt_s` is when the
    system was told to stop speaking; None where it was not. `speech` has the samples while they are in memory; it is in
    no file.
    """

    utterance: str
    reference: str | None = None
    speaker: str = ""
    anchors: Anchors = Anchors()
    audio_s: float
    silence_s: float = 0.0
    stream: int = 0
    turn: int = 0
    due_s: float = 0.0
    started_s: float = 0.0
    began_s: float | None = None
    sends: tuple[Send, ...] = ()
    finish_s: float | None = None
    finished_s: float | None = None
    events: tuple[Event, ...] = ()
    ended_s: float
    timeout_s: float
    busy_s: float | None = None
    error: str = ""
    error_kind: str = ""
    warm_up: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    sound: Sound | None = None
    heard: str | None = None
    interrupt_s: float | None = None
    speech: Speech | None = field(default=None, repr=False, compare=False)

    @property
    def fed_s(self) -> float:
        """Seconds of audio that were to be sent: the utterance and the silence behind it."""
        return self.audio_s + self.silence_s

    def of_kind(self, *kinds: str) -> Sequence[Event]:
        """Events of these kinds in the order of their arrival."""
        return [event for event in self.events if event.kind in kinds]

    def to_json(self) -> dict[str, Any]:
        """Plain data: one line of an exchange file. A send is [due, sent, done, from, to]."""
        data: dict[str, Any] = {
            "utterance": self.utterance, "reference": self.reference, "speaker": self.speaker,
            "anchors": self.anchors.to_json(), "audio_s": self.audio_s, "silence_s": self.silence_s,
            "stream": self.stream, "turn": self.turn, "due_s": self.due_s, "started_s": self.started_s,
            "began_s": self.began_s, "finish_s": self.finish_s, "finished_s": self.finished_s, "ended_s": self.ended_s,
            "timeout_s": self.timeout_s, "busy_s": self.busy_s, "error": self.error, "error_kind": self.error_kind,
            "warm_up": self.warm_up, "notes": dict(self.notes),
        }  # fmt: skip
        data["sends"] = [[one.due_s, one.sent_s, one.done_s, one.from_s, one.to_s] for one in self.sends]
        data["events"] = [event.to_json() for event in self.events]
        spoken = {
            "text": self.text, "sound": None if self.sound is None else self.sound.to_json(),
            "interrupt_s": self.interrupt_s,
        }  # fmt: skip
        return data | {name: value for name, value in spoken.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Exchange:
        """The inverse of `to_json`."""
        plain = {name: value for name, value in data.items() if name not in ("anchors", "sends", "events", "sound")}
        return cls(
            **plain,
            sound=Sound.from_json(data["sound"]) if data.get("sound") is not None else None,
            anchors=Anchors.from_json(data.get("anchors", {})),
            sends=tuple(
                Send(due_s=due, sent_s=sent, done_s=done, from_s=start, to_s=end)
                for due, sent, done, start, end in data.get("sends", ())
            ),
            events=tuple(map(Event.from_json, data.get("events", ()))),
        )


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """How the conversations of one case and round were held, as far as the definitions of metrics depend on it.

    The first line of an exchange file, so that the file explains itself. `normaliser` is the one that texts are scored
    with. From `fixed_cadence` to `speaks` it is what the system declares. `reads` says that it is given text, at
    `text_pace` tokens per second, or at once. Sound is played after `prebuffer_s` seconds of it have come. `heard_by`
    is the recogniser that heard it. `interrupts` says that answers are interrupted.
    """

    pace: Pace
    chunk_s: float
    turn_end: TurnEnd
    quiet_s: float
    streams: int = 1
    arrivals: str = ""
    normaliser: str = NORMALISERS["basic"]
    fixed_cadence: bool = False
    append_only: bool = False
    finishes: bool = True
    endpoints: bool = False
    texts: bool = True
    speaks: bool = False
    reads: bool = False
    text_pace: float | None = None
    prebuffer_s: float = 0.0
    heard_by: str = ""
    interrupts: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data: the first line of an exchange file."""
        return {"format": EXCHANGES, "version": EXCHANGES_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Conditions:
        """The inverse of `to_json`; keys of newer versions are left out."""
        return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data})


class Clock(Protocol):
    """What the time is, and how to wait. The virtual one jumps to the next moment that anybody waits for."""

    def now(self) -> float:
        """Seconds since a fixed moment."""
        ...

    async def sleep_until(self, moment_s: float) -> None:
        """Return at that moment, at once where it has passed."""
        ...


class Conversation(Protocol):
    """One utterance with a system. The engine opens it, sends, finishes, reads events, and closes it.

    Engines that block run in a thread or process of their own behind it, so that `send` never waits for decoding.
    Events carry moments of the clock that the conversation was made with. A `closed` event may say in its notes under
    `busy_s` how long the engine computed.
    """

    async def open(self) -> None:
        """Connect or make a stream. Everything before the first sample."""
        ...

    async def send(self, pcm: Any) -> None:
        """Samples as a float32 array at 16 kHz; of a system that is given text, a piece of it as str."""
        ...

    async def finish(self) -> None:
        """There is no more input."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Events as they arrive, moments on the clock itself; ends when the system will say nothing more."""
        ...

    async def close(self) -> None:
        """Free everything, also after an error."""
        ...


class Interruptible(Conversation, Protocol):
    """A conversation with a system that can be told to stop speaking."""

    async def interrupt(self) -> None:
        """The user speaks: end the answer, and then the events."""
        ...


@dataclass(frozen=True, kw_only=True)
class Live:
    """What a subject answers for live use: how to converse, and what the engine and the reader must know.

    `fixed_cadence` declares that text comes at fixed intervals whatever is said, so that the delay of the first text
    means nothing. `finishes` is False where the protocol has no `finish`. `endpoints` says that it decides by itself
    when a turn ends. `texts` is False where it gives no text, as a voice detector does. `speaks` says that it answers
    with sound, `interrupts` that its conversations are `Interruptible`. `whole` says that it takes whole recordings: as
    fast as possible it is fed no silence behind them.
    `isolation` says what several streams share: `process` (each has a process of its own, in which the subject is
    prepared anew), `thread` (each conversation decodes in a thread of its own), or `shared`. A `virtual` system
    computes nothing: it waits on its clock for what it simulates, and may be driven by one that jumps.
    """

    converse: Callable[[Clock], Conversation]
    """Makes a new conversation, for one utterance."""
    fixed_cadence: bool = False
    append_only: bool = False
    finishes: bool = True
    endpoints: bool = False
    texts: bool = True
    speaks: bool = False
    interrupts: bool = False
    whole: bool = False
    isolation: Literal["process", "thread", "shared"] = "thread"
    virtual: bool = False
    processes: Callable[[], Sequence[int]] | None = None
    """Processes of the system that are not this one, such as those of a server that was started; None without any."""
