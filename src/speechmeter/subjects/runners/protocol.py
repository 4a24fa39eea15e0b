"""What is said to a runner and what it answers: our own protocol, version 1, and that of tts-bench.

runner   {"type": "hello", "version": 1, "name": "mine 1.0"}
we       {"type": "load", "threads": 2, …}
runner   {"type": "loaded"}
we       {"type": "feed", "id": 1, "items": [{"path": "/dev/shm/…/0.wav", "seconds": 1.0}]}
runner   {"type": "result", "id": 1, "texts": ["one two"]}
we       {"type": "bye"}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, TypeGuard

from speechmeter.core.printable import one_line
from speechmeter.core.protocols import SOUND, TEXT
from speechmeter.subjects.runners.channel import Channel, RunnerError

VERSION = 1
WAV, F32, BASE64 = "wav", "f32", "base64"
"""How a runner gets sound: the path of a WAV file with 16-bit samples, that of a file with float32 samples, or such
samples in the line."""
NOTHING = "nothing"
_MOST_NAME = 80
_MOST_MESSAGE = 300


@dataclass(frozen=True, kw_only=True)
class Hello:
    """What a runner says it is: its name, what it takes and gives, how it gets sound, and how many items at a time.

    With `parts` it says something before each result.
    """

    name: str = ""
    takes: tuple[str, ...] = (SOUND,)
    gives: str = TEXT
    sound: str = WAV
    batch: int = 1
    parts: bool = False
    devices: tuple[str, ...] = ("cpu",)
    dtypes: tuple[str, ...] = ("float32",)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back for `count` items: texts, and the seconds that the runner says it took, in all and by stage.

    A part is what came before that.
    """

    count: int = 1
    texts: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    is_part: bool = False


TOTAL = "total"
"""The name of the seconds of a whole answer."""


class Talk:
    """A runner that speaks our protocol. Every fault of it raises RunnerError and ends it."""

    def __init__(self, channel: Channel, timeout_s: float) -> None:
        self._channel = channel
        self._timeout_s = timeout_s
        self._id = 0

    def load(self, hello: Mapping[str, Any], order: Mapping[str, Any], within_s: float) -> tuple[Hello, list[str]]:
        """Check what the runner is, have it load its model; what it is, and what it wants to be noted."""
        found = self._hello(hello)
        self._send({"type": "load", **order}, "after `load`")
        loaded = self._receive(within_s, "loaded", "waiting for `loaded`")
        notes = loaded.get("notes", [])
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            raise self._channel.failed(f"`notes` of `loaded` must be a list of texts, not {_shown(notes)}")
        return found, [one_line(note)[:_MOST_MESSAGE] for note in notes]

    def feed(self, items: Sequence[str], count: int, gives: str) -> Answer:
        """Feed items, each as JSON, and wait for the result."""
        *_, answer = self.parts(items, count, gives)
        return answer

    def parts(self, items: Sequence[str], count: int, gives: str) -> Iterator[Answer]:
        """The same with what the runner says before the result: a text for each part."""
        self._id += 1
        waiting = f"waiting for `result` {self._id}"
        self._channel.write(
            f'{{"type":"feed","id":{self._id},"items":[{",".join(items)}]}}\n'.encode(), self._timeout_s, waiting
        )
        while True:
            found = self._receive(self._timeout_s, "result", waiting, also="part")
            if found.get("id") != self._id:
                raise self._channel.failed(
                    f"the runner answered {_shown(found.get('id'))} while {self._id} was asked for",
                    fix="answer every `feed` once, in order, with the `id` that it has",
                )
            if found["type"] == "result":
                texts = self._texts(found, count) if gives == TEXT else ()
                yield Answer(count=count, texts=texts, seconds=self._seconds(found))
                return
            yield Answer(texts=(self._text(found.get("text", "")),), is_part=True)

    def end(self) -> None:
        """Say goodbye and end it."""
        if not self._channel.has_ended:
            with suppress(RunnerError):
                self._send({"type": "bye"}, "after `bye`")
        self._channel.end()

    def _hello(self, found: Mapping[str, Any]) -> Hello:
        version = found.get("version")
        if version != VERSION or isinstance(version, bool):
            raise self._channel.failed(
                f"the runner speaks version {_shown(version)} of the protocol, and this is version {VERSION}",
                fix=f'print {{"type": "hello", "version": {VERSION}}}, or use the Speechmeter that it was made for',
            )
        hello = Hello(
            name=one_line(str(found.get("name", "")))[:_MOST_NAME],
            takes=self._words(found, "takes", Hello.takes),
            gives=found.get("gives", TEXT),
            sound=found.get("sound", WAV),
            batch=found.get("batch", 1),
            parts=found.get("parts") is True,
            devices=self._words(found, "devices", Hello.devices),
            dtypes=self._words(found, "dtypes", Hello.dtypes),
        )
        wrong = next(
            (
                f"`{key}` of `hello` must be {' or '.join(allowed)}, not {_shown(value)}"
                for key, values, allowed in (
                    ("takes", hello.takes, (SOUND, TEXT)),
                    ("gives", (hello.gives,), (TEXT, SOUND, NOTHING)),
                    ("sound", (hello.sound,), (WAV, F32, BASE64)),
                )
                for value in values
                if value not in allowed
            ),
            None,
        )
        if not isinstance(hello.batch, int) or isinstance(hello.batch, bool) or hello.batch < 1:
            wrong = f"`batch` of `hello` must be a whole number of at least 1, not {_shown(hello.batch)}"
        if wrong:
            raise self._channel.failed(wrong)
        return hello

    def _words(self, found: Mapping[str, Any], key: str, usual: tuple[str, ...]) -> tuple[str, ...]:
        words = found.get(key, list(usual))
        words = [words] if isinstance(words, str) else words
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise self._channel.failed(f"`{key}` of `hello` must be a list of words, not {_shown(words)}")
        return tuple(words)

    def _send(self, message: Mapping[str, Any], waiting_for: str) -> None:
        self._channel.write(as_json(message).encode() + b"\n", self._timeout_s, waiting_for)

    def _receive(self, within_s: float, kind: str, waiting_for: str, also: str = "") -> dict[str, Any]:
        found = self._channel.read(within_s, waiting_for)
        if found.get("type") == "error":
            message = one_line(str(found.get("message", "without a message")))[:_MOST_MESSAGE]
            raise self._channel.failed(f"the runner reports an error: {message}")
        if found.get("type") not in (kind, also):
            raise self._channel.failed(f"the runner said {_shown(found.get('type'))} ({waiting_for})")
        return found

    def _texts(self, found: Mapping[str, Any], count: int) -> tuple[str, ...]:
        texts = found.get("texts")
        if not isinstance(texts, list) or len(texts) != count:
            raise self._channel.failed(f"`texts` must be a list of {count} text(s), not {_shown(texts)}")
        return tuple(self._text(text) for text in texts)

    def _text(self, text: Any) -> str:
        if not isinstance(text, str):
            raise self._channel.failed(f"a text must be a JSON string, not {_shown(text)}")
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair: no file can hold it
            raise self._channel.failed(f"a text is not valid Unicode: {_shown(text)}") from None
        return text

    def _seconds(self, found: Mapping[str, Any]) -> dict[str, float]:
        """The runner's own seconds: `seconds` in all, `stages` by name."""
        stages = found.get("stages", {})
        given = {} if found.get("seconds") is None else {TOTAL: found["seconds"]}
        if not isinstance(stages, dict):
            raise self._channel.failed(f"`stages` must be a mapping from names to seconds, not {_shown(stages)}")
        given |= {one_line(name)[:_MOST_NAME]: seconds for name, seconds in stages.items() if name != TOTAL}
        for name, seconds in given.items():
            if not is_seconds(seconds):
                raise self._channel.failed(f"the seconds of {name!r} must be at least 0, not {_shown(seconds)}")
        return {name: float(seconds) for name, seconds in given.items()}


