"""What meters need of a recording. Everything that is recorded slows the subject down, so only that is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from speechmeter.core import plugins
from speechmeter.core.protocols import Session


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Operators and, on a GPU, kernels are always recorded; the rest as it is needed.

    `modules` opens a range around every call of a module. `memory` records allocations, `shapes` those of inputs, and
    `stacks` Python's functions. `means` asks for several calls, so that there are figures to average, and `traced` is
    how many of them are to be in a trace.
    """

    modules: bool = False
    memory: bool = False
    shapes: bool = False
    stacks: bool = False
    means: bool = False
    traced: int = 0

    def __or__(self, other: Needs) -> Needs:
        """What both need together."""
        return Needs(
            modules=self.modules or other.modules,
            memory=self.memory or other.memory,
            shapes=self.shapes or other.shapes,
            stacks=self.stacks or other.stacks,
            means=self.means or other.means,
            traced=max(self.traced, other.traced),
        )

    def words(self, *, cuda: bool) -> list[str]:
        """What is recorded, for the notes of a record."""
        chosen = {
            "CPU": True,
            "CUDA": cuda,
            "modules": self.modules,
            "allocations": self.memory,
            "shapes": self.shapes,
            "Python stacks": self.stacks,
        }
        return [word for word, recorded in chosen.items() if recorded]


@runtime_checkable
class ReadsRecording(Protocol):
    """A meter that reads the recording which all such meters share."""

    def needs(self, session: Session) -> Needs:
        """What must be recorded for it in this session."""
        ...


def needs_of(session: Session) -> Needs:
    """What all meters of the case need together, also those that run in its first round alone.

    So all rounds are recorded alike: another recording takes another time, and rounds are averaged.
    """
    wanted = Needs()
    for meter in map(plugins.meter, session.case.meters):
        if isinstance(meter, ReadsRecording) and meter.unavailable(session.case) is None:
            wanted |= meter.needs(session)
    return wanted
