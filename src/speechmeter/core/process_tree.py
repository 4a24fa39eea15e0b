"""Processes that somebody else started, and those that this one started: their memory and their CPU time, by /proc."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from speechmeter.core.guard import below

_guard = 0
_KCMP = {"x86_64": 312, "aarch64": 272}
"""The number of the system call kcmp, for which the C library has no function."""
_KCMP_VM = 1


def note_guard(pid: int) -> None:
    """Say which process guards this one: it adopts what the model started and left, so that is found below it."""
    global _guard  # noqa: PLW0603 - a fact about this process
    _guard = pid if pid > 1 else 0


def started_processes() -> list[int]:
    """All processes that descend from this one and have not been waited for, those that its guard adopted included."""
    me = os.getpid()
    top = _guard if _guard and _guard == os.getppid() else me
    return [pid for pid in _below(top) if pid != me]


def _below(top: int) -> list[int]:
    """Descendants by the kernel's lists of children: tens of microseconds, where all of /proc takes milliseconds."""
    if not Path(f"/proc/{top}/task/{top}/children").exists():
        return below(top) if Path("/proc").is_dir() else []
    found: list[int] = []
    left = [top]
    while left:
        above = left.pop()
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{above}/task"):  # noqa: PTH208 - as in the guard
                with suppress(OSError), open(f"/proc/{above}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                    own = [int(pid) for pid in file.read().split()]
                    found += own
                    left += own
    return found


def has_ended_children() -> bool:
    """Whether a child of this process has ended and was waited for."""
    try:
        import resource
    except ImportError:  # not on this system
        return False
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt > 0  # no process runs without a page fault


@dataclass(frozen=True, kw_only=True)
class Size:
    """Memory of one process: all of its resident pages, and its share of them, where a page of n processes counts 1/n.

    Where the kernel does not say the share, it is as large as the whole, and not `is_shared_out`.
    """

    resident_bytes: int = 0
    share_bytes: int = 0
    is_shared_out: bool = True


def size_of(pid: int) -> Size:
    """By `smaps_rollup` (Rss and Pss); nothing of a process that has ended."""
    with suppress(OSError, ValueError, IndexError):
        sizes = dict.fromkeys((b"Rss:", b"Pss:"), 0)
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()[1:]:
            key, value, *_ = line.split()
            if key in sizes:
                sizes[key] = int(value) * 1024
        return Size(resident_bytes=sizes[b"Rss:"], share_bytes=sizes[b"Pss:"])
    resident = resident_bytes((pid,))  # the process of another user, or an older kernel
    return Size(resident_bytes=resident, share_bytes=resident, is_shared_out=not resident)


def borrows_memory(pid: int) -> bool:
    """Whether a process has none of its own yet: between vfork and exec it runs in that of its parent.

    Where the kernel does not say, every process that has not called exec counts as one.
    """
    with suppress(OSError, ValueError, IndexError):
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if _span(pid) != _span(parent):
            return False
        number = _KCMP.get(os.uname().machine)
        answer = -1 if number is None else ctypes.CDLL(None).syscall(number, pid, parent, _KCMP_VM, 0, 0)
        return answer <= 0
    return False


def _span(pid: int) -> bytes:
    """From the first to the last address: the same in a process and in its copy, another one after exec."""
    with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123 - as in the guard
        return file.readline()


def started_bytes() -> int:
    """Memory of all processes that this one started: the sum of their shares."""
    return sum(size_of(pid).share_bytes for pid in started_processes())


def resident_bytes(pids: Iterable[int]) -> int:
    """The sum of the resident sizes of those that live. A page that several share counts in each of them."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
    return total


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU time of those that live, and of their children that have ended, in seconds."""
    return sum(_ticks(pid, 11, 15) for pid in pids) / os.sysconf("SC_CLK_TCK")


def started_cpu_seconds(also: Iterable[int] = ()) -> float:
    """CPU time of all processes that this one started, those that have ended included, and of further ones.

    Of an ended process it is known where it was waited for: by its parent, by this process, or by its guard.
    """
    times = os.times()
    ended = times.children_user + times.children_system
    ended += _ticks(_guard, 13, 15) / os.sysconf("SC_CLK_TCK") if _guard else 0.0
    return ended + cpu_seconds({*started_processes(), *also} - {os.getpid()})


def _ticks(pid: int, first: int, end: int) -> int:
    """Fields of /proc/PID/stat behind the name: 11 to 14 are utime, stime, cutime and cstime."""
    with suppress(OSError, ValueError, IndexError):
        # the name of a command may contain spaces and brackets
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[first:end]))
    return 0
