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
├── DisagreementError       an implementation that does not compute what it claims to
├── NeedsValuesError        a model on shapes alone decides by a value that shapes do not give
└── StoppedRun              a run that ended before it was done; finished records are kept
    ├── CannotGoOnError     it has to end: no room for a record, a device lost (exit 1)
    └── InterruptedRun      it was stopped from outside, or no machine is left (exit 130)

SkippedLinesWarning is no error: a run was read without the lines of it that are damaged.
"""

from __future__ import annotations

from pathlib import Path


class SpeechmeterError(Exception):
    """Base of every error that Speechmeter raises on purpose."""


class InputError(SpeechmeterError):
    """Bad input: what is wrong, where it stands, and the way out, in one line.

    `where` is `file:line` or the flag; `fix` says what to do instead.
    """

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        self.what = " ".join(what.split())
        self.where = where
        self.fix = " ".join(fix.split()) if fix else None
        super().__init__(self._line())

    def _line(self) -> str:
        place = f"{self.where}: " if self.where else ""
        way_out = f"; {self.fix}" if self.fix else ""
        return f"{place}{self.what}{way_out}"


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
    """An implementation does not compute what it claims to: its cost would be that of something else."""


class NeedsValuesError(SpeechmeterError):
    """A model that runs on shapes alone decides by a value that shapes do not give."""


class StoppedRun(SpeechmeterError):  # noqa: N818 - an interruption is not an error of anyone's
    """A run ended before it was done; every finished record is kept, and `--resume` continues from there.

    `finished` says how far it came, `run` is its directory where there is one, and `resume_with` are flags of
    `speechmeter run` that it needs to continue, beside those it was begun with.
    """

    def __init__(self, what: str, *, finished: str = "", resume_with: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.finished = finished
        self.resume_with = resume_with
        self.run: Path | None = None

    def __str__(self) -> str:
        kept = f"{self.finished} in {self.run}" if self.run is not None and self.finished else self.finished
        return "; ".join(text for text in (self.what, kept) if text)


class CannotGoOnError(StoppedRun):
    """The run has to end: there is no room for a record, or a device is lost."""


class InterruptedRun(StoppedRun):
    """The run was stopped from outside, or no machine is left for it."""


class SkippedLinesWarning(UserWarning):
    """Lines of a run are damaged and were left out of what was read: how many, which, and why."""
