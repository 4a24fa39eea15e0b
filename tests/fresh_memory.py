"""Memory that the process did not have before: an allocator may serve a block from what it kept, and nothing grows."""

from __future__ import annotations

import mmap

PAGE = mmap.PAGESIZE
MIB = 2**20


def fresh_pages(mib: int) -> mmap.mmap:
    """So many MiB straight from the kernel, every page written to; given back when the last reference goes."""
    pages = mmap.mmap(-1, mib * MIB)
    pages[::PAGE] = b"\1" * (mib * MIB // PAGE)
    return pages
