"""A kernel whose threads do arithmetic that is known, and which multiplexes as told. No processor is asked."""

import errno
import os
import struct
from dataclasses import dataclass, field

from speechmeter.core.errors import SensorError
from speechmeter.meters.hardware_flops.counters import Counted


@dataclass
class Opened:
    config: int
    thread: int
    began: tuple[float, int]


@dataclass
class SimulatedKernel:
    """`run` lets a thread retire instructions; a thread that is born after opening is counted by its parent's events.

    `shares` maps a thread to the share of its time that its events are on a counter. `refuses` is an error number.
    """

    tids: list[int] = field(default_factory=lambda: [1])
    shares: dict[int, float] = field(default_factory=dict)
    refuses: int = 0
    gone: set[int] = field(default_factory=set)
    dead: bool = False
    born_while_opening: list[int] = field(default_factory=list)
    opened: dict[int, Opened] = field(default_factory=dict)
    attributes: list[bytes] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    _counts: dict[tuple[int, int], int] = field(default_factory=dict)
    _ran_ns: dict[int, int] = field(default_factory=dict)
    _inherits: dict[int, int] = field(default_factory=dict)

    def threads(self):
        return frozenset(self.tids)

    def start_thread(self, parent, tid):
        self.tids.append(tid)
        self._inherits[tid] = parent

    def run(self, tid, config, instructions, ns=1_000_000):
        counted_by = self._inherits.get(tid, tid)
        self._counts[counted_by, config] = self._counts.get((counted_by, config), 0) + instructions
        self._ran_ns[counted_by] = self._ran_ns.get(counted_by, 0) + ns

    def open(self, attributes, thread):
        if self.refuses:
            raise OSError(self.refuses, os.strerror(self.refuses))
        if thread in self.gone:
            raise ProcessLookupError(errno.ESRCH, "No such process")
        if self.born_while_opening:
            self.tids.append(self.born_while_opening.pop())
        self.attributes.append(attributes)
        config = struct.unpack_from("=Q", attributes, 8)[0]
        descriptor = 100 + len(self.attributes)
        self.opened[descriptor] = Opened(config, thread, self._now(config, thread))
        return descriptor

    def read(self, descriptor):
        event = self.opened[descriptor]
        (value, ns), (value_0, ns_0) = self._now(event.config, event.thread), event.began
        share = self.shares.get(event.thread, 1.0)
        seen = 0 if self.dead else round((value - value_0) * share)
        return struct.pack("=QQQ", seen, ns - ns_0, round((ns - ns_0) * share))

    def close(self, descriptor):
        self.closed.append(descriptor)
        del self.opened[descriptor]

    def _now(self, config, thread):
        return self._counts.get((thread, config), 0), self._ran_ns.get(thread, 0)


@dataclass
class SimulatedBackend:
    """Counts what `flops` says a piece of work did, or refuses with a reason."""

    name: str = "simulated"
    flops: object = lambda: 0.0
    reason: str = ""
    fails_after: int = 10**9
    share: float = 1.0
    closed: int = 0
    counted: int = 0

    def open(self):
        if self.reason:
            raise SensorError(self.reason)
        return self

    def count(self, work):
        before = self.flops()
        work()
        self.counted += 1
        if self.counted > self.fails_after:
            raise SensorError("the kernel stopped the counter")
        return Counted(flops=self.flops() - before, share=self.share)

    def close(self):
        self.closed += 1
