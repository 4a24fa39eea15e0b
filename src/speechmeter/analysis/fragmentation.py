"""Whether a CUDA device ran out of memory or only of memory in one piece, from what torch said when it gave up."""

from __future__ import annotations

import re
from dataclasses import dataclass

_GIB = {"bytes": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0}
_SIZE = rf"([\d.]+) ({'|'.join(_GIB)})"
_ASKED = re.compile(rf"Tried to allocate {_SIZE}")
_FREE = re.compile(rf"of which {_SIZE} is free")
_ALLOWED = re.compile(rf"{_SIZE} allowed")
_USED = re.compile(rf"{_SIZE} is allocated by PyTorch")
_UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Memory that torch's allocator held and nothing used, and all memory that it could have had."""

    unused_gib: float
    whole_gib: float


def in_pieces(reason: str) -> Pieces | None:
    """What lay unused in pieces, where it and the free memory would have been enough; None otherwise."""
    sizes = [_gib(pattern, reason) for pattern in (_ASKED, _FREE, _USED, _UNUSED)]
    asked, free, used, unused = (size or 0.0 for size in sizes)
    allowed = _gib(_ALLOWED, reason)
    if allowed is not None:  # a limit on what torch holds, not on the process
        free = min(free, max(0.0, allowed - used - unused))
    if None in sizes or free + unused < asked:
        return None
    return Pieces(unused_gib=unused, whole_gib=used + unused + free)


def _gib(pattern: re.Pattern[str], reason: str) -> float | None:
    found = pattern.search(reason)
    return float(found[1]) * _GIB[found[2]] if found else None
