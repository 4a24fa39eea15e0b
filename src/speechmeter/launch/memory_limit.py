"""A limit on the memory of one measurement: a control group of its own where one can be made, else RLIMIT_DATA.

A group counts what all processes of a measurement use together; RLIMIT_DATA counts what each one asks for, whether it
uses it or not. RLIMIT_AS is never set: it breaks the start of CUDA. RLIMIT_RSS does nothing.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

_REMOVAL_S = 1.0
"""How long the kernel may take to let go of a group whose last process has ended."""


@dataclass(frozen=True, kw_only=True)
class _Files:
    """What a version of control groups calls its files. `swap` and `together` may be missing."""

    limit: str
    swap: str
    kills: str
    together: str | None = None


_FIRST = _Files(limit="memory.limit_in_bytes", swap="memory.memsw.limit_in_bytes", kills="memory.oom_control")
_SECOND = _Files(limit="memory.max", swap="memory.swap.max", kills="memory.events", together="memory.oom.group")


@dataclass(frozen=True, kw_only=True)
class MemoryGroup:
    """A control group made for one measurement. Whoever made it removes it."""

    path: Path
    files: _Files

    def oom_kills(self) -> int:
        """How many processes the kernel killed to hold the limit."""
        with contextlib.suppress(OSError, ValueError):
            for line in (self.path / self.files.kills).read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
        return 0

    def remove(self) -> None:
        """Remove the group, whose processes have ended."""
        deadline = time.monotonic() + _REMOVAL_S
        while time.monotonic() < deadline:
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return
            except OSError:  # busy: the last process is still being buried
                time.sleep(0.02)


def make_group(limit_bytes: int, process: Path = Path("/proc/self")) -> MemoryGroup | None:
    """A group beside or below that of this process, held to so many bytes and no swap; None where none can be made."""
    parent, files = _parent(process)
    if parent is None:
        return None
    group = MemoryGroup(path=parent / f"speechmeter-{uuid.uuid4().hex}", files=files)
    try:
        group.path.mkdir()
    except OSError:
        return None
    try:
        (group.path / files.limit).write_text(str(limit_bytes))
    except OSError:
        group.remove()
        return None
    with contextlib.suppress(OSError):  # a kernel without accounts of swap
        (group.path / files.swap).write_text(str(limit_bytes) if files is _FIRST else "0")
    if files.together is not None:
        with contextlib.suppress(OSError):
            (group.path / files.together).write_text("1")
    return group


def limit_data(limit_bytes: int, group: str | None, process: Path = Path("/proc/self")) -> None:
    """Hold this process to RLIMIT_DATA, unless it is in the group that holds it already."""
    with contextlib.suppress(OSError):
        if group is not None and group in (process / "cgroup").read_text():
            return
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, resource.RLIM_INFINITY))


def _parent(process: Path) -> tuple[Path | None, _Files]:
    """The group in which one can be made; None where memory is not accounted or the group is not ours to change."""
    first, second = _own_group(process, "memory"), _own_group(process, "")
    if first is not None:
        return (first if os.access(first, os.W_OK) else None), _FIRST
    for group in (second, second.parent) if second is not None else ():
        with contextlib.suppress(OSError):
            accounted = "memory" in (group / "cgroup.subtree_control").read_text().split()
            if accounted and os.access(group / "cgroup.procs", os.W_OK):
                return group, _SECOND
    return None, _SECOND


def _own_group(process: Path, controller: str) -> Path | None:
    """The folder of this process's group: that of a controller of version 1, or (no name) that of version 2."""
    try:
        lines = (process / "cgroup").read_text().splitlines()
        mounts = (process / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    fields = [line.split(":", 2) for line in lines]
    path = next((own for _, names, own in fields if controller in names.split(",")), None)
    if path is None:
        return None
    for line in mounts:
        before, _, after = line.partition(" - ")
        kind, _, options = [*after.split(), "", "", ""][:3]
        if kind == "cgroup2" if controller == "" else kind == "cgroup" and controller in options.split(","):
            root, point = before.split()[3:5]
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return Path(point) / path[len(root.rstrip("/")) :].lstrip("/")
    return None
