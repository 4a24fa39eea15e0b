"""Choosing items of a list while it is read: only the chosen ones are ever held."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count as counted
from itertools import islice

from speechmeter.core.batches import LeftOut
from speechmeter.workloads.manifests.utterance import Refused, Utterance

FIRST, RANDOM, SHORTEST, LONGEST = "first", "random", "shortest", "longest"
PICKS = (FIRST, RANDOM, SHORTEST, LONGEST)
TOLD = 20
"""So many refused items are kept with their reasons; the others are counted."""
_WIDEST = 300


class Refusals:
    """Refused items while they are counted: the first are kept with their reasons, the others are a number."""

    def __init__(self, before: Refusals | None = None) -> None:
        self.first: list[Refused] = list(before.first) if before else []
        self.kinds: Counter[str] = Counter(before.kinds if before else ())
        self.others: int = before.others if before else 0

    def add(self, item: Refused) -> None:
        """Count it, and keep it if it is among the first."""
        if item.kind:
            self.kinds[item.kind] += 1
            return
        self.others += 1
        if len(self.first) < TOLD:
            self.first.append(item)

    def left_out(self, used: int) -> LeftOut:
        """The report on them, beside so many items that were used."""
        count = self.others + self.kinds.total()
        return LeftOut(
            count=count,
            of=count + used,
            first=tuple((printable(item.id), printable(item.reason)) for item in self.first),
            kinds=tuple((printable(kind), number) for kind, number in self.kinds.most_common()),
        )


def printable(text: str) -> str:
    """One line that no list can colour, break or flood."""
    plain = "".join(character if character.isprintable() else " " for character in text[: 2 * _WIDEST])
    plain = " ".join(plain.split())
    return plain if len(plain) <= _WIDEST else f"{plain[:_WIDEST]}…"


@dataclass(frozen=True, kw_only=True)
class Picked:
    """The chosen items in the order of the list, and those that were refused."""

    utterances: tuple[Utterance, ...]
    refused: Refusals


Length = Callable[[Utterance], float | Refused]
"""Seconds of an item, or why they cannot be told."""
Entry = tuple[int, Utterance]


def pick(items: Iterable[Utterance | Refused], how: str, count: int | None, *, seed: int = 0, length: Length) -> Picked:
    """Choose `count` of the items, or all. An item that stands twice, by its id, is refused the second time."""
    sieve = _Sieve(items)
    chosen = _chosen(sieve, how, count, seed, length)
    utterances = tuple(_once(sorted(chosen, key=lambda entry: entry[0]), sieve))
    return Picked(utterances=utterances, refused=sieve.refused)


class _Sieve:
    """Items with their place; what is refused stays behind."""

    def __init__(self, items: Iterable[Utterance | Refused]) -> None:
        self._items = items
        self.refused = Refusals()

    def __iter__(self) -> Iterator[Entry]:
        place = counted()
        for item in self._items:
            if isinstance(item, Refused):
                self.refused.add(item)
            else:
                yield next(place), item


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
            sieve.refused.add(found)
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
            sieve.refused.add(Refused(id=repr(utterance.id), reason="its id cannot be printed"))
        elif utterance.id in seen:
            sieve.refused.add(Refused(id=utterance.id, reason="the list has this id twice"))
        else:
            seen.add(utterance.id)
            yield utterance
