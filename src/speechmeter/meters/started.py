"""Memory of the processes that a model started, beside that of its own process: a child would else read 0 bytes.

Of each process counts its own memory and its share of what several map (PSS), so that four workers that share one model
do not count it four times. A share has no high-water mark, but the whole has: so the peak of a process that stays is
its mark, less what of it belongs to others. A process that comes and goes within a call is only seen by looking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

from speechmeter.core.machine import kib_field
from speechmeter.core.process_tree import Size, borrows_memory, has_ended_children, size_of, started_processes
from speechmeter.meters.resident import RESET_HIGH_WATER_MARK, Probe, Reading, Work

PSS = "Pss of started processes"
_LOOK_S = 0.005
_WAIT_FOR_A_LOOK = 10
"""A look that takes long is followed by a wait of so many times as long."""
_RISES_BYTES = 2**20
"""A process that grew by less is at rest."""

INCLUDED = "memory includes that of the processes that the model started; pages that several of them map are shared out"
NOT_SHARED_OUT = "upper bound: this system does not say which pages processes share, so a shared page counts in each"
AT_DIFFERENT_TIMES = "upper bound: several processes grew, and their peaks are added as if they were at the same time"
COME_AND_GONE = f"lower bound: processes came or went during the call, and memory was read only every {_LOOK_S:g} s"


def starts_processes() -> bool:
    """Whether this process has children, or had some."""
    return has_ended_children() or bool(started_processes())


class WithStarted:
    """A probe of this process that adds what its descendants take. Its source names both once there were any."""

    def __init__(self, own: Probe, processes: Callable[[], Sequence[int]] = started_processes) -> None:
        self._own = own
        self._processes = processes
        self.source = own.source
        self.restarts = own.restarts

    def read(self, work: Work) -> Reading:
        """The reading of this process and of all that it started, before, during and after the work."""
        before = {pid: size_of(pid) for pid in self._processes()}
        marked = {pid for pid in before if _reset_mark(pid)}
        looks = _Looks(self._processes, frozenset(before))
        with looks:
            own = self._own.read(work)
        after = {pid: size_of(pid) for pid in self._processes()}
        stayed = [pid for pid in before if pid in after]
        peaks = {pid: _peak_bytes(pid, after[pid]) if pid in marked else after[pid].share_bytes for pid in stayed}
        peaks |= {pid: size.share_bytes for pid, size in before.items() if pid not in after}
        fresh = {pid: _peak_bytes(pid, size) for pid, size in after.items() if pid not in before}
        before_bytes = sum(size.share_bytes for size in before.values())
        peak_bytes = max(sum(peaks.values()) + max(looks.highest_bytes, sum(fresh.values())), before_bytes)
        if not peak_bytes:
            return own
        self.source = f"{self._own.source}, {PSS}"
        grew = [peaks[pid] - before[pid].share_bytes for pid in peaks] + [looks.highest_bytes, own.growth_bytes]
        caveats = [
            own.caveat,
            "" if all(size.is_shared_out for size in (*before.values(), *after.values())) else NOT_SHARED_OUT,
            COME_AND_GONE if looks.seen - after.keys() or len(stayed) < len(before) else "",
            AT_DIFFERENT_TIMES if sum(one > _RISES_BYTES for one in grew) > 1 else "",
        ]
        return replace(
            own,
            growth_bytes=own.growth_bytes + peak_bytes - before_bytes,
            before_bytes=own.before_bytes + before_bytes,
            peak_bytes=None if own.peak_bytes is None else own.peak_bytes + peak_bytes,
            started_bytes=peak_bytes,
            caveat="; ".join(filter(None, caveats)),
        )


class _Looks:
    """Looks at the processes that were not there before, while the work goes on."""

    def __init__(self, processes: Callable[[], Sequence[int]], known: frozenset[int]) -> None:
        self.highest_bytes = 0
        self.seen: set[int] = set()
        self._processes, self._known = processes, known
        self._done = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        wait_s = _LOOK_S
        while not self._done.wait(wait_s):
            begun = perf_counter()
            fresh = [pid for pid in self._processes() if pid not in self._known and not borrows_memory(pid)]
            sizes = {pid: size_of(pid).share_bytes for pid in fresh}
            self.seen |= sizes.keys()
            self.highest_bytes = max(self.highest_bytes, sum(sizes.values()))
            wait_s = max(_LOOK_S, _WAIT_FOR_A_LOOK * (perf_counter() - begun))


def _reset_mark(pid: int) -> bool:
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text(RESET_HIGH_WATER_MARK)
        return True
    return False


def _peak_bytes(pid: int, size: Size) -> int:
    """The highest size of a process since its mark was reset or it began, less what of it belongs to others."""
    mark = kib_field(f"/proc/{pid}/status", "VmHWM") or size.resident_bytes
    return max(size.share_bytes, mark - (size.resident_bytes - size.share_bytes))
