"""A subject whose processes may be forked, planted where measuring processes find it. It tells about its process."""

import os
import signal
import sys
import threading
from pathlib import Path

from speechmeter.core.protocols import Installed, Prepared
from speechmeter.core.types import Stage

SOURCES = {
    "numpy": ("numpy",),
    "network": ("forkable_network",),
    "thread": ("forkable_thread",),
    "process": ("forkable_process",),
    "closes": ("forkable_closes",),
    "leaves": ("forkable_leaves",),
    "absent": ("no_such_module",),
    "new": (),
}
"""What is imported early, by source; of any other source it cannot be said."""


class ForkableSubject:
    summary = "may be forked: forkable:SOURCE"
    axes = ()
    options = ()
    takes = ()
    runs_code = False

    def installed(self):
        return Installed(version="1")

    def check(self, case):
        pass

    def unavailable(self, case):
        return None

    def libraries(self, case):
        return SOURCES[case.subject.source]

    def prepare(self, case, device):
        import numpy

        squares = numpy.arange(160_000, dtype=float).reshape(400, 400)
        found = {
            "parent": parent_of(os.getppid()),
            "product": float((squares @ squares)[3, 5]),
            "threads": len(list(Path("/proc/self/task").iterdir())),
            "drawn": float(numpy.random.random()),
            "interrupt": str(signal.getsignal(signal.SIGINT)),
            "main": threading.current_thread() is threading.main_thread(),
            "arguments": len(sys.argv),
            "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        }
        notes = tuple(f"{key}: {value}" for key, value in found.items())
        return Prepared(stages=(Stage(name="model", fn=lambda batch: None),), notes=notes)


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
