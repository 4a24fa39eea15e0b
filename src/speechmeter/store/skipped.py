"""Lines of a run that are damaged: left out of what is read, and reported wherever the rest is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

KEPT = 100
"""So many reasons are kept; a file of millions of damaged lines takes no more memory than that."""
_NAMED = 5
"""So many lines are named in a note, the others are counted."""
_SHORT = 120


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """The lines of a file that were left out. `reasons` has the first of them, by their numbers from 1."""

    path: Path
    count: int
    reasons: Mapping[int, str]
    read: int

    @property
    def note(self) -> str:
        """One line for a person: how many lines, which, and why."""
        named = [f"line {number}: {_shortened(reason)}" for number, reason in list(self.reasons.items())[:_NAMED]]
        others = [f"and {self.count - _NAMED} more"] if self.count > _NAMED else []
        outcome = f"{self.count} of {self.count + self.read} lines cannot be read and {_were(self.count)} skipped"
        return f"{self.path}: {outcome} ({'; '.join([*named, *others])})"

    @property
    def first(self) -> str:
        """The first of them as `file:line: reason`."""
        number, reason = next(iter(self.reasons.items()))
        return f"{self.path}:{number}: {reason}"


class Skipping:
    """Counts the lines of a file that cannot be read."""

    def __init__(self) -> None:
        self.count = 0
        self._reasons: dict[int, str] = {}

    def skip(self, number: int, reason: str) -> None:
        """Leave a line out."""
        self.count += 1
        if len(self._reasons) < KEPT:
            self._reasons[number] = reason

    def of(self, path: Path, read: int) -> Skipped:
        """What was left out of a file, beside so many lines that were read."""
        return Skipped(path=path, count=self.count, reasons=self._reasons, read=read)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _shortened(reason: str) -> str:
    return reason if len(reason) <= _SHORT else f"{reason[:_SHORT]}…"
