"""Subjects whose memory is known: tensors of a stated size that live for a stated time. They need torch."""

import ctypes
import json
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import torch

from speechmeter import Prepared, Stage

MIB = 2**20


def filled(mib):
    """A tensor of that size, every byte written."""
    return torch.ones(mib * MIB, dtype=torch.uint8)


def chain(fn):
    return Prepared(stages=(Stage(name="model", fn=fn),))


def spike():
    """64 MiB alive for 5 ms."""

    def call(batch):
        tensor = filled(64)
        time.sleep(0.005)
        return tensor.numel()

    return chain(call)


def gibibyte():
    """1 GiB alive for 50 ms."""

    def call(batch):
        tensor = filled(1024)
        time.sleep(0.05)
        return tensor.numel()

    return chain(call)


def ten():
    """Ten tensors of 4 MiB alive at once."""

    def call(batch):
        tensors = [filled(4) for _ in range(10)]
        return len(tensors)

    return chain(call)


def alternating():
    """128 MiB and 16 MiB by turns; the first call after loading, which is not read, is a large one."""
    sizes = (16 if number % 2 else 128 for number in count())

    def call(batch):
        return filled(next(sizes)).numel()

    return chain(call)


def by_batch():
    """48 MiB for each item of the batch."""

    def call(batch):
        return filled(48 * batch.items).numel()

    return chain(call)


def two_stages():
    """`wide` fills 96 MiB and hands 32 MiB on; `narrow` fills 8 MiB. Each has a module of known weight."""
    wide, narrow = torch.nn.Linear(1024, 1024, bias=False), torch.nn.Linear(512, 512, bias=False)

    def first(batch):
        work = filled(64)
        kept = filled(32)
        del work
        return kept

    def second(kept):
        return filled(8).numel() + kept.numel()

    return Prepared(
        stages=(
            Stage(name="wide", fn=first, modules={"wide": wide}),
            Stage(name="narrow", fn=second, modules={"narrow": narrow}),
        ),
        modules={"wide": wide, "narrow": narrow},
    )


_CHILD = """
import mmap, sys
def fill(mib):
    pages = mmap.mmap(-1, mib * 2**20)
    pages[::4096] = b"1" * (len(pages) // 4096)
    return pages
kept = fill(200)
for line in sys.stdin:
    fill(64)
    print(flush=True)
"""
_LEAVE = "import subprocess, sys; subprocess.Popen([sys.executable, '-ISc', sys.argv[1]])"


def _served_by(*program):
    child = subprocess.Popen(
        [sys.executable, "-ISc", *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )

    def call(batch):
        child.stdin.write("\n")
        return child.stdout.readline()

    call(None)  # loaded when the child is

    def close():
        child.stdin.close()
        child.wait()

    return Prepared(stages=(Stage(name="model", fn=call),), close=close)


def child():
    """A child that holds 200 MiB, and 64 more in every call."""
    return _served_by(_CHILD)


def orphan():
    """The same in a process whose parent has ended."""
    return _served_by(_LEAVE, _CHILD)


def witness():
    """Writes down what each measuring process gave it: the allocator's variables, and what the allocator does."""
    with Path("seen.jsonl").open("a") as seen:
        variables = {key: value for key, value in os.environ.items() if key.startswith("MALLOC_")}
        seen.write(json.dumps({"variables": variables, "maps_100_kib": _maps(100 * 1024)}) + "\n")
    return chain(lambda batch: None)


def _maps(size):
    """Whether the C library maps a block of this size from the kernel. Its own threshold starts at 128 KiB."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.mallinfo.restype = MallInfo
    before = libc.mallinfo().hblks
    block = libc.malloc(size)
    mapped = libc.mallinfo().hblks - before
    libc.free(block)
    return mapped == 1


class MallInfo(ctypes.Structure):
    """glibc's `struct mallinfo`; `hblks` is the number of blocks mapped from the kernel."""

    _fields_ = [
        (name, ctypes.c_int)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
                     "keepcost")
    ]  # fmt: skip
