"""The one exception tree. The library raises these; only `speechmeter.cli` prints and exits.

SpeechmeterError
├── InputError              something the user gave cannot be used (exit 2, nothing written)
│   ├── PlanError           a key, a value or a flag of a plan
│   │   └── UnavailableError   a plan that is sound, and nothing of it can be had on this machine
│   ├── SubjectError        a model that does not exist or may not be loaded
│   ├── DeviceError         a device, core or limit that this machine does not have
│   └── RunDirError         a run directory that is taken, missing or not ours
├── StoreError              a record that cannot be read, or could not be once it is written
├── SensorError             a sensor, a log of one, or a hardware counter that cannot be read
├── DisagreementError       an implementation whose result is not that of its name
├── ConversationError       a conversation with a system that failed; it becomes part of its exchange
├── NeedsValuesError        a model on shapes alone decides by a value that shapes do not give
└── StoppedRun              a run that ended before it was done; finished records are kept
    ├── CannotGoOnError     it has to end: no room for a record, a device lost (exit 1)
    └── InterruptedRun      it was stopped from outside, or no machine is left (exit 130)

SkippedLinesWarning is no error: a run was read without the lines of it that are damaged.

A message names an option of ours by its key in backticks, with a value or without: `resume`, `launcher: subprocess`.
Whoever shows the message spells it as its reader would type it (`--resume`, `resume=True`). A whole command is written
by `command_line`. So no message holds a flag, and none is rewritten.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, ParamSpec, TypeVar

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_CANNOT_TELL, EXIT_INTERRUPTED = 1, 2, 3, 130

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")

Spell = Callable[[str, str], str]
"""How a key, with its value or with an empty text, is typed by whoever reads a message."""


def as_plan(key: str, value: str) -> str:
    """A key as a plan has it: `launcher: subprocess`."""
    return f"`{key}: {value}`" if value else f"`{key}`"


def as_flag(key: str, value: str) -> str:
    """A key as a flag of a command: `--launcher subprocess`."""
    return f"--{key.replace('_', '-')} {value}".rstrip()


def as_python(key: str, value: str) -> str:
    """A key as an argument of a call in Python: `launcher="subprocess"`, `limits={"memory_gib": 8}`."""
    if not value:
        return f"`{key}`"
    if value.lower() in {"true", "false"}:
        plain = value.capitalize()
    elif value[0] in "[{":
        plain = _BARE_WORD.sub(
            lambda found: found[0].capitalize() if found[0] in {"true", "false"} else f'"{found[0]}"', value
        )
    else:
        plain = value if re.fullmatch(r"[\d.]+", value) else f'"{value}"'
    outer, _, inner = key.partition(".")
    return f'`{outer}={{"{inner}": {plain}}}`' if inner else f"`{outer}={plain}`"


_BARE_WORD = re.compile(r"(?<![\w.'\"])[A-Za-z_][\w.*-]*(?::[\w.-]+)*")
_LINE_OF_FILE = re.compile(r":\d+$")
_KEY = re.compile(r"`([a-z][a-z0-9_]*(?:\.[a-z_]+)*)(?:: ([^`]+))?`")


def spelt(text: str, spell: Spell) -> str:
    """A message with every key in backticks written by `spell`."""
    return _KEY.sub(lambda found: spell(found[1], found[2] or ""), text)


def command_line(command: str, *arguments: str, **options: str | bool) -> str:
    """A command that a message proposes: `("show", "RUN", metric="rtf")` is `speechmeter show RUN --metric rtf`."""
    words = ["speechmeter", command, *arguments]
    for key, value in options.items():
        words += [f"--{key.replace('_', '-')}", *([] if value is True else [str(value)])]
    return " ".join(words)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a value was given: `where` is `file:line`; a key that was given by a flag or in Python has none."""

    where: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        return self.where or f"`{self.key}`"


