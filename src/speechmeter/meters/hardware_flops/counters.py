"""What every back-end to the processor's counters answers, and the choice of the first that counts correctly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from speechmeter.core.errors import SensorError

_TASKS = Path("/proc/self/task")
HIDDEN = "no such event on this processor (a virtual machine hides counters)"
"""The reason for an event that cannot be opened."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Operations done by a piece of work.

    `share` is the share of the time in which the events were on a counter. Below 1 there were more events than
    counters, they took turns, and the operations are scaled up.
    """

    flops: float
    share: float = 1.0


class Counter(Protocol):
    """Open counters on every thread of this process."""

    def count(self, work: Callable[[], object]) -> Counted:
        """Do the work and return what all threads did meanwhile; SensorError when that is not known."""
        ...

    def close(self) -> None:
        """Let go of the counters."""
        ...


class Backend(Protocol):
    """A way to reach the processor's counters."""

    @property
    def name(self) -> str:
        """For records and reasons: `perf`."""
        ...

    def open(self) -> Counter:
        """Open counters on the threads there are now; SensorError with the reason and what to do when it cannot."""
        ...


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The back-end that counts, its counter open; where none does, the reasons of all in one line."""

    name: str = ""
    counter: Counter | None = None
    reason: str = ""


def choose(backends: Sequence[Backend], check: Callable[[Counter], None]) -> Choice:
    """The first back-end whose counter opens and passes `check`, which raises SensorError for one that is wrong."""
    reasons: list[str] = []
    for backend in backends:
        try:
            counter = backend.open()
            try:
                check(counter)
            except BaseException:
                counter.close()
                raise
            return Choice(name=backend.name, counter=counter)
        except SensorError as error:
            reasons.append(f"{backend.name}: {error}")
    return Choice(reason="; ".join(reasons))


def threads() -> frozenset[int]:
    """The threads of this process, as the kernel numbers them. SensorError where there is no /proc."""
    try:
        return frozenset(int(task.name) for task in _TASKS.iterdir())
    except OSError as error:
        raise SensorError(f"the threads of this process cannot be listed ({_TASKS})") from error
