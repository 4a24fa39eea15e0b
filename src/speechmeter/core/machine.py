"""Small facts about this machine, read from the operating system without any library."""

from __future__ import annotations

import os
import platform
from pathlib import Path

GLIBC = "glibc"
HOST_VARIABLE = "SPEECHMETER_HOST"
"""Names the machine in records, where its own name changes (containers) or is that of others too (boards)."""
INTERPRETER_VARIABLE = "SPEECHMETER_INTERPRETER"
_ran: set[str] = set()
_ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")


def host_name() -> str:
    """What this machine is called in records: `SPEECHMETER_HOST` where it is set, else its own name."""
    return os.environ.get(HOST_VARIABLE, "").strip() or platform.node()


def other_interpreter() -> str | None:
    """The interpreter of this process as records name it, where it measures in place of the launcher's; else None."""
    return os.environ.get(INTERPRETER_VARIABLE) or None


def available_cores() -> tuple[int, ...]:
    """The CPU cores this process may use, by number."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def read_text(path: str) -> str | None:
    """The stripped text of a small system file; None when it is not there or not readable."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def proc_fields(path: str) -> dict[str, str]:
    """The `key: value` lines of a /proc file; empty where there is none. A repeated key keeps its first value."""
    fields: dict[str, str] = {}
    for line in (read_text(path) or "").splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return fields


def kib_field(path: str, key: str) -> int | None:
    """A `key: N kB` line of a /proc file, in bytes; None when it is not there."""
    value = proc_fields(path).get(key, "").removesuffix("kB").strip()
    return int(value) * 1024 if value.isdigit() else None


def resident_bytes() -> int | None:
    """Resident size of this process; None where /proc is absent."""
    return kib_field("/proc/self/status", "VmRSS")


def cpu_model() -> str:
    """The processor's own name, or its architecture."""
    fields = proc_fields("/proc/cpuinfo")
    return fields.get("model name") or fields.get("Model") or platform.processor() or platform.machine()


def note_profiler() -> None:
    """Say that a profiler is started in this process."""
    _ran.add("profiler")


def profiler_ran() -> bool:
    """Whether a profiler of ours ever ran in this process: what is timed afterwards may be slower."""
    return "profiler" in _ran


def allocator() -> str:
    """The C allocator of this process, with its thresholds when they were set."""
    thresholds = [f"{key}={os.environ[key]}" for key in sorted(os.environ) if key.startswith("MALLOC_")]
    return " ".join([allocator_name(), *thresholds])


def allocator_name(maps: str | None = None) -> str:
    """Which allocator serves `malloc`, by the libraries in `maps` (this process's own unless given): `glibc`, say.

    A replacement that is linked into a program or library, not loaded beside it, cannot be seen.
    """
    text = (read_text("/proc/self/maps") or "") if maps is None else maps
    files = {line.rpartition("/")[2] for line in text.splitlines() if "/" in line}
    libraries = [file for file in files if ".so" in file]
    replaced = next((name for name in _ALLOCATORS if any(name in library for library in libraries)), None)
    return replaced or platform.libc_ver()[0] or "unknown"
