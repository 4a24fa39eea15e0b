"""Arithmetic on spans of time: what is left of one, and who was busy when several overlap."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Span = tuple[int, int]
Who = TypeVar("Who", bound=Hashable)


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same instants as spans that do not overlap, in order."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def gaps(whole: Span, inner: Iterable[Span]) -> list[Span]:
    """What is left of a span outside those inside it."""
    left, until = [], whole[0]
    for start, end in merged(inner):
        if start > until:
            left.append((until, start))
        until = max(until, end)
    if whole[1] > until:
        left.append((until, whole[1]))
    return left


def overlap(whole: Span, spans: Sequence[Span]) -> int:
    """How much of a span lies inside others, which are in order and apart, as `merged` gives them."""
    total = 0
    for start, end in spans[max(0, bisect_left(spans, (whole[0], 0)) - 1) :]:
        if start >= whole[1]:
            break
        total += max(0, min(end, whole[1]) - max(start, whole[0]))
    return total


def shared_out(spans: Sequence[tuple[int, int, Who]]) -> dict[Who, float]:
    """Busy time of everybody: an instant in which n spans are under way is split n ways, so all of them add up."""
    lasting = [(place, start, end) for place, (start, end, _) in enumerate(spans) if end > start]
    edges = sorted([(start, 1, place) for place, start, _ in lasting] + [(end, 0, place) for place, _, end in lasting])
    busy: dict[Who, float] = {}
    running: set[int] = set()
    last = 0
    for instant, begins, place in edges:
        for one in running if instant > last else ():
            who = spans[one][2]
            busy[who] = busy.get(who, 0.0) + (instant - last) / len(running)
        (running.add if begins else running.discard)(place)
        last = instant
    return busy
