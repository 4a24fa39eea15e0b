"""Linux perf events through the system call `perf_event_open`: no package, no perf tool.

A counter follows one thread, and with `inherit` those it starts later. The threads of a math library are there before
a meter is asked, so counters are opened on every thread of the process and summed. Groups of events cannot be read
together with `inherit` on most kernels, so each event stands alone and is scaled on its own.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from speechmeter.core.errors import SensorError
from speechmeter.core.machine import read_text
from speechmeter.meters.hardware.base import HIDDEN, Counted, threads
from speechmeter.meters.hardware.events import Event, events_here

_SYSCALL_X86_64 = 298
_CLOSE_ON_EXEC = 1 << 3
_ANY_CPU = _NO_GROUP = -1
_ATTR = struct.Struct("=IIQQQQQIIQ")
"""`struct perf_event_attr`, first version, 64 bytes: type, size, config, sample period, sample type, read format,
flags, wakeup, breakpoint type, config1."""
_SAMPLE = struct.Struct("=QQQ")
_TIMES = 0b11
"""Read format: time enabled and time running beside the value."""
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_PARANOID = "/proc/sys/kernel/perf_event_paranoid"
_ENOUGH = 2
"""perf_event_paranoid up to this lets a process count itself outside the kernel."""
_UNSEEN_AT_MOST = 0.02
_TRIES = 5


class Kernel(Protocol):
    """The system calls; OSError as they give it."""

    def threads(self) -> frozenset[int]:
        """The threads of this process."""
        ...

    def open(self, attributes: bytes, thread: int) -> int:
        """A descriptor of an event on a thread, counting from now on."""
        ...

    def read(self, descriptor: int) -> bytes:
        """Value, time enabled and time running: three 64-bit numbers."""
        ...

    def close(self, descriptor: int) -> None:
        """Let go of it."""
        ...


class LinuxKernel:
    """This machine's kernel, x86-64."""

    def threads(self) -> frozenset[int]:
        """From /proc."""
        return threads()

    def open(self, attributes: bytes, thread: int) -> int:
        """`perf_event_open` has no wrapper in the C library."""
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = int(libc.syscall(_SYSCALL_X86_64, attributes, thread, _ANY_CPU, _NO_GROUP, _CLOSE_ON_EXEC))
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return descriptor

    def read(self, descriptor: int) -> bytes:
        """Sums over threads that were started since, ended ones included."""
        return os.read(descriptor, _SAMPLE.size)

    def close(self, descriptor: int) -> None:
        """A plain file descriptor."""
        os.close(descriptor)


class Sample(NamedTuple):
    """What a descriptor reads, or the difference of two readings."""

    value: int
    enabled_ns: int
    running_ns: int

    @classmethod
    def unpacked(cls, data: bytes) -> Sample:
        """From the kernel's bytes. SensorError when there are none: the event was put off its counter for good."""
        if len(data) != _SAMPLE.size:
            raise SensorError("the kernel took the counter away")
        return cls(*_SAMPLE.unpack(data))

    def since(self, earlier: Sample) -> Sample:
        """The difference."""
        return Sample(*(now - then for now, then in zip(self, earlier, strict=True)))


def attributes_of(event: Event) -> bytes:
    """An event that counts user code and follows new threads."""
    flags = _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
    return _ATTR.pack(event.type, _ATTR.size, event.config, 0, 0, _TIMES, flags, 0, 0, 0)


def scaled(threads: Iterable[Sample]) -> Counted:
    """Counts of one event over all threads, as if it had been on a counter all the time its threads ran.

    A thread that ran without ever being counted is left out while its time is negligible; SensorError when it is not.
    """
    count, enabled_ns, running_ns, unseen_ns = 0.0, 0, 0, 0
    for sample in threads:
        enabled_ns += sample.enabled_ns
        running_ns += sample.running_ns
        if sample.running_ns:
            count += sample.value * sample.enabled_ns / sample.running_ns
        else:
            unseen_ns += sample.enabled_ns
    if unseen_ns > _UNSEEN_AT_MOST * enabled_ns:
        raise SensorError("other programs hold the counters, or the call is too short for events to take turns")
    return Counted(flops=count, share=running_ns / enabled_ns if enabled_ns else 1.0)


