"""Subjects for tests: chains without torch, quick to start, some of them bad on purpose."""

import ctypes
import os
import subprocess
import sys
import time

from speechmeter import Prepared, Stage


def chain(fn):
    return Prepared(stages=(Stage(name="model", fn=fn),))


def nothing():
    return chain(lambda batch: None)


def slow():
    return chain(lambda batch: time.sleep(0.1))


def very_slow():
    return chain(lambda batch: time.sleep(1.0))


def sleeper():
    return chain(lambda batch: time.sleep(1000))


def hungry():
    return chain(lambda batch: bytearray(b"\1") * (64 * 2**30))


def segfault():
    return chain(lambda batch: ctypes.string_at(0))


def quitter():
    return chain(lambda batch: os._exit(0))


def exiting():
    return chain(lambda batch: sys.exit(3))


def raiser():
    def unhappy(batch):
        raise ValueError("the model is unhappy")

    return chain(unhappy)


def loud():
    return chain(lambda batch: print("x" * 10_000_000))


def not_callable():
    return 42


def parent():
    """Leaves two processes behind that try to escape: one in a session of its own, one a double fork."""
    subprocess.Popen(["sleep", "98765"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "98764"])
        os._exit(0)
    return chain(lambda batch: None)


def words():
    return chain(lambda batch: ["a transcript"])


def environment():
    """Says in its output what the measuring process was started with."""

    def tell(batch):
        keys = ("MALLOC_MMAP_THRESHOLD_", "OMP_NUM_THREADS", "PYTHONHASHSEED")
        raise RuntimeError(" ".join(f"{key}={os.environ.get(key)}" for key in keys))

    return chain(tell)


def allocator():
    """64 MiB alive for 5 ms, every byte touched."""

    def spike(batch):
        block = bytearray(b"\1") * (64 * 2**20)
        time.sleep(0.005)
        return len(block)

    return chain(spike)


def reader():
    """Reads out what it is fed as text, the second item of all with a word too many."""
    return chain(lambda batch: [f"{line} indeed" if name == "text-1" else line for name, line in _named(batch)])


def mumbler():
    """As the reader, with nothing at all for the last item."""
    return chain(lambda batch: ["" if name == "text-2" else line for name, line in _named(batch)])


def _named(batch):
    return zip(batch.ids, batch.data, strict=True)


def by_the_item():
    """32 MiB for each item, all alive at once."""

    def call(batch):
        held = [bytearray(32 * 2**20) for _ in range(batch.items)]
        return len(held)

    return chain(call)


def by_the_item_or_not():
    """The same up to four items; with more the model is unhappy."""

    def call(batch):
        if batch.items > 4:
            raise ValueError("at most four")
        return bytes(batch.items)

    return chain(call)