class TtsBenchTalk:
    """A runner of tts-bench in its mode `--stdin`: {"ready": true}, then {"text", "out"} and {"ok", "gen_s", …}."""

    def __init__(self, channel: Channel, timeout_s: float) -> None:
        self._channel = channel
        self._timeout_s = timeout_s

    def load(self, hello: Mapping[str, Any], order: Mapping[str, Any], within_s: float) -> tuple[Hello, list[str]]:
        """It had loaded its model before it said that it is ready."""
        everything = (str(order.get("device", "cpu")),)
        note = "runner of tts-bench: threads, device and number format are what its own arguments say"
        return Hello(name="tts-bench", takes=(TEXT,), gives=SOUND, devices=everything), [note]

    def feed(self, items: Sequence[str], count: int, gives: str) -> Answer:
        """One text, which becomes a file."""
        (item,) = items
        self._channel.write(item.encode() + b"\n", self._timeout_s, "waiting for an answer")
        found = self._channel.read(self._timeout_s, "waiting for an answer")
        if found.get("ok") is not True:
            message = one_line(str(found.get("error", "without a message")))[:_MOST_MESSAGE]
            raise self._channel.failed(f"the runner reports an error: {message}")
        first_ms, whole_s = found.get("ttfa_ms"), found.get("gen_s")
        seconds = {TOTAL: float(whole_s)} if is_seconds(whole_s) else {}
        if is_seconds(first_ms):
            seconds["first sound"] = float(first_ms) / 1000
        return Answer(seconds=seconds)

    def parts(self, items: Sequence[str], count: int, gives: str) -> Iterator[Answer]:
        """It says nothing before its answer."""
        yield self.feed(items, count, gives)

    def end(self) -> None:
        """It ends with its input."""
        self._channel.end()


def talk_of(channel: Channel, hello: Mapping[str, Any], timeout_s: float) -> Talk | TtsBenchTalk:
    """What the first line of a runner begins."""
    if hello.get("ready") is True and "type" not in hello:
        return TtsBenchTalk(channel, timeout_s)
    if hello.get("ok") is False and "type" not in hello:  # tts-bench: loading failed
        message = one_line(str(hello.get("error", "without a message")))[:_MOST_MESSAGE]
        raise channel.failed(f"the runner reports an error: {message}")
    if hello.get("type") != "hello":
        raise channel.failed(
            f"the runner's first line is not its `hello`: {_shown(dict(hello))}",
            fix=f'print {{"type": "hello", "version": {VERSION}}} first',
        )
    return Talk(channel, timeout_s)


def as_json(value: Any) -> str:
    """One line that programs without a JSON library can search: no spaces, no escapes beyond those that must be."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def is_seconds(value: Any) -> TypeGuard[float]:
    """Whether a value of a runner can be a time."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0


def _shown(value: Any) -> str:
    text = one_line(json.dumps(value, default=str))
    return text if len(text) <= _MOST_NAME else text[: _MOST_NAME - 1] + "…"
