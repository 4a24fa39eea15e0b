"""What processes use that somebody else started: their resident memory and their CPU time, by /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


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
    ticks = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            # the name of a command may contain spaces and brackets
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
