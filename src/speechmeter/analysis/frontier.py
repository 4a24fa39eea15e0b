"""The largest size that fits: the search for it, and reading it from the records of a search or of any grid.

All sizes are counts of steps. What fits is assumed to fit at every smaller size too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from speechmeter.analysis.intervals import Quantity
from speechmeter.core import metrics
from speechmeter.core.finding import TARGETS, Target, target_of
from speechmeter.core.metrics import Metric
from speechmeter.core.protocol import USUAL_MARGIN, SearchProtocol
from speechmeter.core.types import Case, Record

_DOUBLINGS = 3
"""How often a size is expected to double before it fails; only for the estimate of the time left."""
_TRIED_STATUSES = ("ok", "oom", "timeout", "crashed", "error")
_GIB = {"bytes": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0}
_SIZE = rf"([\d.]+) ({'|'.join(_GIB)})"
_ASKED = re.compile(rf"Tried to allocate {_SIZE}")
_FREE = re.compile(rf"of which {_SIZE} is free")
_ALLOWED = re.compile(rf"{_SIZE} allowed")
_USED = re.compile(rf"{_SIZE} is allocated by PyTorch")
_UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")

Tried = Mapping[int, bool]
"""Whether a size fitted, by size."""
Group = Sequence[Record]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Where a search starts, what it never tries more than, and how close it comes as a share of what fits."""

    start: int
    most: int
    within: float = 0.0


def largest_and_smallest(tried: Tried) -> tuple[int | None, int | None]:
    """(the largest that fits below every one that fails, the smallest that fails); None where there is none."""
    fails = min((size for size, fits in tried.items() if not fits), default=None)
    fits = max((size for size, fits in tried.items() if fits and (fails is None or size < fails)), default=None)
    return fits, fails