@dataclass(frozen=True, kw_only=True)
class PerfCounter:
    """Descriptors of every event on every thread that there was when it was opened."""

    kernel: Kernel
    descriptors: Sequence[tuple[Event, tuple[int, ...]]]

    def count(self, work: Callable[[], object]) -> Counted:
        """Lanes times counts, over all events and threads."""
        before = self._read()
        work()
        after = self._read()
        flops, share = 0.0, 1.0
        for (event, _), then, now in zip(self.descriptors, before, after, strict=True):
            counted = scaled(late.since(early) for early, late in zip(then, now, strict=True))
            flops += event.lanes * counted.flops
            share = min(share, counted.share)
        return Counted(flops=flops, share=share)

    def close(self) -> None:
        """Close every descriptor."""
        for _, descriptors in self.descriptors:
            for descriptor in descriptors:
                self.kernel.close(descriptor)

    def _read(self) -> list[list[Sample]]:
        return [[Sample.unpacked(self.kernel.read(fd)) for fd in descriptors] for _, descriptors in self.descriptors]


class PerfBackend:
    """Raw events of Intel and AMD processors."""

    name = "perf"

    def __init__(
        self,
        *,
        kernel: Kernel | None = None,
        events: Callable[[], tuple[Event, ...]] = events_here,
        machine: str = f"{platform.system()} {platform.machine()}",
    ) -> None:
        self._kernel = kernel or LinuxKernel()
        self._events = events
        self._machine = machine

    def open(self) -> PerfCounter:
        """Counters on every thread. If threads start meanwhile, again: it is unknown who inherited what."""
        if self._machine != "Linux x86_64":
            raise SensorError(f"written for Linux on x86-64, not for {self._machine}")
        events = self._events()
        for _ in range(_TRIES):
            before = self._kernel.threads()
            counter = self._open_on(sorted(before), events)
            if self._kernel.threads() <= before:
                return counter
            counter.close()
        raise SensorError("threads keep starting while counters are opened")

    def _open_on(self, tids: Sequence[int], events: Sequence[Event]) -> PerfCounter:
        opened: list[tuple[Event, list[int]]] = [(event, []) for event in events]
        try:
            for event, descriptors in opened:
                for tid in tids:
                    self._open_into(descriptors, event, tid)
        except OSError as error:
            for _, descriptors in opened:
                for descriptor in descriptors:
                    self._kernel.close(descriptor)
            raise SensorError(why_refused(error.errno or 0, read_text(_PARANOID))) from error
        return PerfCounter(kernel=self._kernel, descriptors=[(event, tuple(found)) for event, found in opened])

    def _open_into(self, descriptors: list[int], event: Event, tid: int) -> None:
        try:
            descriptors.append(self._kernel.open(attributes_of(event), tid))
        except ProcessLookupError:
            return  # the thread has ended since it was listed


def why_refused(number: int, paranoid: str | None) -> str:
    """What an error number of `perf_event_open` means here, and the way out."""
    if number in (errno.EACCES, errno.EPERM):
        return _why_forbidden(paranoid)
    if number in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return HIDDEN
    known = {
        errno.ENOSYS: "this kernel has no perf_event_open",
        errno.EBUSY: "another program holds the counters for itself",
        errno.EMFILE: "a counter a thread and event is more than the limit of open files: ulimit -n 8192",
    }
    return known.get(number) or f"perf_event_open: {os.strerror(number)}"


def _why_forbidden(paranoid: str | None) -> str:
    level = int(paranoid) if paranoid and paranoid.lstrip("-").isdigit() else None
    if level is not None and level > _ENOUGH:
        return f"the kernel refuses (perf_event_paranoid {level}): sysctl kernel.perf_event_paranoid={_ENOUGH}"
    return "the kernel refuses (a container forbids perf_event_open): start the container with --cap-add PERFMON"
