"""Choosing items of a list while it is read: only the chosen ones are ever held."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count as counted
from itertools import islice

from speechmeter.workloads.manifests.utterance import Refused, Utterance

FIRST, RANDOM, SHORTEST, LONGEST = "first", "random", "shortest", "longest"
PICKS = (FIRST, RANDOM, SHORTEST, LONGEST)
TOLD = 20
"""So many refused items are kept with their reasons; the others are counted."""


@dataclass(frozen=True, kw_only=True)
class Picked:
    """The chosen items in the order of the list, the first of those that were refused, and how many these were."""

    utterances: tuple[Utterance, ...]
    refused: tuple[Refused, ...] = ()
    refused_count: int = 0


Length = Callable[[Utterance], float | Refused]
"""Seconds of an item, or why they cannot be told."""
Entry = tuple[int, Utterance]


def pick(items: Iterable[Utterance | Refused], how: str, count: int | None, *, seed: int = 0, length: Length) -> Picked:
    """Choose `count` of the items, or all. An item that stands twice, by its id, is refused the second time."""
    sieve = _Sieve(items)
    chosen = _chosen(sieve, how, count, seed, length)
    utterances = tuple(_once(sorted(chosen, key=lambda entry: entry[0]), sieve))
    return Picked(utterances=utterances, refused=tuple(sieve.refused), refused_count=sieve.count)


class _Sieve:
    """Items with their place; what is refused stays behind."""

    def __init__(self, items: Iterable[Utterance | Refused]) -> None:
        self._items = items
        self.refused: list[Refused] = []
        self.count = 0

    def __iter__(self) -> Iterator[Entry]:
        place = counted()
        for item in self._items:
            if isinstance(item, Refused):
                self.refuse(item)
            else:
                yield next(place), item

    def refuse(self, item: Refused) -> None:
        """Count it, and keep it if it is among the first."""
        self.count += 1
        if len(self.refused) < TOLD:
            self.refused.append(item)


def _chosen(sieve: _Sieve, how: str, count: int | None, seed: int, length: Length) -> list[Entry]:
    if how == FIRST or count is None:
        return list(islice(sieve, count))
    if how == RANDOM:
        return _sample(sieve, count, random.Random(seed))
    return _extreme(sieve, count, length, sign=1.0 if how == LONGEST else -1.0)


def _sample(entries: Iterable[Entry], count: int, draw: random.Random) -> list[Entry]:
    """Every item with the same chance, in one pass: the n-th replaces a kept one with probability count / n."""
    kept: list[Entry] = []
    for seen, entry in enumerate(entries):
        if len(kept) < count:
            kept.append(entry)
        elif (place := draw.randrange(seen + 1)) < count:
            kept[place] = entry
    return kept


def _extreme(sieve: _Sieve, count: int, length: Length, *, sign: float) -> list[Entry]:
    """The items of the largest signed length; of equal ones, those that stand first."""
    heap: list[tuple[float, int, Utterance]] = []
    for place, utterance in sieve:
        found = length(utterance)
        if isinstance(found, Refused):
            sieve.refuse(found)
            continue
        entry = (sign * found, -place, utterance)
        if len(heap) < count:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
    return [(-place, utterance) for _, place, utterance in heap]


def _once(entries: Iterable[Entry], sieve: _Sieve) -> Iterator[Utterance]:
    seen: set[str] = set()
    for _, utterance in entries:
        if not utterance.id.isprintable() or not utterance.id.strip():
            sieve.refuse(Refused(id=repr(utterance.id), reason="its id cannot be printed"))
        elif utterance.id in seen:
            sieve.refuse(Refused(id=utterance.id, reason="the list has this id twice"))
        else:
            seen.add(utterance.id)
            yield utterance
