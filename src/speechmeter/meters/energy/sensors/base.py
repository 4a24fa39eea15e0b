"""What every sensor answers, and what looking for sensors gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Literal, Protocol, TypeVar

Domain = Literal["gpu", "cpu", "system"]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One look at a sensor: cumulative joules or momentary watts, and when, by `time.monotonic()`."""

    at_s: float
    energy_j: float | None = None
    power_w: float | None = None


class Sensor(Protocol):
    """A source of readings. `read` raises SensorError when it cannot; it never returns a stand-in."""

    @property
    def name(self) -> str:
        """For records: `NVML cuda:0`."""
        ...

    @property
    def domain(self) -> Domain:
        """What it measures."""
        ...

    @property
    def whole(self) -> bool:
        """Whether it is part of its domain's total; a side rail is not, and gets a row of its own."""
        ...

    @property
    def counter(self) -> bool:
        """True: readings hold cumulative joules. False: momentary watts."""
        ...

    @property
    def period_s(self) -> float:
        """How often it is worth reading."""
        ...

    def read(self) -> Reading:
        """One reading, as of now."""
        ...

    def close(self) -> None:
        """Let go of whatever it holds."""
        ...


@dataclass(frozen=True, kw_only=True)
class Found:
    """Sensors of one source; where there is none, the reason and the way out."""

    sensors: tuple[Sensor, ...] = ()
    reason: str = ""


def stamped(read: Callable[[], T]) -> tuple[float, T]:
    """What `read` returns, with the middle of the time it took."""
    before_s = monotonic()
    value = read()
    return (before_s + monotonic()) / 2, value
