"""Which events of which processor count floating-point operations. Encodings as in the kernel's pmu-events tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from speechmeter.core.errors import SensorError
from speechmeter.core.machine import proc_fields

RAW = 4
"""The kernel's type of events that are given by the processor's own numbers."""
_EFFICIENCY_CORES = Path("/sys/bus/event_source/devices/cpu_atom")
_ZEN_FAMILY = 0x17


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event: each count stands for `lanes` operations."""

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
    raise SensorError("no floating-point event is known for this processor (Intel since Broadwell and AMD Zen are)")
