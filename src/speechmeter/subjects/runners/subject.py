"""`runner:COMMAND`: a model that is a program, such as one in C++, Rust or JavaScript."""

from __future__ import annotations

import os
import shlex
import shutil
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import SOUND, TEXT, Installed, Prepared
from speechmeter.core.types import Batch, Case, Speech, Stage
from speechmeter.subjects.common import RATE, waves
from speechmeter.subjects.runners.channel import Channel
from speechmeter.subjects.runners.files import Exchanged
from speechmeter.subjects.runners.protocol import (
    BASE64,
    F32,
    WAV,
    Answer,
    Hello,
    Talk,
    TtsBenchTalk,
    as_json,
    talk_of,
)
from speechmeter.subjects.servers.sound import float32, pcm16, wav

_FORM = "write runner:./my-runner"


class RunnerSubject:
    """A program that answers lines of JSON; see `protocol`."""

    summary = "your own program in any language, spoken to by lines of JSON: runner:./my-runner"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = (
        Option(name="args", kind=(list, str), help="arguments of the program: a list, or a text as in a shell"),
        Option(name="environ", kind=dict, help="environment variables of the program"),
        Option(name="settings", kind=dict, help="anything that the program is told in `load`, such as a model"),
        Option(name="start_timeout", kind=float, default=120.0, above=0,
               help="maximum seconds until the program says hello, and again until it has loaded"),
        Option(name="timeout", kind=float, default=600.0, above=0, help="maximum seconds until an answer"),
    )  # fmt: skip
    runs_code = True
    takes: tuple[str, ...] = (SOUND, TEXT)

    def installed(self) -> Installed:
        """Always: whether the program is there is asked of each."""
        return Installed(version="protocol version 1")

    def check(self, case: Case) -> None:
        """The program must exist."""
        command_of(case)

    def unavailable(self, case: Case) -> str | None:
        """A program can only be asked what it can do when it runs."""
        if case.axes.compile:
            return "a runner is not a torch module, so torch.compile cannot be applied"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Start the program and have it load its model."""
        options = {option.name: option.default for option in self.options} | dict(case.subject.options)
        channel = Channel(command_of(case), {str(key): str(one) for key, one in (options["environ"] or {}).items()})
        try:
            hello = channel.read(options["start_timeout"], "waiting for `hello`")
            talk = talk_of(channel, hello, options["timeout"])
            order = {
                "device": device, "dtype": case.axes.dtype, "threads": case.axes.threads, "cores": case.axes.cores,
                "rate": RATE, "seed": case.protocol.seed, "settings": options["settings"] or {},
            }  # fmt: skip
            said, notes = talk.load(hello, order, options["start_timeout"])
            (kind,) = plugins.fed_by(case).kinds or said.takes[:1]
            if wrong := _unfit(said, case, kind):
                raise channel.failed(wrong, fix="measure what it can, or change its `hello`")
        except BaseException:
            channel.end(0.0)
            raise
        return Runner(talk=talk, hello=said, kind=kind, files=Exchanged()).prepared(notes)


def command_of(case: Case) -> tuple[str, ...]:
    """The program with its whole path, and its arguments. SubjectError where there is none. No shell is involved."""
    source, given = case.subject.source.strip(), case.subject.options.get("args") or ()
    words = [source] if Path(source).is_file() else _words(source, None)
    if not words:
        raise SubjectError("runner: names no program", fix=_FORM)
    here = Path(words[0]).is_file()
    program = shutil.which(os.path.abspath(words[0]) if here else words[0])  # noqa: PTH100 - a link keeps its name
    if program is None and here:
        raise SubjectError(f"{words[0]!r} is not a program", fix=f"chmod +x {shlex.quote(words[0])}")
    if program is None:
        raise SubjectError(f"there is no program {words[0]!r}", fix="install it, or write its path: runner:./my-runner")
    more = _words(given, "args") if isinstance(given, str) else [str(word) for word in given]
    return (os.path.abspath(program), *words[1:], *more)  # noqa: PTH100


def _words(text: str, key: str | None) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise SubjectError(f"the command cannot be read: {error}", key=key, fix="close every quote") from None


def _unfit(hello: Hello, case: Case, kind: str) -> str | None:
    """Why a runner cannot be measured as the case asks."""
    device = case.device.kind
    if kind not in hello.takes:
        return f"the runner takes {' and '.join(hello.takes)}, and it is fed {kind}"
    if device not in hello.devices:
        return f"the runner runs on {' and '.join(hello.devices)}, not on {device}"
    if case.axes.dtype not in hello.dtypes:
        return f"the runner computes in {' and '.join(hello.dtypes)}, not in {case.axes.dtype}"
    return None


Feed = tuple[str, ...]
"""Items that go to a runner in one line, each as JSON."""


@dataclass(kw_only=True)
class Runner:
    """A runner that has loaded its model, as a chain of stages."""

    talk: Talk | TtsBenchTalk
    hello: Hello
    kind: str
    files: Exchanged
    latest: dict[str, float] = field(default_factory=dict)
    """The runner's own seconds of the latest call."""

    def prepared(self, notes: Sequence[str]) -> Prepared:
        """`copy` hands the sound over, `model` asks and waits; reading sound that was made is outside the clock."""
        stages = [
            Stage(name="copy", fn=self._copy),
            Stage(name="model", fn=self._model_by_parts if self.hello.parts else self._model),
        ]
        if self.hello.parts:
            stages.append(Stage(name="result", fn=self._whole, clocked=False))
        if self.hello.gives == SOUND:
            stages.append(Stage(name="read", fn=self._read, clocked=False))
        several = "items one after another" if self.hello.batch == 1 else f"up to {self.hello.batch} items at a time"
        return Prepared(
            stages=tuple(stages),
            close=self._close,
            notes=(f"runner {self.hello.name or 'without a name'}: a program of its own, {several}", *notes),
            data_dependent=self.hello.gives == TEXT,
            inside=lambda: self.latest,
        )

    def _copy(self, batch: Batch) -> list[Feed]:
        """What is said of each item, its sound written where the runner can read it."""
        items = [self._item(index, one) for index, one in enumerate(self._inputs(batch))]
        size = self.hello.batch
        return [tuple(items[first : first + size]) for first in range(0, len(items), size)]

    def _inputs(self, batch: Batch) -> Sequence[Any]:
        return waves(batch) if self.kind == SOUND else batch.data

    def _item(self, index: int, given: Any) -> str:
        made = {"out": str(self.files.made(index))} if self.hello.gives == SOUND else {}
        if self.kind == TEXT:
            return as_json({"text": given, **made} if isinstance(given, str) else {"ids": list(given), **made})
        seconds = len(given) / RATE
        if self.hello.sound == BASE64:
            return as_json({"samples": b64encode(float32(given)).decode(), "seconds": seconds, **made})
        data, suffix = (wav(pcm16(given)), ".wav") if self.hello.sound == WAV else (float32(given), f".{F32}")
        return as_json({"path": str(self.files.write(index, suffix, data)), "seconds": seconds, **made})

    def _model(self, feeds: Sequence[Feed]) -> Any:
        return self._whole([self.talk.feed(feed, len(feed), self.hello.gives) for feed in feeds])

    def _model_by_parts(self, feeds: Sequence[Feed]) -> Iterator[Answer]:
        for feed in feeds:
            yield from self.talk.parts(feed, len(feed), self.hello.gives)

    def _whole(self, answers: Sequence[Answer]) -> Any:
        """The texts of a call; of sound, how many items there are files of; None where nothing was made."""
        results = [answer for answer in answers if not answer.is_part]
        self.latest = _added([answer.seconds for answer in results])
        if self.hello.gives == SOUND:
            return sum(answer.count for answer in results)
        return [text for answer in results for text in answer.texts] or None

    def _read(self, count: int) -> list[Speech]:
        return [self.files.read(index) for index in range(count)]

    def _close(self) -> None:
        self.talk.end()
        self.files.close()


def _added(given: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sum over the answers of a call, of what all of them report."""
    names = [name for name in (given[0] if given else ()) if all(name in one for one in given)]
    return {name: sum(one[name] for one in given) for name in names}
