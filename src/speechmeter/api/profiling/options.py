"""What a profile holds and which steps it is taken of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from speechmeter.core.errors import InputError

Phase = Literal["wait", "warmup", "active", "done"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Steps that are let pass, steps run under a profiler that is thrown away, steps that are kept; so many times."""

    wait: int = 0
    warmup: int = 0
    active: int = 3
    repeat: int = 1

    def __post_init__(self) -> None:
        if min(self.wait, self.warmup) < 0 or min(self.active, self.repeat) < 1:
            raise InputError(
                f"schedule: wait {self.wait}, warmup {self.warmup}, active {self.active}, repeat {self.repeat} "
                "records nothing",
                fix="wait and warmup are 0 or more, active and repeat 1 or more",
            )

    def phase(self, step: int) -> Phase:
        """What happens to a step, counted from 0."""
        cycle = self.wait + self.warmup + self.active
        if step >= cycle * self.repeat:
            return "done"
        place = step % cycle
        if place < self.wait:
            return "wait"
        return "warmup" if place < self.wait + self.warmup else "active"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Time by module, operator and kind is always there; the rest as asked for.

    `flops` are counted in a warm-up step, because counting would slow down the steps whose time is told. Files go to
    `folder` after each recording, where there is one.
    """

    memory: bool = False
    python_stacks: bool = False
    flops: bool = False
    schedule: Schedule = Schedule()
    folder: Path | None = None


PLAIN = Options()
ANALYST = Options(memory=True, python_stacks=True, flops=True)
"""Everything."""
OPTIMISER = Options(memory=True)
"""Memory and modules."""