def next_size(tried: Tried, bounds: Bounds) -> int | None:
    """The size to try after these: doubled until one fails, halved until one fits, then the middle between the two.

    None when the search is over.
    """
    fits, fails = largest_and_smallest(tried)
    if fits is None and fails is None:
        return min(bounds.start, bounds.most)
    if fits is None:
        return fails // 2 if fails is not None and fails > 1 else None
    if fits >= bounds.most:
        return None
    if fails is None:
        return min(2 * fits, bounds.most)
    near = fails - fits <= max(1, math.floor(bounds.within * fits))
    return None if near else min((fits + fails) // 2, bounds.most)


def trials_left(tried: Tried, bounds: Bounds) -> int:
    """At most how many trials are left, once a size that fits and one that fails are known; a guess before that."""
    fits, fails = largest_and_smallest(tried)
    if fits is not None and fails is not None:
        return math.ceil(math.log2(max(1.0, (fails - fits) / max(1.0, bounds.within * fits))))
    if fails is not None:
        return fails.bit_length()
    doublings = min(_DOUBLINGS, math.ceil(math.log2(bounds.most / fits))) if fits is not None else _DOUBLINGS
    near = 2**doublings * (fits or bounds.start) / max(1.0, bounds.within * (fits or bounds.start))
    return doublings + max(0, math.ceil(math.log2(near))) if doublings else 0


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Memory that torch's allocator held and nothing used, and all memory that it could have had."""

    unused_gib: float
    whole_gib: float


def in_pieces(reason: str) -> Pieces | None:
    """Whether a CUDA device had enough memory, but not in one piece, from what torch said when it gave up.

    None where memory was short, or where torch does not say.
    """

    def gib(pattern: re.Pattern[str]) -> float | None:
        found = pattern.search(reason)
        return float(found[1]) * _GIB[found[2]] if found else None

    sizes = [gib(pattern) for pattern in (_ASKED, _FREE, _USED, _UNUSED)]
    asked, free, used, unused = (size or 0.0 for size in sizes)
    allowed = gib(_ALLOWED)
    if allowed is not None:  # a limit on what torch holds, not on the process
        free = min(free, max(0.0, allowed - used - unused))
    if None in sizes or free + unused < asked:
        return None
    return Pieces(unused_gib=unused, whole_gib=used + unused + free)


@dataclass(frozen=True, kw_only=True)
class Size(Quantity):
    """A value of an axis as it was tried, never rounded; with `at_least`, only the largest that was tried."""

    at_least: bool = False


@dataclass(frozen=True, kw_only=True)
class Edge:
    """Where one line ends: cases that differ in one axis alone.

    `largest` holds the records of the largest that fits, empty where nothing does. There is a `safe` value only where
    the edge is known: where something did not fit. `ended` names the trial that ended otherwise than for memory, `stop`
    says why a search found no smallest that fails, `doubt` what speaks against the assumption that all below the
    largest fit, `pieces` what lay unused on a CUDA device at the smallest that fails, where it would have been enough
    and is more than the margin allows for.
    """

    target: Target
    case: Case
    fits: Size | None
    fails: Size | None
    safe: Size | None
    largest: Group
    trials: int
    ended: str = ""
    stop: str = ""
    doubt: str = ""
    pieces: Pieces | None = None

    @property
    def searched(self) -> bool:
        """Whether the records are those of a search."""
        return target_of(self.case) is not None

    @property
    def limit(self) -> str:
        """What memory there was."""
        gib = protocol.memory_gib if isinstance(protocol := self.case.protocol, SearchProtocol) else None
        return f"{gib:g} GiB of memory" if gib is not None else "the memory of the device"

    @property
    def margin(self) -> float:
        """The share that `safe` stays below what fits."""
        return _margin(self.case)


def _margin(case: Case) -> float:
    return case.protocol.margin if isinstance(case.protocol, SearchProtocol) else USUAL_MARGIN


def edges(cases: Sequence[Group]) -> list[Edge]:
    """The edge of every line of these cases, each given by its rounds; lines of cells that were skipped have none.

    The axis is the one that was searched, `batch` in records of an ordinary study.
    """
    lines: dict[tuple[str, str], list[Group]] = {}
    for records in cases:
        case = records[0].case
        target = target_of(case) or TARGETS["max-batch"]
        tried = [record for record in records if record.status in _TRIED_STATUSES]
        if tried and isinstance(case.axes.get(target.axis), int | float):
            lines.setdefault((target.axis, case.line(target.axis)), []).append(tried)
    return [_edge(groups) for groups in lines.values()]


def _edge(groups: Sequence[Group]) -> Edge:
    case = groups[0][0].case
    target = target_of(case) or TARGETS["max-batch"]
    margin = _margin(case)
    by_size = {target.steps(group[0].case.axes[target.axis]): group for group in groups}
    statuses = {size: _status(group) for size, group in by_size.items()}
    tried = {size: status == "ok" for size, status in statuses.items() if status in ("ok", "oom")}
    fits, fails = largest_and_smallest(tried)
    safe = None if fits is None or fails is None else max(1, int(fits * (1 - margin) + 1e-9))
    # the least size between what fits and what does not that ended otherwise than for memory
    others = (size for size, status in statuses.items() if status not in ("ok", "oom") and size > (fits or 0))
    other = min((size for size in others if fails is None or size < fails), default=None)
    ended = (
        ""
        if other is None
        else f"{target.axis} {target.value(other):,} failed for another reason than memory: {statuses[other]}"
    )
    above = [size for size, fitted in tried.items() if fitted and fails is not None and size > fails]

    def size_of(metric: Metric, steps: int | None, *, at_least: bool = False) -> Size | None:
        if steps is None:
            return None
        return Size(
            metric=metric, value=float(target.value(steps)), low=None, high=None, rounds=1,
            samples_per_round=len(groups), at_least=at_least,
        )  # fmt: skip

    stop = ""
    if other is not None:
        stop = f"{ended}: {next((r.reason for r in by_size[other] if r.status not in ('ok', 'oom')), '')}"
    elif fails is None:
        stop = "no tested size ran out of memory, so larger sizes may also fit"
    elif fits is None:
        stop = f"even the smallest tested size does not fit: {by_size[fails][-1].reason}"
    return Edge(
        target=target,
        case=case,
        fits=size_of(metrics.LARGEST_FITTING, fits, at_least=fails is None),
        fails=size_of(metrics.SMALLEST_FAILING, fails),
        safe=size_of(metrics.LARGEST_SAFE, safe),
        largest=by_size[fits] if fits is not None else (),
        trials=len(groups),
        ended=ended,
        stop=stop,
        doubt=f"{target.axis} {target.value(min(above)):,} fitted, but the smaller {target.value(fails or 0):,} did not"
        if above
        else "",
        pieces=_pieces(by_size[fails], margin) if fails is not None else None,
    )


def _status(group: Group) -> str:
    """One round that ran out of memory is enough; one that went well is not."""
    found = {record.status for record in group}
    return "oom" if "oom" in found else next((status for status in _TRIED_STATUSES[2:] if status in found), "ok")


def _pieces(group: Group, margin: float) -> Pieces | None:
    found = (in_pieces(record.reason) for record in group if record.status == "oom")
    return next((pieces for pieces in found if pieces and pieces.unused_gib > margin * pieces.whole_gib), None)
