"""How far this process's resident size rises over a piece of work: by the kernel's mark, by rusage, or by sampling."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from speechmeter.core.machine import kib_field, resident_bytes

Work = Callable[[], object]
Size = Callable[[], int | None]

CLEAR_REFS = Path("/proc/self/clear_refs")
RESET_HIGH_WATER_MARK = "5"
"""What is written to `clear_refs`."""
_SAMPLING_INTERVAL_S = 0.001


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How large the process was, how many bytes were added at most, how large it became, and what bounds either.

    `peak_bytes` is None where it cannot be read. A caveat says that the readings are only a bound. `started_bytes` is
    the part of the peak that belongs to processes that this one started.
    """

    growth_bytes: int
    before_bytes: int = 0
    peak_bytes: int | None = None
    started_bytes: int = 0
    caveat: str = ""


class Probe(Protocol):
    """One way to read the growth."""

    source: str
    """What a measurement names as its source."""
    restarts: bool
    """Whether a later, smaller piece of work reads right after a larger one, as stages need."""

    def read(self, work: Work) -> Reading:
        """Do the work and return how far the resident size rose over what it was before."""
        ...


class HighWaterMark:
    """The kernel's own mark (VmHWM), reset before the work: exact however short a peak is."""

    source = "VmHWM"
    restarts = True

    def __init__(self, clear_refs: Path = CLEAR_REFS) -> None:
        self._clear_refs = clear_refs

    def usable(self) -> bool:
        """Whether the mark can be reset. Tried by doing so: permission bits say yes to root on a read-only /proc."""
        try:
            self._clear_refs.write_text(RESET_HIGH_WATER_MARK)
        except OSError:
            return False
        return _mark_bytes() is not None

    def read(self, work: Work) -> Reading:
        """Exact. Raises OSError where /proc has no size."""
        before = resident_bytes()
        self._clear_refs.write_text(RESET_HIGH_WATER_MARK)
        work()
        peak = _mark_bytes()
        if peak is None or before is None:
            raise OSError("VmHWM or VmRSS is missing from /proc/self/status")
        return Reading(growth_bytes=max(0, peak - before), before_bytes=before, peak_bytes=peak)


class MaxResident:
    """`ru_maxrss`, the highest size since the process began. It cannot be reset, so it may be older than the work.

    Where it rises during the work it is the work's own peak, and the reading exact.
    """

    source = "ru_maxrss"
    restarts = False

    def __init__(self, peak: Size, resident: Size = resident_bytes) -> None:
        self._peak = peak
        self._resident = resident

    def read(self, work: Work) -> Reading:
        """Exact when the mark rises; else a bound, and the caveat says which."""
        before, peak_before = self._resident(), self._peak() or 0
        work()
        peak = self._peak() or 0
        if before is None:
            return Reading(
                growth_bytes=peak - peak_before,
                peak_bytes=peak,
                caveat="lower bound: this system reports only the highest resident memory so far, not the memory "
                "before the call",
            )
        old = "upper bound: the process had already used this much memory earlier, while loading or in an earlier call"
        caveat = "" if peak > peak_before else old
        return Reading(growth_bytes=max(0, peak - before), before_bytes=before, peak_bytes=peak, caveat=caveat)


class Sampling:
    """The resident size every millisecond, by a thread: a peak between two readings is missed."""

    source = "sampling"
    restarts = True

    def __init__(self, resident: Size = resident_bytes, interval_s: float = _SAMPLING_INTERVAL_S) -> None:
        self._resident = resident
        self._interval_s = interval_s

    def read(self, work: Work) -> Reading:
        """A lower bound."""
        before = self._resident() or 0
        highest = [before]
        done = Event()

        def watch() -> None:
            while not done.wait(self._interval_s):
                highest.append(max(highest.pop(), self._resident() or 0))

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            work()
        finally:
            done.set()
            watcher.join()
        peak = max(highest[0], self._resident() or 0)
        caveat = f"lower bound: the resident memory was read only every {self._interval_s:g} s"
        return Reading(growth_bytes=peak - before, before_bytes=before, peak_bytes=peak, caveat=caveat)


def joined(parts: Sequence[Reading]) -> Reading:
    """The reading of a piece of work whose parts were read one after another."""
    before = parts[0].before_bytes
    growth = max(part.before_bytes + part.growth_bytes for part in parts) - before
    peaks = [part.peak_bytes for part in parts if part.peak_bytes is not None]
    return Reading(
        growth_bytes=max(0, growth),
        before_bytes=before,
        peak_bytes=max(peaks) if len(peaks) == len(parts) else None,
        started_bytes=max(part.started_bytes for part in parts),
        caveat=next((part.caveat for part in parts if part.caveat), ""),
    )


def max_resident_bytes() -> int | None:
    """The highest resident size since this process began; None where the system does not keep it."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit or None


def probes(
    clear_refs: Path = CLEAR_REFS, peak: Size = max_resident_bytes, resident: Size = resident_bytes
) -> tuple[Probe, ...]:
    """What works on this system, the best first; empty where nothing does."""
    found: list[Probe] = []
    mark = HighWaterMark(clear_refs)
    if mark.usable():
        found.append(mark)
    if peak() is not None:
        found.append(MaxResident(peak, resident))
    if resident() is not None:
        found.append(Sampling(resident))
    return tuple(found)


def _mark_bytes() -> int | None:
    return kib_field("/proc/self/status", "VmHWM")