class SpeechmeterError(Exception):
    """Base of all errors that Speechmeter raises on purpose: what is wrong, where, and what to do.

    `where` is `file:line`, a path, a name, or the `Origin` of a value. `key` is the option or the key of a plan that
    the error is about. `where`, `key` and `fix` may be missing.
    """

    exit_code: ClassVar[int] = EXIT_BAD_INPUT

    def __init__(
        self, reason: str, *, where: str | Origin | None = None, key: str | None = None, fix: str | None = None
    ) -> None:
        self.reason = " ".join(reason.split())
        self.where = where.where if isinstance(where, Origin) else where
        self.key = key or (where.key if isinstance(where, Origin) else None)
        self.fix = " ".join(fix.split()) if fix else None
        self.spell: Spell = as_plan
        super().__init__(reason)

    def message(self, spell: Spell = as_plan) -> str:
        """The error in one line, its keys written by `spell`."""
        where = self.where or (spell(self.key, "") if self.key else "")
        text = "; ".join(part for part in (self.reason, self.fix) if part)
        return f"{where}: {spelt(text, spell)}" if where else spelt(text, spell)

    def __str__(self) -> str:
        return self.message(self.spell)


def for_python(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The function, whose errors print keys as arguments of a call in Python. A line of a plan keeps its keys."""

    @functools.wraps(function)
    def worded(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        try:
            return function(*args, **kwargs)
        except SpeechmeterError as error:
            if not (error.where and _LINE_OF_FILE.search(error.where)):
                error.spell = as_python
            raise

    return worded


class InputError(SpeechmeterError):
    """Bad input: something that the user gave cannot be used. Nothing has been written."""


class PlanError(InputError):
    """A key, a value or a flag of a plan cannot be used."""


class UnavailableError(PlanError):
    """The plan is sound, and nothing of it can be had on this machine: a package is missing, say."""


class SubjectError(InputError):
    """A model does not exist or may not be loaded."""


class DeviceError(InputError):
    """A device, core or limit that this machine does not have."""


class RunDirError(InputError):
    """A run directory is taken, missing, or not one of ours."""


class StoreError(SpeechmeterError):
    """A record cannot be read, or could not be once it is written."""


class SensorError(SpeechmeterError):
    """A sensor, a log of one, or a hardware counter cannot be read: the reason in one line, with the way out."""


class DisagreementError(SpeechmeterError):
    """An implementation does not compute what its name says, so its cost would be that of something else."""


class ConversationError(SpeechmeterError):
    """A conversation with a system failed. `kind` is the kind of its exchange: one of `core.live.ERROR_KINDS`."""

    def __init__(self, reason: str, *, kind: str) -> None:
        super().__init__(reason)
        self.kind = kind


class NeedsValuesError(SpeechmeterError):
    """A model that runs on shapes alone decides by a value that shapes do not give."""


class StoppedRun(SpeechmeterError):  # noqa: N818 - an interruption is not an error of anyone's
    """A run ended before it was done; every finished record is kept, and resuming continues from there.

    `finished` says how far it came, `run` is its directory where there is one, and `resume_with` are options of a run
    that it needs to continue, beside those it was begun with.
    """

    exit_code = EXIT_FAILED

    def __init__(self, reason: str, *, finished: str = "", resume_with: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.finished = finished
        self.resume_with = dict(resume_with or {})
        self.run: Path | None = None

    def message(self, spell: Spell = as_plan) -> str:
        """What happened, and what of the run is kept."""
        kept = f"{self.finished} in {self.run}" if self.run is not None and self.finished else self.finished
        return "; ".join(text for text in (super().message(spell), kept) if text)


class CannotGoOnError(StoppedRun):
    """The run has to end: there is no room for a record, or a device is lost."""


class InterruptedRun(StoppedRun):
    """The run was stopped from outside, or no machine is left for it."""

    exit_code = EXIT_INTERRUPTED


class SkippedLinesWarning(UserWarning):
    """Lines of a run are damaged and were left out of what was read: how many, which, and why."""
