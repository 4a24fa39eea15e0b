"""Linux perf events through the system call `perf_event_open`: no package, no perf tool.

A counter follows one thread, and with `inherit` those it starts later. The threads of a math library are there before
a meter is asked, so counters are opened on every thread of the process and summed. Groups of events cannot be read
together with `inherit` on most kernels, so each event is opened and scaled on its own. The encodings of events are
those of the kernel's pmu-events tables.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from speechmeter.core.errors import SensorError
from speechmeter.core.machine import proc_fields, read_text
from speechmeter.meters.hardware_flops.counters import HIDDEN, Counted, threads

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

RAW = 4
"""The kernel's type of events that are given by the processor's own numbers."""
_EFFICIENCY_CORES = Path("/sys/bus/event_source/devices/cpu_atom")
_ZEN_FAMILY = 0x17


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event: each count is worth `lanes` operations."""

    name: str
    code: int
    umask: int
    lanes: int
    type: int = RAW

    @property
    def config(self) -> int:
        """The value that the kernel takes."""
        return self.code | self.umask << 8


def _intel(name: str, umask: int, lanes: int) -> Event:
    return Event(name=f"FP_ARITH_INST_RETIRED.{name}", code=0xC7, umask=umask, lanes=lanes)


INTEL = (
    _intel("SCALAR", 0x01 | 0x02, 1),
    _intel("128B_PACKED_DOUBLE", 0x04, 2),
    _intel("4_FLOPS", 0x08 | 0x10, 4),
    _intel("8_FLOPS", 0x20 | 0x40, 8),
    _intel("512B_PACKED_SINGLE", 0x80, 16),
)
"""Since Broadwell. A fused multiply-add counts twice. Masks of the same number of lanes are joined (128-bit single and
256-bit double, 256-bit single and 512-bit double), as Intel does: five events for eight, on four to eight counters."""


def _amd(umask: int) -> tuple[Event, ...]:
    return (Event(name="RETIRED_SSE_AVX_FLOPS", code=0x03, umask=umask, lanes=1),)


AMD_ZEN_1_2 = _amd(0xFF)
"""The processor counts lanes itself, and a multiply-add twice. Zen 1 has separate bits for double precision."""
AMD_ZEN_3_ON = _amd(0x0F)
"""Add, multiply, divide, multiply-add; bfloat16 has a bit of its own, left out."""


def events_here() -> tuple[Event, ...]:
    """Events of this machine's processor; SensorError where none are known."""
    if _EFFICIENCY_CORES.exists():
        raise SensorError("this processor mixes two kinds of cores, whose counters differ")
    return events_of(proc_fields("/proc/cpuinfo"))


def events_of(cpuinfo: Mapping[str, str]) -> tuple[Event, ...]:
    """Events by the fields of /proc/cpuinfo; SensorError for a processor of which none are known."""
    vendor = cpuinfo.get("vendor_id", "")
    if vendor == "GenuineIntel":
        return INTEL
    family = int(cpuinfo.get("cpu family", "0"))
    if vendor == "AuthenticAMD" and family >= _ZEN_FAMILY:
        return AMD_ZEN_1_2 if family == _ZEN_FAMILY else AMD_ZEN_3_ON
    raise SensorError("no floating-point event is known for this processor (known: Intel since Broadwell, AMD Zen)")


class Kernel:
    """The system calls of this machine's kernel, x86-64; OSError as they give it."""

    def threads(self) -> frozenset[int]:
        """The threads of this process."""
        return threads()

    def open(self, attributes: bytes, thread: int) -> int:
        """A descriptor of an event on a thread, counting from now on."""
        # `perf_event_open` has no wrapper in the C library
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = int(libc.syscall(_SYSCALL_X86_64, attributes, thread, _ANY_CPU, _NO_GROUP, _CLOSE_ON_EXEC))
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return descriptor

    def read(self, descriptor: int) -> bytes:
        """Value, time enabled and time running, three 64-bit numbers, summed over threads that were started since."""
        return os.read(descriptor, _SAMPLE.size)

    def close(self, descriptor: int) -> None:
        """Let go of it."""
        os.close(descriptor)


class Sample(NamedTuple):
    """What a descriptor reads, or the difference of two readings."""

    value: int
    enabled_ns: int
    running_ns: int

    @classmethod
    def unpacked(cls, data: bytes) -> Sample:
        """From the kernel's bytes. SensorError when there are none: the event lost its counter for good."""
        if len(data) != _SAMPLE.size:
            raise SensorError("the kernel stopped the counter")
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
        raise SensorError("other programs use the counters, or the call is too short for all events to get a turn")
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
        self._kernel = kernel or Kernel()
        self._events = events
        self._machine = machine

    def open(self) -> PerfCounter:
        """Counters on every thread. If threads start meanwhile, again: it is unknown who inherited what."""
        if self._machine != "Linux x86_64":
            raise SensorError(f"works on Linux on x86-64 only, not on {self._machine}")
        events = self._events()
        for _ in range(_TRIES):
            before = self._kernel.threads()
            counter = self._open_on(sorted(before), events)
            if self._kernel.threads() <= before:
                return counter
            counter.close()
        raise SensorError("the process kept starting threads while the counters were being opened")

    def _open_on(self, tids: Sequence[int], events: Sequence[Event]) -> PerfCounter:
        opened: list[tuple[Event, list[int]]] = [(event, []) for event in events]
        try:
            for event, descriptors in opened:
                for tid in tids:
                    with suppress(ProcessLookupError):  # the thread has ended since it was listed
                        descriptors.append(self._kernel.open(attributes_of(event), tid))
        except OSError as error:
            for _, descriptors in opened:
                for descriptor in descriptors:
                    self._kernel.close(descriptor)
            raise SensorError(why_refused(error.errno or 0, read_text(_PARANOID))) from error
        return PerfCounter(kernel=self._kernel, descriptors=[(event, tuple(found)) for event, found in opened])


def why_refused(number: int, paranoid: str | None) -> str:
    """What an error number of `perf_event_open` means here, and what to do."""
    if number in (errno.EACCES, errno.EPERM):
        level = int(paranoid) if paranoid and paranoid.lstrip("-").isdigit() else None
        if level is not None and level > _ENOUGH:
            command = f"sysctl kernel.perf_event_paranoid={_ENOUGH}"
            return f"the kernel refuses (perf_event_paranoid is {level}): run `{command}`"
        return "the kernel refuses (a container forbids perf_event_open): start the container with --cap-add PERFMON"
    if number in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return HIDDEN
    known = {
        errno.ENOSYS: "this kernel has no perf_event_open",
        errno.EBUSY: "another program uses the counters exclusively",
        errno.EMFILE: "too many open files, because each thread and event needs one: run `ulimit -n 8192` first",
    }
    return known.get(number) or f"perf_event_open: {os.strerror(number)}"
